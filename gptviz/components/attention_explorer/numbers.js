// What the payload holds, and the arithmetic on it.

import { remembered } from "../kit/remembered.js";
import { FACTS, MEAN } from "./settings.js";

// Before larger scores are exponentiated, the largest of their row is subtracted from them: this changes no share.
const LARGEST_EXPONENT = 80;
// A row that leaves less than this to all tokens but the first has too little left to say how it is shared.
const NOTHING = 1e-6;

/** @typedef {import("./settings.js").Head} Head @typedef {import("./settings.js").Quantity} Quantity */

/**
 * The header of the payload: see `payload` in __init__.py and `explore` in gptviz/ui/views/attention.py.
 *
 * @typedef {object} Header
 * @property {string} of the name of what is shown
 * @property {string} model its name
 * @property {string} code the lines of Python that make these numbers
 * @property {string[]} queries tokens
 * @property {string[]} keys tokens
 * @property {boolean} alone whether queries and keys are one text
 * @property {boolean} spaced whether tokens stand apart in a text
 * @property {string} reads what the axis of queries is called
 * @property {string} isRead what the axis of keys is called
 * @property {string[]} [hidden] for each block a sentence on what the mean of its heads hides
 * @property {number} pooling how many tokens a cell of a thumbnail stands for along each axis
 * @property {Record<string, string> | null} [edited] the edits of the model by the unit that each is about, "block" or "block.head"
 * @property {Record<string, string>} [named] what the reader calls heads, by "block.head"
 * @property {import("../kit/values.js").Declared} declared what the address may say
 * @property {Record<string, unknown> | null} [asked] what a command asks for
 * @property {number} number of the command
 *
 * @typedef {{
 *   n_block: number, n_head: number, first: number, count: number, triangle: boolean, half: boolean, facts: string[], scale: number,
 *   cap: number | null, sharing: number, windows: (number | null)[], arrays: Record<string, import("../kit/view.js").Numbers>,
 * }} OfHeads see `Heads` and `payload` in __init__.py
 *
 * @typedef {Header & OfHeads} Payload
 */

const Fields = /** @type {new () => Payload} */ (/** @type {unknown} */ (Object));

/** A payload with its numbers by block, head, query and key. What takes a walk over all cells of heads is computed once. */
export class Numbers extends Fields {
  /** @param {Payload} payload */
  constructor(payload) {
    super();
    Object.assign(this, payload);
    this.nQuery = payload.queries.length;
    this.nKey = payload.keys.length;
    this.size = payload.triangle ? (this.nQuery * (this.nQuery + 1)) / 2 : this.nQuery * this.nKey;
    this.masked = payload.triangle || payload.arrays.pattern.some(Number.isNaN);
    this.dHead = /** @type {number} */ (payload.arrays.q.shape.at(-1));
    /** What each row leaves to all tokens but the first, by block and head. @type {Map<string, Float64Array>} */
    this.left = new Map();
    /** The largest length of what is moved, by block and head. @type {Map<string, number>} */
    this.longest = new Map();
    /** The mean over the heads of one block, the last one asked for, by quantity. @type {Map<string, Float64Array>} */
    this.means = new Map();
    this.ofMeans = -1; // that block
  }

  /** @param {number} block */
  has(block) {
    return block >= this.first && block < this.first + this.count;
  }

  /** A head in words, with what the reader calls it. @param {number} block @param {number} head */
  headName(block, head) {
    const own = this.named?.[`${block}.${head}`];
    return own ? `head ${head} (“${own}”)` : `head ${head}`;
  }

  /** Where in a packed square a cell is, −1 if the triangle leaves it out. @param {number} query @param {number} key */
  place(query, key) {
    if (!this.triangle) return query * this.nKey + key;
    return key > query ? -1 : (query * (query + 1)) / 2 + key;
  }

  /** Whether a query that is held and a key that is held have a cell together. @param {number | null} query @param {number | null} key */
  isCell(query, key) {
    return query === null || key === null || this.place(query, key) >= 0;
  }

