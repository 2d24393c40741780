// The cells of the grid: what each says, and how strongly it is coloured. Nothing here draws.

import { brief, count, percent } from "../kit/text.js";

/**
 * @typedef {{ layer: number, index: number }} Cell
 *
 * @typedef {{
 *   of: string, model: string, layers: { name: string, title: string, short: string }[], tokens: string[],
 *   true: (string | null)[], vocabSize: number, spaced: boolean, code: string, declared: import("../kit/values.js").Declared,
 *   asked: Record<string, unknown> | null, number: number, arrays: Record<string, import("../kit/view.js").Numbers>,
 *   first: number, names: string[],
 * }} Lens what the server sends: `first` is the position of the first column; `names` are those of the tokens that are among the
 *   likeliest anywhere
 */

export class Cells {
  /** @param {Lens} lens */
  constructor(lens) {
    this.lens = lens;
    const [nLayer, nPosition, nTop] = lens.arrays.top.shape;
    this.nLayer = nLayer;
    this.nPosition = nPosition;
    this.nTop = nTop;
  }

  /** @param {Cell} cell */
  at({ layer, index }) {
    return layer * this.nPosition + index;
  }

  /** The likeliest tokens of a cell with their probabilities. @param {Cell} cell @returns {[string, number][]} */
  likeliest(cell) {
    const { names, arrays } = this.lens,
      from = this.at(cell) * this.nTop;
    return Array.from({ length: this.nTop }, (_, i) => [names[arrays.top[from + i]], arrays.probability[from + i]]);
  }

  /** The likeliest token of a cell. @param {Cell} cell */
  best(cell) {
    return this.lens.names[this.lens.arrays.top[this.at(cell) * this.nTop]];
  }

  /** @param {Cell} cell */
  numbers(cell) {
    const { probability, final, entropy, rank, really } = this.lens.arrays,
      at = this.at(cell);
    const rest = { final: final[at], entropy: entropy[at], rank: rank[at], really: really[at] };
    return { probability: probability[at * this.nTop], ...rest };
  }

  /** The layer with this name, -1 if there is none. @param {unknown} name */
  layerNamed(name) {
    return this.lens.layers.findIndex((layer) => layer.name === name);
  }

  /** Where a cell is, in words. @param {Cell} cell */
  place({ layer, index }) {
    const { layers, first, tokens } = this.lens;
    return `After ${layers[layer].title}, at “${tokens[index]}” (position ${first + index})`;
  }
}

/**
 * What colours stand for. The strongest is always where the model is most decided, or right.
 *
 * @type {Record<string, {
 *   title: string, unit: string, ends: (vocabSize: number) => [string, string],
 *   strength: (cell: { probability: number, final: number, entropy: number, rank: number }, vocabSize: number) => number,
 * }>}
 */
export const COLOURS = {
  probability: {
    title: "Probability",
    unit: "probability of the likeliest token",
    ends: () => ["0 %", "100 %"],
    strength: ({ probability }) => probability,
  },
  final: {
    title: "Probability of the final guess",
    unit: "probability of the token that the last row guesses",
    ends: () => ["0 %", "100 %"],
    strength: ({ final }) => final,
  },
  entropy: {
    title: "Entropy",
    unit: "entropy of the guess in nats: 0 is certain",
    ends: (vocabSize) => [brief(Math.log(vocabSize)), "0"],
    strength: ({ entropy }, vocabSize) => (vocabSize > 1 ? 1 - entropy / Math.log(vocabSize) : 1),
  },
  rank: {
    title: "Rank of the true token",
    unit: "rank of the token that really comes next, on a logarithmic scale; blank: not known",
    ends: (vocabSize) => [count(vocabSize), "1"],
    strength: ({ rank }, vocabSize) => (rank < 1 ? NaN : vocabSize > 1 ? 1 - Math.log(rank) / Math.log(vocabSize) : 1),
  },
};

/** What a cell says, in words. @param {Cells} cells @param {Cell} cell */
export function saidOf(cells, cell) {
  const { entropy, rank, really } = cells.numbers(cell);
  const truth = cells.lens.true[cell.index];
  const known = truth === null ? "" : `; really next: “${truth}”, ${percent(really)}, rank ${count(rank)}`;
  return `entropy ${brief(entropy)} nats${known}`;
}

/** The grid as a table, with all digits. @param {Cells} cells */
export function tableOf(cells) {
  const { layers, first, tokens } = cells.lens;
  const columns = ["layer", "position", "token", "likeliest", "probability", "entropy in nats"];
  columns.push("really next", "its rank", "its probability");
  /** @type {(string | number | null)[][]} */
  const rows = [];
  for (let layer = 0; layer < cells.nLayer; layer++) {
    for (let index = 0; index < cells.nPosition; index++) {
      const { probability, entropy, rank, really } = cells.numbers({ layer, index });
      const truth = cells.lens.true[index];
      const row = [layers[layer].name, first + index, tokens[index], cells.best({ layer, index }), probability, entropy];
      rows.push([...row, truth, truth === null ? null : rank, truth === null ? null : really]);
    }
  }
  return { columns, rows };
}
