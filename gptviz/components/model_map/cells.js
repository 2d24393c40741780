// The numbers of a tensor: where they stand on a page, what their rows and columns are called. Nothing here draws.

import { brief, count } from "../kit/text.js";
import { placed } from "./boxes.js";

// Axes whose indices are called by their own names.
const NAMED = ["vocabulary", "label", "token", "source token", "head", "key head"];
// Axes on which heads stand side by side, and the letters for one of them.
/** @type {Record<string, string>} */
const JOINED = { "head · d_head": "h", "key head · d_head": "kh" };

/** Whether a vector is written in lines like a text: its numbers have no names. @param {{ shape: number[], axes: string[] }} piece */
export function isWrapped(piece) {
  return piece.shape.length === 1 && !NAMED.includes(piece.axes[0]);
}

/** From `first` on at most `count` indices, below `size`. @param {number} first @param {number} most @param {number} size */
function span(first, most, size) {
  return Array.from({ length: Math.max(0, Math.min(most, size - first)) }, (_, i) => first + i);
}

/** A page of a tensor, of which all numbers were sent or only those of the page. */
export class Cells {
  /**
   * @param {object} what
   * @param {import("./boxes.js").Piece} what.piece the tensor as the model has it
   * @param {import("./boxes.js").Page} what.tensor what came of it
   * @param {number[]} what.at the first index shown along each axis
   * @param {import("./boxes.js").Payload} what.data
   */
  constructor({ piece, tensor, at, data }) {
    this.piece = piece;
    this.tensor = tensor;
    this.at = [...at];
    this.data = data;
    this.values = data.arrays.tensor;
    const [smallest, largest, mean, size] = data.arrays.summary;
    this.smallest = smallest;
    this.largest = largest;
    this.mean = mean;
    this.size = size;
    this.most = Math.max(Math.abs(this.smallest), Math.abs(this.largest));
    /** Whether the numbers are shares of a row. */
    this.isShare = piece.kind === "activation" && piece.symbol === "pattern";
    /** Whether the mask hides later keys from a query, and how many keys a window leaves it. */
    this.isHiding = this.isShare && data.mask === "causal" && !/encoder|cross/.test(piece.name);
    this.window = this.isHiding ? (data.windows[placed(piece.name).block ?? 0] ?? Infinity) : Infinity;
  }

  /** What an index of an axis is called. @param {number} axis @param {number} index */
  nameOf(axis, index) {
    const { tensor, data } = this;
    const labels = tensor.labels[axis];
    if (labels) return labels[tensor.whole ? index : index - tensor.at[axis]];
    const name = this.piece.axes[axis];
    if (name in JOINED) return `${JOINED[name]}${Math.floor(index / data.d_head)}·${index % data.d_head}`; // head and dimension
    if (name === "distance") return String(index - data.context + 1).replace("-", "−");
    return String(index);
  }

  /** The number at these indices, NaN where it is not here. @param {number[]} indices */
  valueAt(indices) {
    const { values, tensor } = this;
    const shape = values.shape;
    let own = indices;
    if (!tensor.whole)
      own = indices.slice(-shape.length).map((index, i) => index - tensor.at[i + tensor.at.length - shape.length]);
    return values[own.reduce((place, index, axis) => place * shape[axis] + index, 0)];
  }

  /** The rows and columns of the page: their names and numbers, and the indices of each cell. */
  get grid() {
    const { piece, at, data } = this;
    const { shape } = piece,
      { page } = data;
    if (isWrapped(piece)) {
      const rows = [];
      for (let from = at[0]; from < Math.min(shape[0], at[0] + page * page); from += page)
        rows.push({ name: String(from), number: from, cells: span(from, page, shape[0]).map((index) => [index]) });
      return { rows, columns: span(0, page, page).map((i) => ({ name: `+${i}`, number: i })) };
    }
    if (shape.length === 1) {
      const rows = span(at[0], page, shape[0]).map((row) => ({ name: this.nameOf(0, row), number: row, cells: [[row]] }));
      return { rows, columns: [{ name: piece.symbol, number: null }] };
    }
    const [down, across] = [shape.length - 2, shape.length - 1];
    /** @param {number} axis */
    const shown = (axis) => span(at[axis], page, shape[axis]);
    const lead = at.slice(0, -2);
    const rows = shown(down).map((row) => {
      return { name: this.nameOf(down, row), number: row, cells: shown(across).map((column) => [...lead, row, column]) };
    });
    return { rows, columns: shown(across).map((index) => ({ name: this.nameOf(across, index), number: index })) };
  }

  /** Where on the scale of colour a number is, 0 … 1. @param {number} value */
  placeOf(value) {
    return this.isShare ? value : 0.5 + value / (this.most || 1) / 2;
  }

  /** The numbers at the ends of the scale. */
  get ends() {
    return this.isShare ? ["0", "1"] : [brief(-this.most), brief(this.most)];
  }

  /** What the scale of colour is of. */
  get unit() {
    if (this.isShare) return `share of the row${this.isHiding ? "; what the mask hides counts as 0" : ""}`;
    const all = this.piece.shape.reduce((product, size) => product * size, 1);
    return `${this.piece.symbol}, up to the largest of all ${count(all)} numbers`;
  }

  /** A number as it stands in its cell: none where the mask hides a key from a query. @param {number[]} indices */
  written(indices) {
    const back = indices[indices.length - 2] - indices[indices.length - 1];
    if (this.isHiding && (back < 0 || back >= this.window)) return "";
    const value = this.valueAt(indices);
    return value === 0 ? "0" : brief(value);
  }

  /** All numbers that are here, one a row. */
  get table() {
    const { piece, tensor, values } = this;
    const isNamed = piece.axes.map((name, axis) => Boolean(tensor.labels[axis]) || name in JOINED || name === "distance");
    const columns = piece.axes.flatMap((name, axis) => (isNamed[axis] ? [`${name} position`, name] : [name]));
    const { shape } = values;
    const missing = piece.shape.length - shape.length; // axes of which only the index shown is here
    const lead = tensor.whole ? [] : tensor.at.slice(0, missing);
    const rows = [];
    const indices = new Array(shape.length).fill(0);
    for (let i = 0; i < values.length; i++) {
      const all = [...lead, ...indices.map((index, axis) => (tensor.whole ? index : index + tensor.at[axis + missing]))];
      rows.push([...all.flatMap((index, axis) => (isNamed[axis] ? [index, this.nameOf(axis, index)] : [index])), values[i]]);
      for (let axis = shape.length - 1; axis >= 0 && ++indices[axis] === shape[axis]; axis--) indices[axis] = 0;
    }
    return { columns: [...columns, piece.symbol], rows };
  }
}