  /** @param {string} name @param {number} block @param {number} head @param {number} query @param {number} key */
  square(name, block, head, query, key) {
    const at = this.place(query, key);
    return at < 0 ? NaN : this.arrays[name][((block - this.first) * this.n_head + head) * this.size + at];
  }

  /**
   * The mean over the heads of a block of a quantity.
   *
   * @param {"pattern" | "value"} show
   * @param {number} block
   * @param {number} query
   * @param {number} key
   */
  mean(show, block, query, key) {
    if (block !== this.ofMeans) this.means.clear();
    this.ofMeans = block;
    const at = this.place(query, key);
    // In all cells that are sent, one after another.
    const means = () => {
      const sums = new Float64Array(this.size);
      for (let head = 0; head < this.n_head; head++) {
        for (let row = 0, i = 0; row < this.nQuery; row++) {
          const keys = this.triangle ? row + 1 : this.nKey;
          for (let column = 0; column < keys; column++, i++) sums[i] += this[show](block, head, row, column);
        }
      }
      return sums.map((sum) => sum / this.n_head);
    };
    return at < 0 ? NaN : remembered(this.means, show, means)[at];
  }

  /** @param {number} block @param {number | "mean"} head @param {number} query @param {number} key @returns {number} */
  pattern(block, head, query, key) {
    if (head === MEAN) return this.mean("pattern", block, query, key);
    return this.square("pattern", block, head, query, key);
  }

  /** The share of what a row leaves without the first token; NaN of the first, and where nothing is left.
   *  @param {number} block @param {number | "mean"} head @param {number} query @param {number} key @returns {number} */
  rest(block, head, query, key) {
    const left = key ? this.leftOf(block, head)[query] : 0;
    return left > NOTHING ? this.pattern(block, head, query, key) / left : NaN;
  }

  /** What every query leaves to all tokens but the first: sums, which say more of a little than 1 minus nearly 1.
   *  @param {number} block @param {number | "mean"} head @returns {Float64Array} */
  leftOf(block, head) {
    return remembered(this.left, `${block} ${head}`, () => {
      const left = new Float64Array(this.nQuery);
      for (let query = 0; query < this.nQuery; query++) {
        for (let key = 1; key < this.nKey; key++) {
          const share = this.pattern(block, head, query, key);
          if (!Number.isNaN(share)) left[query] += share;
        }
      }
      return left;
    });
  }

  /** The length of what a query would add if it looked only at a key.
   *  @param {number} block @param {number} head @param {number} query @param {number} key */
  moved(block, head, query, key) {
    const scaled = this.arrays.scaled?.[(block - this.first) * this.nQuery + query] ?? 1;
    return this.arrays.moved[((block - this.first) * this.n_head + head) * this.nKey + key] * scaled;
  }

  /** @param {number} block @param {number | "mean"} head @param {number} query @param {number} key @returns {number} */
  value(block, head, query, key) {
    if (head === MEAN) return this.mean("value", block, query, key);
    return this.pattern(block, head, query, key) * this.moved(block, head, query, key);
  }

  /** @param {number} block @param {number | "mean"} _head @param {number} query @param {number} key @returns {number} */
  rollout(block, _head, query, key) {
    const at = this.place(query, key);
    return at < 0 ? NaN : this.arrays.rollout[(block - this.first) * this.size + at];
  }

  /** Whether a block, or a rollout up to it, lets a query read a key: the first one here where its own numbers are not here yet.
   *  @param {number} query @param {number} key @param {number} block @param {Quantity} [show] */
  isVisible(query, key, block, show = "pattern") {
    const quantity = show === "rollout" ? show : "pattern";
    return !Number.isNaN(this[quantity](this.has(block) ? block : this.first, 0, query, key));
  }

  /** @param {"q" | "k"} name @param {number} block @param {number} head @param {number} at */
  vector(name, block, head, at) {
    const count = name === "q" ? this.nQuery : this.nKey;
    const start = (((block - this.first) * this.n_head + head) * count + at) * this.dHead;
    return this.arrays[name].subarray(start, start + this.dHead);
  }

  /** @param {number} block @param {number} head @param {number} query @param {number} key */
  position(block, head, query, key) {
    return this.arrays.position ? this.square("position", block, head, query, key) : 0;
  }

