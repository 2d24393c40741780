// What a choice makes of the numbers: the heads that are shown, their colours, the values of a row. Nothing here draws.
// A selection is computed once for every choice, so that moving the pointer computes nothing.

import { logarithmic, rgb } from "../kit/colour.js";
import { remembered } from "../kit/remembered.js";
import { ROLES } from "../kit/roles.js";
import { brief, percent } from "../kit/text.js";
import { MEAN, SHOWS, SIDES, clamp, same } from "./settings.js";

/** @typedef {import("./settings.js").Side} Side @typedef {import("./settings.js").Aim} Aim */
/** @typedef {import("./settings.js").Head} Head */

// Colours of heads side by side, those of Tol's sets that are seen well on white and on black.
export const OF_HEADS = [
  ...["#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377"],
  ...["#EE8866", "#44BB99", "#997700", "#99AABB", "#BB5566", "#77AADD"],
];
// A shade is opaque by a share from LIGHTEST to LIGHTEST + RANGE, in thousandths: so text stays readable on it.
const LIGHTEST = 50,
  RANGE = 600;

/** The indices of the largest `few` of some values, NaN left out. @param {ArrayLike<number>} values @param {number} few */
export function strongest(values, few) {
  /** @type {number[]} */
  const best = [];
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (Number.isNaN(value) || (best.length === few && value <= values[/** @type {number} */ (best.at(-1))])) continue;
    let at = best.length;
    while (at > 0 && values[best[at - 1]] < value) at--;
    best.splice(at, 0, i);
    if (best.length > few) best.pop();
  }
  return best;
}

/** Every shade of a colour, for CSS: [thousandths of opaqueness − LIGHTEST]. @type {Map<string, string[]>} */
const shades = new Map();

export class Selection {
  /** @param {import("./numbers.js").Numbers} numbers
   *  @param {import("./settings.js").Choice} choice */
  constructor(numbers, choice) {
    this.numbers = numbers;
    this.choice = choice;
    const { heads, block, show } = choice;
    /** @returns {[number, number][]} */
    const all = () => Array.from({ length: numbers.n_head }, (_, head) => [block, head]);
    /** @type {[number, number]} */
    this.chosen = [block, choice.head];
    this.isMean = heads === MEAN && show !== "rollout";
    /** What the heatmap shows: the chosen head, or in its place the mean of its block. @type {Head} */
    this.large = this.isMean ? [block, MEAN] : this.chosen;
    /** @type {Head[]} */
    const several = heads === "all" ? all() : Array.isArray(heads) ? heads : [this.large];
    /** The heads that are drawn: the chosen one, those compared, the mean or all of its block. @type {Head[]} */
    this.heads = show === "rollout" ? [this.chosen] : several;
    /** Those whose thumbnails are marked: of a mean or a rollout, all of the block. @type {Head[]} */
    this.marked = heads === MEAN || show === "rollout" ? all() : this.heads;
    /** The heads drawn whose numbers are here. */
    this.loaded = this.heads.filter(([one]) => numbers.has(one));
    const own = ROLES[SHOWS[show].role];
    this.colours = this.marked.map((_, which) => (this.heads.length > 1 ? OF_HEADS[which % OF_HEADS.length] : own));
    this.shades = this.colours.map((colour) => {
      const inks = rgb(colour).join(" ");
      const make = () => Array.from({ length: RANGE + 1 }, (_, i) => `rgb(${inks} / ${((LIGHTEST + i) / 1000).toFixed(3)})`);
      return remembered(shades, colour, make);
    });
    this.largest = numbers.largest(show, this.loaded);
    /** @type {(block: number, head: number | "mean", query: number, key: number) => number} */
    this.value = numbers[show].bind(numbers);
    /** @type {{ side: Side, index: number, rows: Float64Array[] } | null} */
    this.last = null;
  }

  /**
   * The head whose arithmetic is opened: the chosen one; of a mean, which has none, the one that reads most there.
   *
   * @returns {[number, number]}
   */
  get opened() {
    const { block, query, key } = this.choice;
    if (!this.isMean) return this.chosen;
    const shares = Array.from({ length: this.numbers.n_head }, (_, head) =>
      this.numbers.pattern(block, head, /** @type {number} */ (query), /** @type {number} */ (key)),
    );
    return [block, strongest(shares, 1)[0]];
  }

  /** Whether the arithmetic of a cell is open. */
  get isOpen() {
    const { block, query, key } = this.choice,
      { numbers } = this;
    if (query === null || key === null || !numbers.dHead) return false;
    return numbers.has(block) && numbers.isVisible(query, key, block);
  }

