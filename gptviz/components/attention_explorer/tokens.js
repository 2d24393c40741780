// The tokens, with what one of them reads or who reads it.

import { chip } from "../kit/chips.js";
import { TabStop, closest, make, shape } from "../kit/elements.js";
import { Flow } from "../kit/flow.js";
import { ACROSS, DOWN, along, inNextLine, onKeys } from "../kit/keys.js";
import { rem } from "../kit/size.js";
import { spoken } from "../kit/text.js";
import { strongest } from "./selection.js";
import { SIDES, clamp } from "./settings.js";

/** @typedef {import("./settings.js").Side} Side */

/** @typedef {import("./settings.js").Aim} Aim */

/** @typedef {import("./selection.js").Selection} Selection */

/** @typedef {{ left: number, top: number, width: number, height: number }} Box of a chip */

/** @typedef {{ d: string, colour: string, share: number }} Line from a token to another, as a path */

// More tokens than this stand as flowing text, fewer in two columns with lines between them.
const MOST_IN_COLUMNS = 25;
// The height of a row of the columns, what stands above them, and above all tokens, in rem.
const SMALLEST_ROW = 1.05,
  LARGEST_ROW = 2,
  ABOVE_COLUMNS = 1.8,
  ABOVE_TOKENS = 5;
// The size of a text in rem, and how much room a letter takes: its width and the height of a line as shares of its size.
const SMALLEST_TEXT = 1,
  LARGEST_TEXT = 2.2,
  ROOM_OF_A_LETTER = 0.62 * 1.9;
const LINES_IN_TEXT = 5;
const FAINTEST_LINE = 0.01;

/** The tokens, and what one of them reads or is read by, as shades, numbers and lines. */
export class Tokens {
  /** @param {import("./attention_explorer.js").Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.element = make("div", "tokens", undefined, { role: "group", "aria-label": "Tokens" });
    this.lines = shape("svg", { class: "lines", "aria-hidden": "true" });
    /** @type {Record<Side, HTMLButtonElement[]>} */
    this.chips = { query: [], key: [] };
    /** What chips are shaded by. @type {WeakMap<HTMLElement, { selection: Selection, weights: number[] }>} */
    this.shades = new WeakMap();
    /** The chips that are outlined, and those that are held. @type {Record<"outlined" | "held", HTMLButtonElement[]>} */
    this.marked = { outlined: [], held: [] };
    /** @type {Record<Side, HTMLElement[]>} */
    this.shares = { query: [], key: [] };
    /** @type {SVGPathElement[]} */
    this.paths = [];
    /** @type {Record<Side, Box[]> | null} */
    this.boxes = null;
    this.rowHeight = 0; // pixels, of the columns
    this.stop = new TabStop();
    this.element.addEventListener("pointerover", (event) => this.over(event));
    this.element.addEventListener("pointerleave", () => explorer.look({}));
    this.element.addEventListener("focusin", (event) => this.over(event));
    this.element.addEventListener(
      "focusout",
      ({ relatedTarget }) => this.element.contains(/** @type {Node | null} */ (relatedTarget)) || explorer.look({}),
    );
    this.element.addEventListener("click", (event) => this.clicked(event));
    onKeys(this.element, (event) => this.key(event));
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
    // So high that no line ends out of sight.
    const rows = Math.max(numbers.nQuery, numbers.nKey),
      needed = rows * SMALLEST_ROW + ABOVE_COLUMNS + ABOVE_TOKENS;
    this.explorer.body.style.setProperty("--columns", this.inColumns ? `${needed}rem` : "0rem");
    if (this.inColumns) {
      const text = make("div", "pair");
      text.append(this.column("query"), this.lines, this.column("key"));
      this.element.replaceChildren(text);
    } else {
      const text = make("div", "text");
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
    this.stop.reach(this.chips.query.at(-1));
  }

  /** @param {string} label @param {Side | "both"} side @param {number} at */
  chip(label, side, at) {
    const button = chip(label, "button");
    Object.assign(button.dataset, { side, index: String(at) });
    button.tabIndex = -1;
    button.setAttribute("aria-label", `${at} ${spoken(label)}`);
    return button;
  }

  /** @param {Side} side */
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

  /**
   * Chips as text: lines break between words and after a newline.
   *
   * @param {HTMLElement} text
   * @param {string[]} labels
   * @param {Side | "both"} side
   */
  flow(text, labels, side) {
    const flow = new Flow(make("div", "flow"), { isSpaced: this.explorer.numbers.spaced });
    text.append(flow.element);
    return labels.map((label, at) => {
      const button = this.chip(label, side, at);
      flow.add(button, label);
      return button;
    });
  }

