// The tokens, with what one of them reads or who reads it.

import { rgb } from "../kit/colour.js";
import { make, shape } from "../kit/elements.js";
import { SPOKEN, chip, spoken } from "../kit/text.js";
import { SIDES, clamp } from "./settings.js";

// More tokens than this stand as flowing text, fewer in two columns with lines between them.
const MOST_IN_COLUMNS = 25;
// Pixels that the columns have, unless their tokens need more.
const COLUMNS_HEIGHT = 296;
// Of up to so many tokens (queries and keys) the text is large.
const LARGE_TEXT = 200;
const LINES_IN_TEXT = 5;
const FAINTEST_LINE = 0.01;
const LONGEST_WORD = 24;

function tint(colour, share) {
  const [r, g, b] = rgb(colour);
  return `rgb(${r} ${g} ${b} / ${(0.05 + 0.6 * clamp(share, 0, 1)).toFixed(3)})`;
}

/** The tokens, and what one of them reads or is read by, as shades, numbers and lines. */
export class Tokens {
  constructor(explorer) {
    this.explorer = explorer;
    this.element = make("div", "tokens", undefined, { role: "group", "aria-label": "Tokens" });
    this.lines = shape("svg", { class: "lines", "aria-hidden": "true" });
    this.chips = { query: [], key: [] };
    this.shares = { query: [], key: [] };
    this.paths = [];
    this.boxes = null;
    this.element.addEventListener("pointerover", (event) => this.over(event));
    this.element.addEventListener("pointerleave", () => explorer.look({}));
    this.element.addEventListener("focusin", (event) => this.over(event));
    this.element.addEventListener("focusout", (event) => this.element.contains(event.relatedTarget) || explorer.look({}));
    this.element.addEventListener("click", (event) => this.clicked(event));
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  get inColumns() {
    const { numbers } = this.explorer;
    return Math.max(numbers.nQuery, numbers.nKey) <= MOST_IN_COLUMNS;
  }

  /** The two texts are one, of which every token is both query and key. */
  get isOneText() {
    return this.explorer.numbers.alone && !this.inColumns;
  }

  build() {
    const { numbers } = this.explorer;
    this.lines.replaceChildren();
    this.paths = [];
    this.boxes = null;
    this.shares = { query: [], key: [] };
    this.element.classList.toggle("columns", this.inColumns);
    if (this.inColumns) {
      const rows = Math.max(numbers.nQuery, numbers.nKey);
      this.rowHeight = clamp(Math.floor(COLUMNS_HEIGHT / rows), 12, 24);
      this.element.style.setProperty("--row", `${this.rowHeight}px`);
      const text = make("div", "pair");
      text.append(this.column("query"), this.lines, this.column("key"));
      this.element.replaceChildren(text);
    } else {
      const text = make("div", "text");
      text.style.setProperty("--large", numbers.nQuery + numbers.nKey > LARGE_TEXT ? "1rem" : "1.25rem");
      if (this.isOneText) {
        this.chips.query = this.chips.key = this.flow(text, numbers.queries, "both");
      } else {
        text.append(make("p", "note", numbers.reads));
        this.chips.query = this.flow(text, numbers.queries, "query");
        text.append(make("p", "note", numbers.isRead));
        this.chips.key = this.flow(text, numbers.keys, "key");
      }
      text.append(this.lines);
      this.element.replaceChildren(text);
    }
    this.reach(this.chips.query.at(-1));
  }

  chip(label, side, at) {
    const button = chip(label, "button");
    button.dataset.side = side;
    button.dataset.index = at;
    button.tabIndex = -1;
    button.setAttribute("aria-label", `${at} ${spoken(label)}`);
    return button;
  }

  column(side) {
    const { numbers } = this.explorer;
    const column = make("div", `column ${side}`);
    const title = make("div", "note", side === "query" ? numbers.reads : numbers.isRead);
    column.append(title);
    this.chips[side] = (side === "query" ? numbers.queries : numbers.keys).map((label, at) => {
      const line = make("div", "line");
      const button = this.chip(label, side, at),
        share = make("span", "share number");
      line.append(...(side === "query" ? [share, button] : [button, share]));
      this.shares[side].push(share);
      column.append(line);
      return button;
    });
    return column;
  }

  /** Chips as text: lines break between words and after a newline. */
  flow(text, labels, side) {
    const paragraph = make("div", `flow${this.explorer.numbers.spaced ? " spaced" : ""}`);
    let word = null;
    const chips = labels.map((label, at) => {
      const isOwn = at === 0 || this.explorer.numbers.spaced;
      const begins = isOwn || /[␣⏎⇥]$/.test(labels[at - 1]) || (/^[␣⏎⇥]/.test(label) && !(label in SPOKEN));
      if (begins || word.childElementCount > LONGEST_WORD) {
        word = make("span", "word");
        paragraph.append(word);
      }
      const button = this.chip(label, side, at);
      word.append(button);
      if (label.endsWith("⏎")) word.append(make("br"));
      return button;
    });
    text.append(paragraph);
    return chips;
  }

  /** Where the chips of a flowing text are, measured once for each layout. */
  places() {
    if (this.boxes) return this.boxes;
    const text = this.element.firstChild;
    const box = ({ offsetLeft, offsetTop, offsetWidth, offsetHeight }) => {
      return { x: offsetLeft + offsetWidth / 2, top: offsetTop, bottom: offsetTop + offsetHeight };
    };
    this.boxes = { query: this.chips.query.map(box), key: this.chips.key.map(box) };
    this.lines.setAttribute("width", text.clientWidth);
    this.lines.setAttribute("height", text.scrollHeight);
    return this.boxes;
  }

  resize() {
    this.boxes = null;
    if (!this.inColumns) return;
    const columns = [...this.element.querySelectorAll(".column")].reduce((sum, column) => sum + column.offsetWidth, 0);
    this.width = Math.max(20, this.lines.parentElement.clientWidth - columns - 8);
    this.lines.setAttribute("width", this.width);
    this.lines.setAttribute("height", this.rowHeight * Math.max(this.chips.query.length, this.chips.key.length));
  }

  /** Bring shades, numbers and lines in line with what is looked at. */
  draw() {
    const { explorer } = this;
    const aim = explorer.aim();
    const heads = explorer.loaded();
    const weights = aim ? heads.map((at) => explorer.row(aim, at)) : [];
    const target = aim ? SIDES[aim.side] : null;
    const largest = explorer.largest;
    for (const side of ["query", "key"]) {
      if (this.isOneText && side !== (target ?? "key")) continue;
      this.chips[side].forEach((one, i) => {
        const values = side === target ? weights.map((row) => row[i]) : [];
        const look = this.look(values, largest);
        if (one.look !== look.key) {
          one.look = look.key;
          one.style.background = look.background;
          one.classList.toggle("masked", look.masked);
          one.dataset.weight = values.join(" ");
        }
        if (this.shares[side].length) {
          const text = values.length === 1 && !Number.isNaN(values[0]) ? explorer.told(values[0]) : "";
          if (this.shares[side][i].textContent !== text) this.shares[side][i].textContent = text;
        }
      });
    }
    this.outline(aim);
    this.drawLines(aim, weights);
  }

  /** The shade of a chip for its share in every head shown. */
  look(values, largest) {
    if (!values.length) return { key: "", background: "", masked: false };
    if (Number.isNaN(values[0])) return { key: `masked ${values.length}`, background: "", masked: true };
    const { explorer } = this;
    const colours = values.map((value, i) => tint(explorer.colourOf(i), explorer.scaled(value, largest)));
    const end = (i) => `${((100 * i) / values.length).toFixed(1)}%`;
    const stripes = () => colours.map((colour, i) => `${colour} ${end(i)} ${end(i + 1)}`).join(", ");
    const background = values.length === 1 ? colours[0] : `linear-gradient(to right, ${stripes()})`;
    return { key: values.join(" ") + background, background, masked: false };
  }

  outline(aim) {
    const { choice } = this.explorer;
    const marks = new Map();
    if (aim) marks.set(this.chips[aim.side][aim.index], `of-${aim.side}`);
    if (aim && aim.partner !== null) {
      const other = SIDES[aim.side],
        partner = this.chips[other][aim.partner];
      marks.set(partner, marks.has(partner) ? "of-both" : `of-${other}`);
    }
    for (const one of this.marked ?? []) if (!marks.has(one)) one.classList.remove("of-query", "of-key", "of-both");
    for (const [one, name] of marks) {
      one.classList.remove("of-query", "of-key", "of-both");
      one.classList.add(name);
    }
    this.marked = [...marks.keys()];
    const fixed = ["query", "key"].filter((side) => choice[side] !== null).map((side) => this.chips[side][choice[side]]);
    for (const one of this.fixed ?? []) if (!fixed.includes(one)) one.removeAttribute("aria-pressed");
    for (const one of fixed) one.setAttribute("aria-pressed", "true");
    this.fixed = fixed;
  }

  drawLines(aim, weights) {
    const wanted = this.inColumns ? this.between(aim, weights) : this.arcs(aim, weights);
    wanted.forEach(({ d, colour, share }, i) => {
      if (!this.paths[i]) {
        this.paths[i] = shape("path", { fill: "none" });
        this.lines.append(this.paths[i]);
      }
      const path = this.paths[i];
      path.setAttribute("d", d);
      path.setAttribute("stroke", colour);
      path.setAttribute("stroke-opacity", Math.max(aim && weights.length === 1 ? 0.12 : 0.04, share).toFixed(3));
      path.setAttribute("stroke-width", (0.8 + 2.4 * share).toFixed(2));
    });
    for (const path of this.paths.splice(wanted.length)) path.remove();
  }

  /** Lines between two columns: of one token, or of all where none is looked at. */
  between(aim, weights) {
    const { explorer } = this;
    const lines = [];
    const row = this.rowHeight,
      width = this.width ?? 60;
    const add = (query, key, value, which) => {
      const share = explorer.scaled(value, explorer.largest);
      if (!(share >= FAINTEST_LINE)) return;
      const from = (query + 0.5) * row,
        to = (key + 0.5) * row;
      const d = `M0 ${from}C${width * 0.4} ${from} ${width * 0.6} ${to} ${width} ${to}`;
      lines.push({ d, colour: explorer.colourOf(which), share });
    };
    if (aim) {
      const pair = (other) => (aim.side === "query" ? [aim.index, other] : [other, aim.index]);
      weights.forEach((values, which) => values.forEach((value, other) => add(...pair(other), value, which)));
      return lines;
    }
    explorer.loaded().forEach((at, which) => {
      for (let query = 0; query < this.chips.query.length; query++) {
        explorer.row({ side: "query", index: query }, at).forEach((value, key) => add(query, key, value, which));
      }
    });
    return lines;
  }

  /** Arcs over flowing text, to the strongest few. */
  arcs(aim, weights) {
    if (!aim) return [];
    const { explorer } = this;
    const boxes = this.places();
    const from = boxes[aim.side][aim.index],
      others = boxes[SIDES[aim.side]];
    const few = weights.length > 1 ? 2 : LINES_IN_TEXT;
    return weights.flatMap((values, which) =>
      strongest(values, few)
        .filter((other) => explorer.scaled(values[other], explorer.largest) >= 0.05 && others[other] !== from)
        .map((other) => {
          const to = others[other];
          const sameLine = Math.abs(from.top - to.top) < 4;
          const down = !sameLine && from.top < to.top,
            up = !sameLine && !down;
          const y0 = down ? from.bottom - 2 : from.top + 2,
            y1 = up ? to.bottom - 2 : to.top + 2;
          const bend = sameLine ? y0 - Math.min(18, 6 + Math.abs(from.x - to.x) / 12) : (y0 + y1) / 2;
          const d = `M${from.x} ${y0}C${from.x} ${bend} ${to.x} ${bend} ${to.x} ${y1}`;
          return { d, colour: explorer.colourOf(which), share: explorer.scaled(values[other], explorer.largest) };
        }),
    );
  }

  /** Side and index of the token under an event. In one text, a token that the fixed one may see is its partner. */
  at(event) {
    const button = event.target.closest(".chip");
    if (!button) return null;
    const index = Number(button.dataset.index);
    if (button.dataset.side !== "both") return { side: button.dataset.side, index };
    const { choice, numbers } = this.explorer;
    const side = choice.direction === "out" ? "query" : "key",
      fixed = choice[side];
    if (fixed === null || fixed === index) return { side, index };
    const isVisible = side === "query" ? numbers.isVisible(fixed, index) : numbers.isVisible(index, fixed);
    return { side: isVisible ? SIDES[side] : side, index };
  }

  over(event) {
    const at = this.at(event);
    if (!at) return;
    if (event.type === "focusin") this.reach(event.target.closest(".chip"));
    this.explorer.look({ [at.side]: at.index }, event.type === "focusin");
  }

  clicked(event) {
    const at = this.at(event);
    if (at) this.explorer.fix(at.side, at.index);
  }

  reach(one) {
    if (this.reached) this.reached.tabIndex = -1;
    this.reached = one;
    one.tabIndex = 0;
  }

  key(event) {
    const button = event.target.closest(".chip");
    if (!button || event.ctrlKey || event.metaKey || event.altKey) return;
    const side = button.dataset.side === "key" ? "key" : "query",
      list = this.chips[side],
      i = Number(button.dataset.index);
    const last = list.length - 1;
    const along = { Home: () => [side, 0], End: () => [side, last] };
    const inColumns = {
      ArrowUp: () => [side, i - 1],
      ArrowDown: () => [side, i + 1],
      ArrowLeft: () => ["query", i],
      ArrowRight: () => ["key", i],
    };
    const inText = {
      ArrowLeft: () => [side, i - 1],
      ArrowRight: () => [side, i + 1],
      ArrowUp: () => this.line(side, i, -1),
      ArrowDown: () => this.line(side, i, 1),
    };
    const walks = { ...along, ...(this.inColumns ? inColumns : inText) };
    const next = walks[event.key]?.();
    if (next) {
      const chips = this.chips[next[0]];
      const one = chips[clamp(next[1], 0, chips.length - 1)];
      one.focus({ preventScroll: true });
      one.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else if (event.key === "Escape") this.explorer.free();
    else {
      if (event.key === "Enter" || event.key === " ") event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** The chip nearest above or below chip `i`; from the edge of one text on to the other. */
  line(side, i, step) {
    const boxes = this.places()[side],
      from = boxes[i];
    let best = null,
      top = null;
    for (let j = i + step; j >= 0 && j < boxes.length; j += step) {
      if (Math.abs(boxes[j].top - from.top) < 4) continue;
      top ??= boxes[j].top;
      if (Math.abs(boxes[j].top - top) >= 4) break;
      if (best === null || Math.abs(boxes[j].x - from.x) < Math.abs(boxes[best].x - from.x)) best = j;
    }
    if (best !== null) return [side, best];
    return this.isOneText || step > 0 === (side === "key") ? [side, i] : [SIDES[side], step > 0 ? 0 : Infinity];
  }
}

/** The indices of the largest `few` of some values, NaN left out. */
export function strongest(values, few) {
  const best = [];
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (Number.isNaN(value) || (best.length === few && value <= values[best.at(-1)])) continue;
    let at = best.length;
    while (at > 0 && values[best[at - 1]] < value) at--;
    best.splice(at, 0, i);
    if (best.length > few) best.pop();
  }
  return best;
}