  /** What is shown, in words. */
  get name() {
    const { block, head, show } = this.choice;
    if (show === "rollout") return `Rollout up to block ${block}`;
    return `Block ${block}, ${this.isMean ? "mean of all heads" : this.numbers.headName(block, Number(head))}`;
  }

  /** All heads that are drawn, in words. */
  get title() {
    if (this.heads.length < 2) return this.name;
    const { block, heads } = this.choice;
    return heads === "all" ? `block ${block}, all heads` : this.heads.map(([of, head]) => `block ${of} head ${head}`).join(", ");
  }

  /** What the numbers shown are, and on which scale. */
  get unit() {
    return SHOWS[this.choice.show].unit + (this.choice.log ? ", log colours" : "");
  }

  /** What the low and the high end of the scale stand for. @returns {[low: string, high: string]} */
  get ends() {
    const { show, log } = this.choice;
    const high = show === "value" ? brief(this.largest) : "100 %";
    return [log ? (show === "value" ? `≤ ${brief(this.largest / 1000)}` : "≤ 0.1 %") : show === "value" ? "0" : "0 %", high];
  }

  /**
   * The values of a row or column in each of the heads that are here; those that were asked for last are kept.
   *
   * @param {{ side: Side, index: number }} at
   */
  rows({ side, index }) {
    if (!this.last || this.last.side !== side || this.last.index !== index) {
      this.last = { side, index, rows: this.loaded.map((head) => this.row({ side, index }, head)) };
    }
    return this.last.rows;
  }

  /** The values of a row or column in one head. @param {{ side: Side, index: number }} at @param {Head} head */
  row({ side, index }, [block, head]) {
    const { numbers, value } = this;
    const values = new Float64Array(side === "query" ? numbers.nKey : numbers.nQuery);
    for (let other = 0; other < values.length; other++) {
      values[other] = side === "query" ? value(block, head, index, other) : value(block, head, other, index);
    }
    return values;
  }

  /** Where on the scale a value is, 0 … 1. @param {number} value @param {number} [largest] */
  scaled(value, largest = this.largest) {
    return this.choice.log ? clamp(logarithmic(value / largest), 0, 1) : value / largest;
  }

  /** The shade of a value in the colour of the head number `which` of those drawn. @param {number} value @param {number} which */
  shade(value, which) {
    return this.shades[which][Math.round(RANGE * clamp(this.scaled(value), 0, 1))];
  }

  /** A value in words. @param {number} value */
  said(value) {
    return this.choice.show === "value" ? brief(value) : percent(value);
  }

  /** What is looked at, for a pointer that is `over` a query, a key or both: {side, index, partner}.
   *
   *  `isAlways`: whether something is looked at even where the pointer is nowhere and nothing is held; else null then.
   *  @param {{ query?: number | null, key?: number | null }} over
   *  @param {boolean} isAlways
   *  @returns {Aim | null} */
  aim(over, isAlways) {
    const { choice, numbers } = this;
    const side = choice.direction === "out" ? "query" : "key";
    /** @param {{ query: number, key: number }} at @returns {Aim} */
    const pair = (at) => ({ side, index: at[side], partner: at[SIDES[side]] });
    const { query = null, key = null } = over;
    if (query !== null && key !== null) return pair({ query, key });
    if (query !== null || key !== null) {
      const on = query !== null ? "query" : "key",
        held = choice[SIDES[on]];
      if (held === null) return { side: on, index: /** @type {number} */ (over[on]), partner: null };
      return { side: SIDES[on], index: held, partner: /** @type {number} */ (over[on]) };
    }
    if (choice.query !== null && choice.key !== null) return pair({ query: choice.query, key: choice.key });
    if (choice.query !== null || choice.key !== null) {
      const held = choice.query !== null ? "query" : "key";
      return { side: held, index: /** @type {number} */ (choice[held]), partner: null };
    }
    if (!isAlways) return null;
    return { side, index: side === "query" && numbers.alone ? numbers.nQuery - 1 : 0, partner: null };
  }

  /** The heads to compare once `at` is added, or taken out if it is one of them: a change of choice; null if there are too many
   *  or none.
   *  @param {[number, number]} at */
  compared(at) {
    const before = Array.isArray(this.choice.heads) ? this.choice.heads : [this.chosen];
    const without = before.filter((other) => !same(other, at));
    const heads = without.length < before.length ? without : [...before, at];
    if (!heads.length || heads.length > OF_HEADS.length) return null;
    const [block, head] = heads.some((other) => same(other, at)) ? at : /** @type {[number, number]} */ (heads.at(-1));
    return { heads, block, head };
  }
}
