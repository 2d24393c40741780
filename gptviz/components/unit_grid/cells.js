// The words of the cells of the grid. Nothing here draws.

import { brief } from "../kit/text.js";

/**
 * A head or an MLP.
 *
 * @typedef {object} Cell
 * @property {string} unit its name
 * @property {string} title its name in words
 * @property {string | null} edit what becomes of it, null where nothing does
 * @property {number | null} change how much the loss rises without it, null where that is not known
 *
 * @typedef {object} Data
 * @property {string} of
 * @property {string} model
 * @property {string} prompt
 * @property {string} measured what the numbers are
 * @property {string} code
 * @property {string[]} settings what a reader has chosen
 * @property {string[]} columns
 * @property {{ name: string, cells: (Cell | null)[] }[]} rows
 */

/** All cells, line by line. @param {Data} data @returns {Cell[]} */
export function all({ rows }) {
  return rows.flatMap(({ cells }) => cells.filter((cell) => cell !== null));
}

/** The largest change, up or down, where the scale ends; 0 where none is known. @param {Data} data */
export function limitOf(data) {
  return Math.max(0, ...all(data).map(({ change }) => Math.abs(change ?? 0)));
}

/** A change with its sign. @param {number} change */
export function signed(change) {
  const size = Math.abs(change);
  const digits = size >= 0.0005 ? size.toFixed(size >= 0.995 ? 1 : size >= 0.0995 ? 2 : 3) : "0";
  return digits === "0" ? digits : `${change < 0 ? "−" : "+"}${digits}`;
}

/** A cell in words. @param {Cell} cell @param {string} measured */
export function said({ title, edit, change }, measured) {
  const state = edit === null ? "" : `, edited: ${edit}`;
  const rise =
    change === null ? "" : `; without it the loss changes by ${change < 0 ? "−" : "+"}${brief(Math.abs(change))} ${measured}`;
  return title + state + rise;
}

/** The numbers as a table. @param {Data} data @returns {import("../kit/details.js").Table} */
export function tableOfUnits(data) {
  return {
    columns: ["unit", "edit", `change of the loss without it (${data.measured})`],
    rows: all(data).map(({ unit, edit, change }) => [unit, edit ?? "", change]),
  };
}