  /** Where the chips of a flowing text are, measured once for each layout. @returns {Record<Side, Box[]>} */
  places() {
    if (this.boxes) return this.boxes;
    const text = /** @type {Element} */ (this.element.firstElementChild);
    /** @param {HTMLElement} chip @returns {Box} */
    const box = ({ offsetLeft: left, offsetTop: top, offsetWidth: width, offsetHeight: height }) => ({
      left,
      top,
      width,
      height,
    });
    this.boxes = { query: this.chips.query.map(box), key: this.chips.key.map(box) };
    this.lines.setAttribute("width", String(text.clientWidth));
    this.lines.setAttribute("height", String(text.scrollHeight));
    return this.boxes;
  }

  resize() {
    this.boxes = null;
    const { clientWidth, clientHeight } = this.element,
      { numbers, isWhole } = this.explorer,
      unit = rem();
    // In a picture rows and letters are as large as on the screen.
    const isSeen = clientHeight > 0 && !isWhole;
    if (!this.inColumns) {
      if (isSeen) this.fitText(clientWidth / unit, clientHeight / unit);
      return;
    }
    if (isSeen || !this.rowHeight) {
      const rows = Math.max(numbers.nQuery, numbers.nKey);
      const fitting = Math.floor((clientHeight - ABOVE_COLUMNS * unit) / rows);
      this.rowHeight = clamp(fitting, SMALLEST_ROW * unit, LARGEST_ROW * unit);
      this.element.style.setProperty("--row", `${this.rowHeight}px`);
    }
    const columns = [.../** @type {NodeListOf<HTMLElement>} */ (this.element.querySelectorAll(".column"))].reduce(
      (sum, column) => sum + column.offsetWidth,
      0,
    );
    this.width = Math.max(20, /** @type {Element} */ (this.lines.parentElement).clientWidth - columns - 8);
    this.lines.setAttribute("width", String(this.width));
    this.lines.setAttribute("height", String(this.rowHeight * Math.max(this.chips.query.length, this.chips.key.length)));
  }

