// The tokens, with what one of them reads or who reads it.

import { chip } from "../kit/chips.js";
import { TabStop, closest, make, setAttributes, shape } from "../kit/elements.js";
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
/** @type {Side[]} */
const BOTH = ["query", "key"];
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
    /** The chips that are outlined or held. @type {HTMLButtonElement[]} */
    this.marked = [];
    /** @type {Record<Side, HTMLElement[]>} */
    this.shares = { query: [], key: [] };
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
    this.element.addEventListener("click", (event) => {
      const at = this.at(event);
      if (at) explorer.fix(at.side, at.index);
    });
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
    this.marked = [];
    this.boxes = null;
    this.shares = { query: [], key: [] };
    this.element.classList.toggle("columns", this.inColumns);
    this.lines.classList.toggle("overlay", !this.inColumns);
    // So high that no line ends out of sight.
    const rows = Math.max(numbers.nQuery, numbers.nKey),
      needed = rows * SMALLEST_ROW + ABOVE_COLUMNS + ABOVE_TOKENS;
    this.explorer.body.style.setProperty("--columns", this.inColumns ? `${needed}rem` : "0rem");
    const text = make("div", this.inColumns ? "pair" : "text");
    this.element.replaceChildren(text);
    if (this.inColumns) text.append(this.column("query"), this.lines, this.column("key"));
    else if (this.isOneText) {
      this.chips.query = this.chips.key = this.flow(text, numbers.queries, "both");
      text.append(this.lines);
    } else {
      text.append(make("p", "note", numbers.reads));
      this.chips.query = this.flow(text, numbers.queries, "query");
      text.append(make("p", "note", numbers.isRead));
      this.chips.key = this.flow(text, numbers.keys, "key");
      text.append(this.lines);
    }
    this.stop.reach(this.chips.query.at(-1));
  }

  /** @param {string} label @param {Side | "both"} side @param {number} at */
  chip(label, side, at) {
    const button = chip(label, "button");
    Object.assign(button.dataset, { side, index: String(at) });
    return setAttributes(button, { tabindex: -1, "aria-label": `${at} ${spoken(label)}` });
  }

  /** @param {Side} side */
  column(side) {
    const { numbers } = this.explorer;
    const column = make("div", `column ${side}`, [make("div", "note tiny", side === "query" ? numbers.reads : numbers.isRead)]);
    this.chips[side] = (side === "query" ? numbers.queries : numbers.keys).map((label, at) => {
      const button = this.chip(label, side, at),
        share = make("span", "tiny share number");
      column.append(make("div", "aligned line", side === "query" ? [share, button] : [button, share]));
      this.shares[side].push(share);
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
    /** @param {HTMLElement} one @returns {Box} */
    const box = (one) => ({ left: one.offsetLeft, top: one.offsetTop, width: one.offsetWidth, height: one.offsetHeight });
    this.boxes = { query: this.chips.query.map(box), key: this.chips.key.map(box) };
    setAttributes(this.lines, { width: text.clientWidth, height: text.scrollHeight });
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
    /** @type {NodeListOf<HTMLElement>} */
    const columns = this.element.querySelectorAll(".column");
    const taken = [...columns].reduce((sum, column) => sum + column.offsetWidth, 0);
    this.width = Math.max(20, /** @type {Element} */ (this.lines.parentElement).clientWidth - taken - 8);
    setAttributes(this.lines, { width: this.width, height: this.rowHeight * Math.max(numbers.nQuery, numbers.nKey) });
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
      size *= 0.92; // the room at the ends of lines is known only once they are broken
    } while (this.element.scrollHeight > this.element.clientHeight || isTooWide());
    this.element.classList.toggle("breaking", isTooWide());
  }

  /** Bring shades, numbers and lines in line with what is looked at. @param {Aim | null} aim */
  draw(aim) {
    const target = aim ? SIDES[aim.side] : null;
    for (const side of BOTH) {
      if (this.isOneText && side !== (target ?? "key")) continue;
      const weights = side === target ? this.weights(aim) : [];
      this.shade(this.chips[side], weights);
      this.number(this.shares[side], weights);
    }
    this.outline(aim);
    const wanted = this.inColumns ? this.between(aim) : this.arcs(aim);
    const faintest = this.weights(aim).length === 1 ? 0.12 : 0.04;
    while (this.lines.childElementCount < wanted.length) this.lines.append(shape("path", { fill: "none" }));
    while (this.lines.childElementCount > wanted.length) this.lines.lastChild?.remove();
    wanted.forEach(({ d, colour, share }, i) => {
      const strength = { "stroke-opacity": Math.max(faintest, share).toFixed(3), "stroke-width": (0.8 + 2.4 * share).toFixed(2) };
      setAttributes(this.lines.children[i], { d, stroke: colour, ...strength });
    });
  }

  /** What the heads shown give the tokens of the other side. @param {Aim | null} aim */
  weights(aim) {
    return aim ? this.explorer.selection.rows(aim) : [];
  }

  /** Give each chip the shade of its weight, or stripes of those in every head shown; only chips that change are touched. @param {HTMLElement[]} chips @param {Float64Array[]} weights */
  shade(chips, weights) {
    const { selection } = this.explorer,
      count = weights.length;
    const ends = weights.map((_, i) => ` ${((100 * i) / count).toFixed(1)}% ${((100 * (i + 1)) / count).toFixed(1)}%`);
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
      const shades = own.map((weight, which) => selection.shade(weight, which) + (count > 1 ? ends[which] : ""));
      one.style.background = isMasked ? "" : count > 1 ? `linear-gradient(to right, ${shades.join()})` : shades.join();
    }
  }

  /** Write next to each chip of a column the share that one head gives it. @param {HTMLElement[]} shares @param {Float64Array[]} weights */
  number(shares, weights) {
    const { selection } = this.explorer;
    shares.forEach((share, i) => {
      const text = weights.length === 1 && !Number.isNaN(weights[0][i]) ? selection.said(weights[0][i]) : "";
      if (share.textContent !== text) share.textContent = text;
    });
  }

  /** @param {Aim | null} aim */
  outline(aim) {
    for (const one of this.marked) {
      one.classList.remove("of-query", "of-key");
      one.removeAttribute("aria-pressed");
    }
    /** @param {Side} side @param {number | null} at @returns {HTMLButtonElement[]} */
    const chipAt = (side, at) => (at === null ? [] : [this.chips[side][at]]);
    this.marked = BOTH.flatMap((side) => {
      const outlined = aim ? chipAt(side, side === aim.side ? aim.index : aim.partner) : [],
        held = chipAt(side, this.explorer.choice[side]);
      for (const one of outlined) one.classList.add(`of-${side}`);
      for (const one of held) one.setAttribute("aria-pressed", "true");
      return [...outlined, ...held];
    });
  }

  /** Lines between two columns: of one token, or of all where none is looked at. @param {Aim | null} aim */
  between(aim) {
    const { selection } = this.explorer;
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
      this.weights(aim).forEach((values, which) => values.forEach((value, other) => add(...pair(other), value, which)));
      return lines;
    }
    selection.loaded.forEach((at, which) => {
      for (let query = 0; query < this.chips.query.length; query++) {
        selection.row({ side: "query", index: query }, at).forEach((value, key) => add(query, key, value, which));
      }
    });
    return lines;
  }

  /** Arcs over flowing text, to the strongest few. @param {Aim | null} aim @returns {Line[]} */
  arcs(aim) {
    if (!aim) return [];
    const { selection } = this.explorer,
      weights = this.weights(aim);
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
    const { choice } = this.explorer;
    const side = choice.direction === "out" ? "query" : "key",
      fixed = choice[side];
    if (fixed === null || fixed === index) return { side, index };
    const [query, key] = side === "query" ? [fixed, index] : [index, fixed];
    return { side: this.explorer.isVisible(query, key) ? SIDES[side] : side, index };
  }

  /** @param {Event} event */
  over(event) {
    const at = this.at(event);
    if (!at) return;
    if (event.type === "focusin") this.stop.reach(closest(event, ".chip"));
    this.explorer.look({ [at.side]: at.index }, event.type === "focusin");
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
    if (!inColumns && key in DOWN) {
      // From the edge of one text on to the other.
      const boxes = this.places()[side],
        isDown = DOWN[key] > 0;
      const found = inNextLine(i, DOWN[key], boxes.length, (j) => boxes[j]);
      const isLast = found === null && !this.isOneText && isDown === (side === "query");
      return isLast ? chips[SIDES[side]].at(isDown ? 0 : -1) : chips[side][found ?? i];
    }
    const to = along(key, i, chips[side].length, inColumns ? DOWN : ACROSS);
    return to === null ? null : chips[side][to];
  }
}
