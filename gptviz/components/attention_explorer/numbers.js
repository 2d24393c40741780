// What the payload holds, and the arithmetic on it.

import { FACTS, MEAN } from "./settings.js";

// Beyond this scores are lessened by the largest of their row before they are exponentiated, which changes no share.
const LARGEST_EXPONENT = 80;
// A row that leaves less than this to all tokens but the first has too little left to say how it is shared.
const NOTHING = 1e-6;

/** The numbers of the payload by block, head, query and key. */
export class Numbers {
  // What the payload says; the constructor copies it.
  /** The lines of Python that make these numbers. @type {any} */
  code;
  /** The first block whose numbers are here. @type {any} */
  first;
  /** The number of blocks whose numbers are here. @type {any} */
  count;
  /** The number of blocks of the model. @type {any} */
  n_block;
  /** The number of heads of a block. @type {any} */
  n_head;
  /** Whether only keys up to the query are sent. @type {any} */
  triangle;
  /** Name → typed array with its shape. @type {any} */
  arrays;
  /** Tokens. @type {any} */
  queries;
  /** Tokens. @type {any} */
  keys;
  /** Names of facts. @type {any} */
  facts;
  /** What the product of a query and a key is multiplied by. @type {any} */
  scale;
  /** Where scores are capped, what none exceeds; null elsewhere. @type {any} */
  cap;
  /** How many neighbouring heads share their keys and values. @type {any} */
  sharing;
  /** What the mean of the heads hides, a sentence for each block. @type {any} */
  hidden;
  /** The name of what is shown. @type {any} */
  of;
  /** Whether queries and keys are one text. @type {any} */
  alone;
  /** For each block how many keys its window leaves a query, null for no window; empty where none has one. @type {any} */
  windows;

  /** The edits of the model by the unit that each is about, "block" or "block.head". @type {Record<string, string> | undefined} */
  edited;

  /** @param {any} data */
  constructor(data) {
    Object.assign(this, data);
    this.nQuery = data.queries.length;
    this.nKey = data.keys.length;
    this.size = data.triangle ? (this.nQuery * (this.nQuery + 1)) / 2 : this.nQuery * this.nKey;
    this.masked = data.triangle || data.arrays.pattern.some(Number.isNaN);
    this.dHead = data.arrays.q.shape.at(-1);
    /** What each row leaves to all tokens but the first, by block and head. @type {Map<string, Float64Array>} */
    this.left = new Map();
  }

  /** @param {number} block */
  has(block) {
    return block >= this.first && block < this.first + this.count;
  }

  /** Where in a packed square a cell is, −1 if the triangle leaves it out. @param {number} query @param {number} key */
  place(query, key) {
    if (!this.triangle) return query * this.nKey + key;
    return key > query ? -1 : (query * (query + 1)) / 2 + key;
  }

  /** @param {string} name @param {number} block @param {number} head @param {number} query @param {number} key */
  square(name, block, head, query, key) {
    const at = this.place(query, key);
    return at < 0 ? NaN : this.arrays[name][((block - this.first) * this.n_head + head) * this.size + at];
  }

  /** The mean over the heads of a block of what `value` says of each. @param {(head: number) => number} value */
  mean(value) {
    let sum = 0;
    for (let head = 0; head < this.n_head; head++) sum += value(head);
    return sum / this.n_head;
  }

  /** @param {number} block @param {number | "mean"} head @param {number} query @param {number} key @returns {number} */
  pattern(block, head, query, key) {
    if (head === MEAN) return this.mean((one) => this.pattern(block, one, query, key));
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
    const name = `${block} ${head}`;
    let left = this.left.get(name);
    if (left) return left;
    left = new Float64Array(this.nQuery);
    for (let query = 0; query < this.nQuery; query++) {
      for (let key = 1; key < this.nKey; key++) {
        const share = this.pattern(block, head, query, key);
        if (!Number.isNaN(share)) left[query] += share;
      }
    }
    this.left.set(name, left);
    return left;
  }

  /** @param {number} block @param {number} head @param {number} key @returns {number} */
  moved(block, head, key) {
    return this.arrays.moved[((block - this.first) * this.n_head + head) * this.nKey + key];
  }

  /** @param {number} block @param {number | "mean"} head @param {number} query @param {number} key @returns {number} */
  value(block, head, query, key) {
    if (head === MEAN) return this.mean((one) => this.value(block, one, query, key));
    return this.pattern(block, head, query, key) * this.moved(block, head, key);
  }

  /** @param {number} block @param {number | "mean"} _head @param {number} query @param {number} key @returns {number} */
  rollout(block, _head, query, key) {
    const at = this.place(query, key);
    return at < 0 ? NaN : this.arrays.rollout[(block - this.first) * this.size + at];
  }

  /** Whether a block lets a query read a key: the first one here where its own numbers are not here yet.
   *  @param {number} query @param {number} key @param {number} block */
  isVisible(query, key, block) {
    return !Number.isNaN(this.pattern(this.has(block) ? block : this.first, 0, query, key));
  }

  /** @param {"q" | "k"} name @param {number} block @param {number} head @param {number} at @returns {Float32Array} */
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
    return `Block ${block} has a window: a token reads ${size === 1 ? "itself alone" : `itself and the ${size - 1} before it`}.`;
  }

  /** @param {string} name @param {number} block @param {number} head @returns {number} */
  fact(name, block, head) {
    return this.arrays[`fact ${name}`][block * this.n_head + head];
  }

  /**
   * What a head does on average, in a sentence; nothing of a single token. Of a mean of heads, what it hides.
   *
   * @param {import("./settings.js").Head} at
   * @returns {string}
   */
  average(at) {
    if (at[1] === MEAN) return this.hidden?.[at[0]] ?? "";
    const facts = this.facts.map((/** @type {string} */ name) =>
      FACTS[name].says(this.fact(name, .../** @type {[number, number]} */ (at))),
    );
    const said = facts.length ? `On average ${facts.join(", ")}.` : "";
    return [said, this.shared(/** @type {number} */ (at[1])), this.windowed(at[0])].filter(Boolean).join(" ");
  }

  /**
   * The largest value of a head, for a scale that has no end of its own.
   *
   * @param {string} show
   * @param {import("./settings.js").Head[]} heads
   */
  largest(show, heads) {
    if (show !== "value") return 1;
    let most = 0;
    for (const [block, head] of heads) {
      for (let query = 0; query < this.nQuery; query++) {
        for (let key = 0; key < this.nKey; key++) {
          const value = this.value(block, head, query, key);
          if (value > most) most = value;
        }
      }
    }
    return most || 1;
  }

  /** @param {import("./settings.js").Side} side @param {number} at @returns {string} */
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
