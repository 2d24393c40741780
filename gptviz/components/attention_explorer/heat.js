// One head as a heatmap.

import { colourAt } from "../kit/colour.js";
import { make, shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { shortened } from "../kit/text.js";
import { ARROWS, SHOWS, SIDES, STOPS, clamp } from "./settings.js";

const ROLLOUT =
  "Of each block the mean of its heads, half of it and half the token itself, multiplied from block 0 up. " +
  "The head makes no difference.";

/** One head, queries downwards and keys across; a cell that is chosen opens its arithmetic. */
export class Heat {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.element = make("div", "right");
    this.title = make("strong", "title");
    this.about = make("p", "note about");
    this.frame = make("div", "frame", undefined, { tabindex: "0", role: "application", "aria-roledescription": "heatmap" });
    this.canvas = make("canvas", "heat");
    this.marks = shape("svg", { class: "marks", "aria-hidden": "true" });
    this.frame.append(this.canvas, this.marks);
    this.legend = make("div", "legend");
    this.element.append(this.title, this.frame, this.legend, this.about);
    this.cross = /** @type {const} */ (["query", "key"]).map((side) =>
      shape("rect", { fill: "none", stroke: ROLES[side], "stroke-width": 1.5 }),
    );
    this.frame.addEventListener("pointermove", (event) => this.over(event));
    this.frame.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && explorer.look({}));
    this.frame.addEventListener("pointerdown", (event) => (this.touched = event.pointerType === "touch"));
    this.frame.addEventListener("click", (event) => this.clicked(event));
    this.frame.addEventListener("keydown", (event) => this.key(event));
  }

  /** The cells' size, and the room beside them. */
  resize() {
    const { numbers, narrow } = this.explorer;
    const room = Math.min(this.element.clientWidth || 230, narrow ? 330 : 240) - 4;
    /** @param {string[]} labels */
    const widest = (labels) => Math.min(6, Math.max(...labels.map((label) => [...label].length)));
    /** @type {{ left: number, top: number }} */
    this.room = { left: 16 + 6.4 * widest(numbers.queries), top: 16 + Math.max(11, 6.4 * widest(numbers.keys)) };
    /** @type {number} */
    this.cell = clamp(Math.min((room - this.room.left) / numbers.nKey, (room - this.room.top) / numbers.nQuery), 0.2, 22);
    /** @type {boolean} */
    this.named = this.cell >= 8;
    if (!this.named) {
      this.room = { left: 36, top: 30 };
      this.cell = Math.min((room - 36) / numbers.nKey, (room - 30) / numbers.nQuery);
    }
    const width = this.cell * numbers.nKey,
      height = this.cell * numbers.nQuery;
    const place = { left: this.room.left, top: this.room.top, width, height };
    for (const [name, pixels] of Object.entries(place)) /** @type {any} */ (this.canvas.style)[name] = `${pixels}px`;
    this.frame.style.width = `${this.room.left + width}px`;
    this.frame.style.height = `${this.room.top + height}px`;
    this.marks.setAttribute("width", /** @type {any} */ (this.room.left + width));
    this.marks.setAttribute("height", /** @type {any} */ (this.room.top + height));
    this.marks.replaceChildren(...axes(numbers, this.cell, this.room, this.named, "currentColor"), ...this.cross);
  }

  /** Another head, or another scale. */
  draw() {
    const { explorer } = this;
    const { numbers, choice, selection } = explorer;
    const { large } = selection;
    const show = SHOWS[choice.show];
    this.title.textContent = selection.name;
    const help = "arrow keys walk the cells, Enter opens the arithmetic of one";
    this.frame.setAttribute("aria-label", `Heatmap of ${selection.name}, ${show.name}: ${help}`);
    if (numbers.has(large[0])) explorer.paint(this.canvas, large, choice.show);
    else if (selection.isMean)
      this.canvas.width = this.canvas.height = 1; // blank until the numbers are here
    else {
      const small = explorer.grid.buttons.get(large.join(" ")).firstChild;
      this.canvas.width = small.width;
      this.canvas.height = small.height;
      /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d")).drawImage(small, 0, 0);
    }
    const [low, high] = selection.ends;
    const bar = make("span", "scale");
    const stops = STOPS.map((place) => `${colourAt(explorer.palette, place)} ${100 * place}%`);
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    const unit = make("span", "note", selection.unit + (numbers.masked ? "; blank: may not be read" : ""));
    this.legend.replaceChildren(make("span", "number", low), bar, make("span", "number", high), unit);
    const half = numbers.half ? " Numbers have three digits: with more they would be too many to send." : "";
    this.about.textContent = (choice.show === "rollout" ? ROLLOUT : numbers.average(large)) + half;
  }

  /** Outline the row and the column that are looked at. @param {import("./settings.js").Aim | null} aim */
  point(aim) {
    const { numbers } = this.explorer;
    /** @type {{ query?: number, key?: number }} */
    const at = aim ? { [aim.side]: aim.index, ...(aim.partner === null ? {} : { [SIDES[aim.side]]: aim.partner }) } : {};
    const { left, top } = this.room;
    const [row, column] = this.cross;
    const width = numbers.nKey * this.cell,
      height = numbers.nQuery * this.cell,
      thin = Math.max(2, this.cell);
    /** @param {SVGElement} rect @param {number | undefined} index @param {Record<string, number>} place */
    const lay = (rect, index, place) => {
      for (const [name, value] of Object.entries(place)) rect.setAttribute(name, /** @type {any} */ (value));
      rect.setAttribute("visibility", index === undefined ? "hidden" : "visible");
    };
    lay(row, at.query, { x: left, y: top + (at.query ?? 0) * this.cell, width, height: thin });
    lay(column, at.key, { x: left + (at.key ?? 0) * this.cell, y: top, width: thin, height });
  }

  /** @param {any} event */
  at(event) {
    const { numbers } = this.explorer;
    const box = this.canvas.getBoundingClientRect();
    const query = Math.floor(((event.clientY - box.top) / box.height) * numbers.nQuery);
    const key = Math.floor(((event.clientX - box.left) / box.width) * numbers.nKey);
    if (query < 0 || key < 0 || query >= numbers.nQuery || key >= numbers.nKey) return null;
    return { query, key };
  }

  /** @param {any} event */
  over(event) {
    if (event.pointerType === "touch") return; // a tap does it
    const at = this.at(event);
    this.explorer.look(at && this.explorer.numbers.isVisible(at.query, at.key) ? at : {});
  }

  /** @param {any} event */
  clicked(event) {
    const at = this.at(event);
    if (!at || !this.explorer.numbers.isVisible(at.query, at.key)) return;
    const before = this.explorer.hover;
    // A first tap does what hovering does, a second one on the same cell opens it.
    if (this.touched && !(before.query === at.query && before.key === at.key) && !this.explorer.selection.isOpen)
      this.explorer.look(at);
    else this.explorer.open(at.query, at.key);
  }

  /** @param {any} event */
  key(event) {
    const { explorer } = this;
    const { numbers, choice } = explorer;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, number>} */
    const last = { query: numbers.nQuery - 1, key: 0 };
    const from = Object.fromEntries(["query", "key"].map((side) => [side, explorer.hover[side] ?? choice[side] ?? last[side]]));
    const walk = ARROWS[event.key];
    if (walk) {
      const query = clamp(from.query + walk[0], 0, numbers.nQuery - 1),
        key = clamp(from.key + walk[1], 0, numbers.nKey - 1);
      if (numbers.isVisible(query, key)) {
        if (explorer.selection.isOpen) explorer.choose({ query, key });
        explorer.look({ query, key }, true);
      }
    } else if (event.key === "Enter" || event.key === " ") {
      if (numbers.isVisible(from.query, from.key)) explorer.open(from.query, from.key);
    } else if (event.key === "Escape") explorer.free();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/**
 * The axes of a heatmap: every token where they fit, else some positions.
 *
 * @param {any} numbers
 * @param {number} cell
 * @param {{ left: number, top: number }} room
 * @param {boolean} named
 * @param {string} colour
 */
