// The arithmetic from logits to a token, as gptviz/generate/sampling.py does it: over the whole vocabulary, in double precision.

// A sum that is below its limit only by rounding has reached it, as in the library.
const ROUNDING = 1e-12;

/** @typedef {import("./choices.js").Chosen} Chosen */

/** Every stage from logits to what is drawn from. */
export class Stages {
  /** @param {Float32Array} logits @param {number} [used] how many tokens can be drawn, from the first on: the others stand for nothing */
  constructor(logits, used = logits.length) {
    this.logits = logits;
    this.size = logits.length;
    this.used = used;
    this.highest = logits.reduce((most, z) => Math.max(most, z), -Infinity);
    // The likeliest first; of equally likely tokens the smaller id first. Two that are both impossible differ by NaN. Those that are
    // never drawn come last, so that the tokens a limit keeps are still the first ones.
    this.order = new Uint32Array(this.size)
      .map((_, i) => i)
      .sort((a, b) => Number(a >= used) - Number(b >= used) || logits[b] - logits[a] || a - b);
    this.rank = new Uint32Array(this.size);
    this.order.forEach((token, rank) => {
      this.rank[token] = rank;
    });
    this.before = new Float64Array(this.size); // the model's probabilities
    this.scaled = new Float64Array(this.size); // logits ÷ temperature
    this.hot = new Float64Array(this.size); // the softmax of these
    this.reached = new Float64Array(this.size); // by rank: the sum that top-p is compared with
    this.after = new Float64Array(this.size); // what is drawn from
    this.ends = new Float64Array(this.size); // where each token's interval of [0, 1) ends
    this.temperature = 1;
    this.inTopK = this.kept = used; // how many of the likeliest top-k leaves, and top-p
    this.sumOfTopK = this.sumKept = 1;
    for (let i = 0; i < this.size; i++) this.scaled[i] = logits[i] - this.highest;
    this.softmax(this.before);
    this.scale(1);
  }

  /** `scaled`: logits ÷ temperature, the largest moved to 0, which keeps a tiny temperature finite; −∞ for what is never drawn. @param {number} temperature */
  scale(temperature) {
    const { logits, scaled, used, order } = this;
    const largest = logits[order[0]];
    scaled.fill(-Infinity);
    if (temperature === 0) scaled[order[0]] = 0;
    else for (let i = 0; i < used; i++) scaled[i] = (logits[i] - largest) / temperature;
  }

  /** The softmax of `scaled` over the `kept` likeliest tokens. @param {Float64Array} into @param {number} [kept] */
  softmax(into, kept = this.size) {
    const { scaled, rank, size } = this;
    let sum = 0;
    for (let i = 0; i < size; i++) sum += into[i] = rank[i] < kept ? Math.exp(scaled[i]) : 0;
    for (let i = 0; i < size; i++) into[i] /= sum;
  }

  /** Compute every stage again. Top-k and top-p keep the likeliest: two counts, `inTopK` and `kept`, say which. @param {Partial<Pick<Chosen, "temperature" | "top_k" | "top_p">>} chosen what is missing changes nothing */
  set({ temperature = 1, top_k = 0, top_p = 1 }) {
    const { order, hot, reached } = this;
    this.temperature = temperature;
    this.scale(temperature);
    this.softmax(hot);
    this.inTopK = top_k ? Math.min(top_k, this.used) : this.used;
    this.sumOfTopK = 0;
    for (let rank = 0; rank < this.inTopK; rank++) this.sumOfTopK += hot[order[rank]];
    this.kept = 1;
    this.sumKept = 0;
    for (let rank = 0, sum = 0; rank < this.inTopK; rank++) {
      if (top_p === 1 || sum < top_p - ROUNDING || rank === 0) {
        this.kept = rank + 1;
        this.sumKept += hot[order[rank]];
      }
      sum += hot[order[rank]] / this.sumOfTopK;
      reached[rank] = sum;
    }
    this.softmax(this.after, this.kept);
    let end = 0; // of the intervals, which lie in the vocabulary's order
    for (let i = 0; i < this.size; i++) this.ends[i] = end += this.after[i];
    for (let i = 0; i < this.size; i++) this.ends[i] /= end;
  }

  /** Where a token's interval begins. @param {number} token */
  start(token) {
    return token ? this.ends[token - 1] : 0;
  }

  /** The token into whose interval a number in [0, 1) falls. @param {number} number */
  draw(number) {
    let low = 0,
      high = this.size - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] > number) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The limit that took a token out of the draw, "" if none did. @param {number} token */
  cut(token) {
    if (token >= this.used) return "unused";
    if (this.rank[token] >= this.inTopK) return "top-k";
    if (this.rank[token] >= this.kept) return "top-p";
    return this.temperature === 0 && this.rank[token] > 0 ? "temperature 0" : "";
  }

  /** How many tokens can still be drawn. */
  get left() {
    return this.temperature === 0 ? 1 : this.kept;
  }
}

/** −Σ p ln p, in nats. @param {Float64Array} probabilities */
export function entropy(probabilities) {
  let sum = 0;
  for (const p of probabilities) if (p > 0) sum -= p * Math.log(p);
  return Math.max(0, sum);
}
