// The words of the cells of the grid. Nothing here draws.

import { brief } from "../kit/text.js";

/**
 * A cell: see `Cell` in __init__.py.
 *
 * @typedef {object} Cell
 * @property {string} name
 * @property {string} title
 * @property {number | null} value null where it is not known
 * @property {string} text
 * @property {string | null} state
 * @property {boolean} chosen
 *
 * @typedef {object} Data what the server sends: see `About` in __init__.py
 * @property {string} of
 * @property {string} title
 * @property {string} label
 * @property {string} says
 * @property {string} unit
 * @property {string} legend
 * @property {string} hint
 * @property {string} file
 * @property {string} model
 * @property {string} prompt
 * @property {string} code
 * @property {string[]} settings
 * @property {[name: string, state: string, value: string]} table the columns of the table of all numbers
 * @property {string[]} heads what the columns of the grid are called
 * @property {{ name: string, cells: (Cell | null)[] }[]} rows
 * @property {[low: number, high: number]} ends
 */

/** A value with its sign. @param {number} value */
export function signed(value) {
  const size = Math.abs(value);
  const digits = size >= 0.0005 ? size.toFixed(size >= 0.995 ? 1 : size >= 0.0995 ? 2 : 3) : "0";
  return digits === "0" ? digits : `${value < 0 ? "−" : "+"}${digits}`;
}

/** What stands in a cell: its state, else its number. @param {Cell} cell @param {boolean} hasScale */
export function textOf({ state, value, text }, hasScale) {
  if (state !== null) return state.includes("=") ? state.split("=")[1] : "off";
  return value === null || !hasScale ? "" : text || signed(value);
}

/** A cell in words. @param {Cell} cell @param {Pick<Data, "says" | "unit" | "ends">} data */
export function said({ title, state, value }, { says, unit, ends }) {
  const edited = state === null ? "" : `, edited: ${state}`;
  if (value === null) return title + edited;
  const sign = value < 0 ? "−" : ends[0] < 0 ? "+" : "";
  return `${title}${edited}; ${says} ${sign}${brief(Math.abs(value))} ${unit}`.trimEnd();
}

/** The numbers as a table. @param {Data} data @returns {import("../kit/details.js").Table} */
export function tableOfCells({ rows, table }) {
  const hasStates = table[1] !== "";
  const cells = rows.flatMap((row) => row.cells.filter((cell) => cell !== null));
  return {
    columns: table.filter(Boolean),
    rows: cells.map(({ name, state, value }) => [name, ...(hasStates ? [state ?? ""] : []), value]),
  };
}