export function axes(numbers, cell, { left, top }, named, colour) {
  /** @param {string} words @param {Record<string, string | number>} attributes */
  const text = (words, attributes) => shape("text", { fill: colour, "font-size": 10, ...attributes }, words);
  const marks = [
    text(numbers.isRead, { x: left, y: 9 }),
    text(numbers.reads, { transform: `translate(9 ${top + cell * numbers.nQuery}) rotate(-90)` }),
  ];
  if (named) {
    const mono = { "font-family": "monospace", "font-size": Math.min(10, cell), "dominant-baseline": "central" };
    numbers.queries.forEach((/** @type {string} */ label, /** @type {number} */ i) => {
      marks.push(text(shortened(label, 6), { ...mono, x: left - 3, y: top + (i + 0.5) * cell, "text-anchor": "end" }));
    });
    const upright = numbers.keys.every((/** @type {string} */ label) => [...label].length === 1);
    numbers.keys.forEach((/** @type {string} */ label, /** @type {number} */ i) => {
      const x = left + (i + 0.5) * cell;
      const turned = { transform: `translate(${x} ${top - 3}) rotate(-90)` };
      marks.push(text(shortened(label, 6), { ...mono, ...(upright ? { x, y: top - 6, "text-anchor": "middle" } : turned) }));
    });
    return marks;
  }
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((some) => some * cell >= 24) ?? 1000;
  /** @param {number} i */
  const middle = (i) => (i + 0.5) * cell;
  for (let i = 0; i < numbers.nQuery; i += step) {
    marks.push(text(String(i), { x: left - 3, y: top + middle(i), "text-anchor": "end", "dominant-baseline": "central" }));
  }
  for (let i = 0; i < numbers.nKey; i += step) {
    marks.push(text(String(i), { x: left + middle(i), y: top - 3, "text-anchor": "middle" }));
  }
  return marks;
}