  /** @param {number} block @param {number} head @param {number} query @param {number} key */
  score(block, head, query, key) {
    const q = this.vector("q", block, head, query),
      k = this.vector("k", block, head, key);
    let dot = 0;
    for (let i = 0; i < q.length; i++) dot += q[i] * k[i];
    return this.capped(dot * this.scale + this.position(block, head, query, key));
  }

  /** What the cap leaves of a score. @param {number} score */
  capped(score) {
    return this.cap ? this.cap * Math.tanh(score / this.cap) : score;
  }

  /** A sentence on the heads that share keys and values with this one; empty where none do. @param {number} head */
  shared(head) {
    if (!(this.sharing > 1)) return "";
    const from = head - (head % this.sharing);
    return `Heads ${from} to ${from + this.sharing - 1} share their keys and values.`;
  }

  /** A sentence on the window of a block; empty where it has none. @param {number} block */
  windowed(block) {
    const size = this.windows?.[block];
    if (!size) return "";
    return `Block ${block} has a window: a token reads ${size === 1 ? "only itself" : `itself and the ${size - 1} before it`}.`;
  }

  /** @param {string} name @param {number} block @param {number} head */
  fact(name, block, head) {
    return this.arrays[`fact ${name}`][block * this.n_head + head];
  }

  /** What a head does on average, in a sentence; nothing of a single token. Of a mean of heads, what it hides. @param {Head} at */
  average([block, head]) {
    if (head === MEAN) return this.hidden?.[block] ?? "";
    const facts = this.facts.map((name) => FACTS[name].says(this.fact(name, block, head)));
    const said = facts.length ? `On average ${facts.join(", ")}.` : "";
    return [said, this.shared(head), this.windowed(block)].filter(Boolean).join(" ");
  }

  /** The largest value of heads, for a scale without a fixed end. @param {Quantity} show @param {Head[]} heads */
  largest(show, heads) {
    if (show !== "value") return 1;
    const each = heads.map(([block, head]) =>
      remembered(this.longest, `${block} ${head}`, () => {
        let most = 0;
        for (let query = 0; query < this.nQuery; query++) {
          for (let key = 0; key < this.nKey; key++) {
            const value = this.value(block, head, query, key);
            if (value > most) most = value;
          }
        }
        return most;
      }),
    );
    return Math.max(0, ...each) || 1;
  }

  /** @param {import("./settings.js").Side} side @param {number} at */
  label(side, at) {
    return side === "query" ? this.queries[at] : this.keys[at];
  }

  /**
   * The arithmetic of one cell, from the model's own query and key.
   *
   * @param {number} block
   * @param {number} head
   * @param {number} query
   * @param {number} key
   */
  cell(block, head, query, key) {
    const q = this.vector("q", block, head, query),
      k = this.vector("k", block, head, key);
    const products = new Float64Array(q.length),
      sums = new Float64Array(q.length);
    let dot = 0;
    for (let i = 0; i < q.length; i++) {
      products[i] = q[i] * k[i];
      sums[i] = dot += products[i];
    }
    const scaled = dot * this.scale,
      position = this.position(block, head, query, key),
      uncapped = scaled + position,
      score = this.capped(uncapped);
    /** @param {unknown} _ @param {number} j */
    const scoreOf = (_, j) => (this.isVisible(query, j, block) ? this.score(block, head, query, j) : NaN);
    const scores = Float64Array.from({ length: this.nKey }, scoreOf);
    const largest = scores.reduce((most, one) => (one > most ? one : most), -Infinity);
    const less = Math.abs(largest) > LARGEST_EXPONENT ? largest : 0;
    const exps = scores.map((one) => Math.exp(one - less));
    const kept = exps.filter((one) => !Number.isNaN(one)),
      visible = kept.length;
    const sum = kept.reduce((total, one) => total + one, 0);
    const share = exps[key] / sum,
      pattern = this.pattern(block, head, query, key);
    return { q, k, products, sums, dot, scaled, position, uncapped, score, scores, less, exps, sum, visible, share, pattern };
  }
}
