// One head as a heatmap.

import { colourAt } from "../kit/colour.js";
import { make, shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { rem } from "../kit/size.js";
import { shortened } from "../kit/text.js";
import { ARROWS, SHOWS, SIDES, STOPS, clamp } from "./settings.js";

// Of the names on the axes: their size and the largest cell in rem, the width of a letter as a share of its height, the most letters.
const SIZE = 0.75,
  LARGEST_CELL = 2.6,
  LETTER = 0.62,
  LONGEST = 6;
// Pixels, so that there is something to see in the smallest room.
const SMALLEST_CELL = 0.01;
// Where there is no room to name every token, one in this many is named.
const STEPS = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];
const ROLLOUT =
  "For each block: half the mean of its heads, half the token itself; multiplied from block 0 up. " +
  "The head makes no difference.";

/** One head, queries downwards and keys across; a cell that is chosen opens its arithmetic. */
export class Heat {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.element = make("div", "right");
    this.title = make("strong", "title");
    this.about = make("p", "note about", undefined, { tabindex: "0" }); // on a low window it scrolls
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
    const { numbers } = this.explorer;
    /** @type {Layout} */
    this.layout = layoutOf(numbers, this.explorer.heatRoom(this), rem());
    const { left, top, cell } = this.layout;
    const width = cell * numbers.nKey,
      height = cell * numbers.nQuery;
    const place = { left, top, width, height };
    for (const [name, pixels] of Object.entries(place)) /** @type {any} */ (this.canvas.style)[name] = `${pixels}px`;
    this.frame.style.width = `${left + width}px`;
    this.frame.style.height = `${top + height}px`;
    this.marks.setAttribute("width", String(left + width));
    this.marks.setAttribute("height", String(top + height));
    this.marks.replaceChildren(...axes(numbers, this.layout), ...this.cross);
    const before = this.pool;
    /** How many tokens a pixel of the picture stands for along each axis. @type {number | undefined} */
    this.pool = poolOf(cell);
    if (before && before !== this.pool) this.draw();
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
    const pool = numbers.has(large[0]) ? (this.pool ?? 1) : 1;
    if (numbers.has(large[0])) explorer.paint(this.canvas, large, choice.show, pool);
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
    const blank = [numbers.masked ? "may not be read" : "", choice.show === "rest" ? "the first token" : ""].filter(Boolean);
    const unit = make("span", "note", selection.unit + (blank.length ? `; blank: ${blank.join(", or ")}` : ""));
    this.legend.replaceChildren(make("span", "number", low), bar, make("span", "number", high), unit);
    const half = numbers.half ? " Numbers have only three digits: with more digits there would be too much to send." : "";
    const pooled = pool > 1 ? ` The picture is too small for single cells: each dot is the largest of ${pool} × ${pool}.` : "";
    this.about.textContent = (choice.show === "rollout" ? ROLLOUT : numbers.average(large)) + half + pooled;
  }

  /** Outline the row and the column that are looked at. @param {import("./settings.js").Aim | null} aim */
  point(aim) {
    const { numbers } = this.explorer;
    /** @type {{ query?: number, key?: number }} */
    const at = aim ? { [aim.side]: aim.index, ...(aim.partner === null ? {} : { [SIDES[aim.side]]: aim.partner }) } : {};
    const { left, top, cell } = this.layout;
    const [row, column] = this.cross;
    const width = numbers.nKey * cell,
      height = numbers.nQuery * cell,
      thin = Math.max(2, cell);
    /** @param {SVGElement} rect @param {number | undefined} index @param {Record<string, number>} place */
    const lay = (rect, index, place) => {
      for (const [name, value] of Object.entries(place)) rect.setAttribute(name, /** @type {any} */ (value));
      rect.setAttribute("visibility", index === undefined ? "hidden" : "visible");
    };
    lay(row, at.query, { x: left, y: top + (at.query ?? 0) * cell, width, height: thin });
    lay(column, at.key, { x: left + (at.key ?? 0) * cell, y: top, width: thin, height });
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

  /** Whether the block that is shown lets a query read a key. @param {{ query: number, key: number }} at */
  isVisible({ query, key }) {
    const { numbers, choice } = this.explorer;
    return numbers.isVisible(query, key, choice.block);
  }

  /** @param {any} event */
  over(event) {
    if (event.pointerType === "touch") return; // a tap does it
    const at = this.at(event);
    this.explorer.look(at && this.isVisible(at) ? at : {});
  }

  /** @param {any} event */
  clicked(event) {
    const at = this.at(event);
    if (!at || !this.isVisible(at)) return;
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
      if (this.isVisible({ query, key })) {
        if (explorer.selection.isOpen) explorer.choose({ query, key });
        explorer.look({ query, key }, true);
      }
    } else if (event.key === "Enter" || event.key === " ") {
      if (this.isVisible(/** @type {any} */ (from))) explorer.open(from.query, from.key);
    } else if (event.key === "Escape") explorer.free();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** How many cells of so many pixels a dot of the screen stands for, along each axis. @param {number} cell */
export function poolOf(cell) {
  return Math.max(1, Math.floor(1 / (cell * (globalThis.devicePixelRatio || 1))));
}

/**
 * Where things stand on a heatmap, in pixels.
 *
 * @typedef {object} Layout
 * @property {number} left room for the names of queries
 * @property {number} top room for the names of keys
 * @property {number} cell the side of a cell
 * @property {number} size of the type
 * @property {number} every which tokens are named: each, or with its position each so many
 * @property {boolean} upright whether the names of keys stand upright, as those of one letter do
 */

/**
 * As large as there is room. Names of tokens are as large as all type, so where cells are smaller some tokens alone are named.
 *
 * @param {{ queries: string[], keys: string[] }} numbers
 * @param {{ width: number, height: number }} room
 * @param {number} unit the pixels of one rem
 * @returns {Layout}
 */
export function layoutOf({ queries, keys }, room, unit) {
  const size = SIZE * unit;
  /** @param {string[]} labels */
  const widest = (labels) => Math.min(LONGEST, Math.max(...labels.map((label) => [...label].length)));
  const upright = widest(keys) === 1;
  const name = size * LETTER;
  const left = 2 * size + name * widest(queries),
    top = 1.6 * size + (upright ? 1.1 * size : name * widest(keys) + 0.3 * size);
  /** @param {number} beside @param {number} above */
  const fitting = (beside, above) => Math.min((room.width - beside) / keys.length, (room.height - above) / queries.length);
  const cell = Math.min(fitting(left, top), LARGEST_CELL * unit);
  if (cell >= size) return { left, top, cell, size, every: 1, upright };
  // A name and its position: "some 20", one above the other where they stand upright.
  const digits = String(Math.max(queries.length, keys.length) - 1).length;
  const wide = { left: left + name * (digits + 1), top: top + (upright ? 1.2 * size : name * (digits + 1)) };
  const small = Math.max(SMALLEST_CELL, fitting(wide.left, wide.top));
  // Positions that stand upright need the room of their digits.
  const apart = upright ? Math.max(1.1 * size, name * (digits + 0.7)) : 1.1 * size;
  const every = STEPS.find((step) => step * small >= apart) ?? 5000;
  return { ...wide, cell: small, size, every, upright };
}

/**
 * The axes of a heatmap: their names, and those of all tokens or of some.
 *
 * @param {{ queries: string[], keys: string[], reads: string, isRead: string }} numbers
 * @param {Layout} layout
 */
export function axes({ queries, keys, reads, isRead }, { left, top, cell, size, every, upright }) {
  /** @param {string} words @param {Record<string, string | number>} attributes */
  const text = (words, attributes) => shape("text", { fill: "currentColor", "font-size": size, ...attributes }, words);
  const mono = { "font-family": "monospace", "dominant-baseline": "central" };
  const marks = [
    text(isRead, { x: left, y: size }),
    text(reads, { transform: `translate(${size} ${top + cell * queries.length}) rotate(-90)` }),
  ];
  for (let i = 0; i < queries.length; i += every) {
    const name = shortened(queries[i], LONGEST);
    const words = every > 1 ? `${name} ${i}` : name;
    marks.push(text(words, { ...mono, x: left - 4, y: top + (i + 0.5) * cell, "text-anchor": "end" }));
  }
  for (let i = 0; i < keys.length; i += every) {
    const name = shortened(keys[i], LONGEST),
      x = left + (i + 0.5) * cell;
    const turned = { ...mono, transform: `translate(${x} ${top - 4}) rotate(-90)` };
    const above = { ...mono, x, "text-anchor": "middle" };
    if (!upright) marks.push(text(every > 1 ? `${name} ${i}` : name, turned));
    else {
      marks.push(text(name, { ...above, y: top - 0.65 * size }));
      if (every > 1) marks.push(text(String(i), { ...above, y: top - 1.75 * size }));
    }
  }
  return marks;
}