  /**
   * Letters as large as the place (in rem) lets them be without scrolling, within limits. A word that is too wide even in the
   * smallest letters goes on in the next line.
   *
   * @param {number} width
   * @param {number} height
   */
  fitText(width, height) {
    const { queries, keys, alone } = this.explorer.numbers;
    const texts = alone ? [queries] : [queries, keys];
    const letters = texts.flat().reduce((sum, label) => sum + label.length, 0);
    const flows = [...this.element.querySelectorAll(".flow")];
    const isTooWide = () => flows.some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth);
    let size = Math.min(LARGEST_TEXT, Math.sqrt((width * height) / (letters * ROOM_OF_A_LETTER)));
    this.element.classList.remove("breaking");
    do {
      size = Math.max(size, SMALLEST_TEXT);
      this.element.style.setProperty("--large", `${size}rem`);
      if (size === SMALLEST_TEXT) break;
      size *= 0.92; // how much room the ends of lines take is seen once they are broken
    } while (this.element.scrollHeight > this.element.clientHeight || isTooWide());
    this.element.classList.toggle("breaking", isTooWide());
  }

  /** Bring shades, numbers and lines in line with what is looked at. @param {Aim | null} aim */
  draw(aim) {
    const { selection } = this.explorer;
    const weights = aim ? selection.rows(aim) : [];
    const target = aim ? SIDES[aim.side] : null;
    for (const side of /** @type {const} */ (["query", "key"])) {
      if (this.isOneText && side !== (target ?? "key")) continue;
      this.shade(this.chips[side], side === target ? weights : [], selection);
      if (this.shares[side].length) this.number(this.shares[side], side === target ? weights : [], selection);
    }
    this.outline(aim);
    this.drawLines(aim, weights, selection);
  }

  /**
   * Give each chip the shade of its weight in every head shown; only chips that change are touched.
   *
   * @param {HTMLElement[]} chips
   * @param {Float64Array[]} weights
   * @param {Selection} selection
   */
  shade(chips, weights, selection) {
    const count = weights.length;
    for (let i = 0; i < chips.length; i++) {
      const one = chips[i],
        before = this.shades.get(one);
      let isSame = before?.selection === selection && before.weights.length === count;
      for (let head = 0; isSame && head < count; head++) isSame = Object.is(before?.weights[head], weights[head][i]);
      if (isSame) continue;
      const own = weights.map((row) => row[i]);
      this.shades.set(one, { selection, weights: own });
      const isMasked = count > 0 && Number.isNaN(own[0]);
      one.classList.toggle("masked", isMasked);
      one.style.background = isMasked ? "" : striped(own, selection);
    }
  }

  /**
   * Write next to each chip of a column the share that one head gives it.
   *
   * @param {HTMLElement[]} shares
   * @param {Float64Array[]} weights
   * @param {Selection} selection
   */
  number(shares, weights, selection) {
    shares.forEach((share, i) => {
      const text = weights.length === 1 && !Number.isNaN(weights[0][i]) ? selection.said(weights[0][i]) : "";
      if (share.textContent !== text) share.textContent = text;
    });
  }

  /** @param {Aim | null} aim */
  outline(aim) {
    const { choice } = this.explorer;
    /** @type {Map<HTMLButtonElement, string>} */
    const marks = new Map();
    if (aim) marks.set(this.chips[aim.side][aim.index], `of-${aim.side}`);
    if (aim && aim.partner !== null) {
      const other = SIDES[aim.side],
        partner = this.chips[other][aim.partner];
      marks.set(partner, marks.has(partner) ? "of-both" : `of-${other}`);
    }
    for (const one of this.marked.outlined) if (!marks.has(one)) one.classList.remove("of-query", "of-key", "of-both");
    for (const [one, name] of marks) {
      one.classList.remove("of-query", "of-key", "of-both");
      one.classList.add(name);
    }
    const held = /** @type {const} */ (["query", "key"]).flatMap((side) => {
      const at = choice[side];
      return at === null ? [] : [this.chips[side][at]];
    });
    for (const one of this.marked.held) if (!held.includes(one)) one.removeAttribute("aria-pressed");
    for (const one of held) one.setAttribute("aria-pressed", "true");
    this.marked = { outlined: [...marks.keys()], held };
  }

  /** @param {Aim | null} aim @param {Float64Array[]} weights @param {Selection} selection */
  drawLines(aim, weights, selection) {
    const wanted = this.inColumns ? this.between(aim, weights, selection) : this.arcs(aim, weights, selection);
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

  /**
   * Lines between two columns: of one token, or of all where none is looked at.
   *
   * @param {Aim | null} aim
   * @param {Float64Array[]} weights
   * @param {Selection} selection
   * @returns {Line[]}
   */
  between(aim, weights, selection) {
    /** @type {Line[]} */
    const lines = [];
    const row = this.rowHeight,
      width = this.width ?? 60;
    /** @param {number} query @param {number} key @param {number} value @param {number} which */
    const add = (query, key, value, which) => {
      const share = selection.scaled(value);
      if (!(share >= FAINTEST_LINE)) return;
      const from = (query + 0.5) * row,
        to = (key + 0.5) * row;
      const d = `M0 ${from}C${width * 0.4} ${from} ${width * 0.6} ${to} ${width} ${to}`;
      lines.push({ d, colour: selection.colours[which], share });
    };
    if (aim) {
      /** @param {number} other @returns {[number, number]} */
      const pair = (other) => (aim.side === "query" ? [aim.index, other] : [other, aim.index]);
      weights.forEach((values, which) => values.forEach((value, other) => add(...pair(other), value, which)));
      return lines;
    }
    selection.loaded.forEach((at, which) => {
      for (let query = 0; query < this.chips.query.length; query++) {
        selection.row({ side: "query", index: query }, at).forEach((value, key) => add(query, key, value, which));
      }
    });
    return lines;
  }

  /**
   * Arcs over flowing text, to the strongest few.
   *
   * @param {Aim | null} aim
   * @param {Float64Array[]} weights
   * @param {Selection} selection
   * @returns {Line[]}
   */
  arcs(aim, weights, selection) {
    if (!aim) return [];
    const boxes = this.places();
    const from = boxes[aim.side][aim.index],
      others = boxes[SIDES[aim.side]];
    const few = weights.length > 1 ? 2 : LINES_IN_TEXT;
    return weights.flatMap((values, which) =>
      strongest(values, few)
        .filter((other) => selection.scaled(values[other]) >= 0.05 && others[other] !== from)
        .map((other) => {
          const to = others[other],
            [x0, x1] = [from, to].map(({ left, width }) => left + width / 2);
          const sameLine = Math.abs(from.top - to.top) < 4;
          const down = !sameLine && from.top < to.top,
            up = !sameLine && !down;
          const y0 = from.top + (down ? from.height - 2 : 2),
            y1 = to.top + (up ? to.height - 2 : 2);
          const bend = sameLine ? y0 - Math.min(18, 6 + Math.abs(x0 - x1) / 12) : (y0 + y1) / 2;
          const d = `M${x0} ${y0}C${x0} ${bend} ${x1} ${bend} ${x1} ${y1}`;
          return { d, colour: selection.colours[which], share: selection.scaled(values[other]) };
        }),
    );
  }

  /**
   * Side and index of the token under an event. In one text, a token that the fixed one may see is its partner.
   *
   * @param {Event} event
   * @returns {{ side: Side, index: number } | null}
   */
  at(event) {
    const button = closest(event, ".chip");
    if (!button) return null;
    const index = Number(button.dataset.index);
    if (button.dataset.side !== "both") return { side: button.dataset.side === "key" ? "key" : "query", index };
    const { choice, numbers } = this.explorer;
    const side = choice.direction === "out" ? "query" : "key",
      fixed = choice[side];
    if (fixed === null || fixed === index) return { side, index };
    const isVisible =
      side === "query" ? numbers.isVisible(fixed, index, choice.block) : numbers.isVisible(index, fixed, choice.block);
    return { side: isVisible ? SIDES[side] : side, index };
  }

  /** @param {Event} event */
  over(event) {
    const at = this.at(event);
    if (!at) return;
    if (event.type === "focusin") this.stop.reach(closest(event, ".chip"));
    this.explorer.look({ [at.side]: at.index }, event.type === "focusin");
  }

  /** @param {Event} event */
  clicked(event) {
    const at = this.at(event);
    if (at) this.explorer.fix(at.side, at.index);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const button = closest(event, ".chip");
    if (!button) return false;
    const next = this.walked(event.key, button.dataset.side === "key" ? "key" : "query", Number(button.dataset.index));
    if (next) this.stop.focus(next, this.element);
    else if (event.key === "Escape") this.explorer.free();
    else return false;
    return true;
  }

  /**
   * The chip that a key leads to from chip `i` of a side; null for a key that does not walk.
   *
   * @param {string} key
   * @param {Side} side
   * @param {number} i
   */
  walked(key, side, i) {
    const { chips, inColumns } = this;
    if (inColumns && key in ACROSS) {
      const column = chips[key === "ArrowLeft" ? "query" : "key"];
      return column[Math.min(i, column.length - 1)];
    }
    if (!inColumns && key in DOWN) return this.inNextLine(side, i, DOWN[key]);
    const to = along(key, i, chips[side].length, inColumns ? DOWN : ACROSS);
    return to === null ? null : chips[side][to];
  }

  /** The chip nearest above (−1) or below (1) chip `i`; from the edge of one text on to the other. @param {Side} side @param {number} i @param {number} way */
  inNextLine(side, i, way) {
    const boxes = this.places()[side];
    const found = inNextLine(i, way, boxes.length, (j) => boxes[j]);
    if (found !== null || this.isOneText || way > 0 === (side === "key")) return this.chips[side][found ?? i];
    return /** @type {HTMLButtonElement} */ (this.chips[SIDES[side]].at(way > 0 ? 0 : -1));
  }
}

/** The shade of one weight, or stripes of the shades of several. @param {number[]} weights @param {Selection} selection */
function striped(weights, selection) {
  if (!weights.length) return "";
  if (weights.length === 1) return selection.shade(weights[0], 0);
  const ends = endsOfStripes(weights.length);
  return `linear-gradient(to right, ${weights.map((weight, which) => selection.shade(weight, which) + ends[which]).join()})`;
}

/** Where each of `count` stripes of one width begins and ends, for CSS. */
const endsOfStripes = (() => {
  /** @type {Map<number, string[]>} */
  const known = new Map();
  /** @param {number} count @returns {string[]} */
  return (count) => {
    if (!known.has(count)) {
      /** @param {number} i */
      const end = (i) => `${((100 * i) / count).toFixed(1)}%`;
      known.set(
        count,
        Array.from({ length: count }, (_, i) => ` ${end(i)} ${end(i + 1)}`),
      );
    }
    return /** @type {string[]} */ (known.get(count));
  };
})();
