// The words of the cells of the grid. Nothing here draws.

import { brief } from "../kit/text.js";

/**
 * What the server sends: see `Cell`, `About` and `payload` in __init__.py. `heads` is what the columns of the grid are called.
 *
 * @typedef {{ name: string, title: string, value: number | null, text: string, state: string | null, chosen: boolean }} Cell
 *
 * @typedef {{
 *   of: string, title: string, label: string, says: string, unit: string, legend: string, hint: string, file: string, model: string,
 *   prompt: string, code: string, settings: string[], table: [name: string, state: string, value: string], heads: string[],
 *   rows: { name: string, cells: (Cell | null)[] }[], ends: [low: number, high: number],
 * }} Data
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
