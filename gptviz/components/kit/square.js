// The pattern of one head as a square: queries downwards, keys across.

import { shape } from "./elements.js";
import { Heatmap } from "./heatmap.js";
import { ROLES } from "./roles.js";
import { rem } from "./size.js";
import { shortened } from "./text.js";

// Of the names on the axes: their size and the largest cell in rem, the width of a letter as a share of its height, the most letters.
const SIZE = 0.75,
  LARGEST_CELL = 2.6,
  LETTER = 0.62,
  LONGEST = 6;
// Pixels, so that there is something to see in the smallest room.
const SMALLEST_CELL = 0.01;
// Where there is no room to name every token, one in this many is named.
const STEPS = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];

/** @typedef {{ queries: string[], keys: string[], reads: string, isRead: string }} Sides its tokens, and what its axes are called */

/** The cells of a pattern between the names of its tokens, and outlines of the row and the column that are looked at. */
export class Square extends Heatmap {
  constructor() {
    super("heatmap");
    this.frame.classList.add("square");
    this.cross = [ROLES.query, ROLES.key].map((stroke) => shape("rect", { fill: "none", stroke, "stroke-width": 1.5 }));
  }

  /** Make it as large as there is room, in pixels; gives the side of a cell. @param {Sides} sides @param {{ width: number, height: number }} room */
  fit(sides, room) {
    const layout = layoutOf(sides, room, rem());
    const { left, top, cell } = layout;
    this.lay(sides.queries.length, sides.keys.length, { left, top, width: cell, height: cell });
    this.marks.replaceChildren(...axes(sides, layout), ...this.cross);
    return cell;
  }

  /** Outline the row of a query and the column of a key. @param {{ query?: number | null, key?: number | null }} at */
  point({ query = null, key = null }) {
    const [row, column] = this.cross;
    this.outline(row, query === null ? null : { row: query, column: 0, columns: this.columns }, 2);
    this.outline(column, key === null ? null : { row: 0, column: key, rows: this.rows }, 2);
  }
}

/**
 * Where things stand on a heatmap, in pixels.
 *
 * @typedef {object} Layout
 * @property {number} left room for the names of queries
 * @property {number} top room for the names of keys
 * @property {number} cell the side of a cell
 * @property {number} size of the type
 * @property {number} every which tokens are named: each, or every n-th with its position
 * @property {boolean} upright whether the names of keys stand upright, as those of one letter do
 */

/**
 * As large as there is room. Names of tokens are as large as all type, so where cells are smaller only some tokens are named.
 *
 * @param {{ queries: string[], keys: string[] }} numbers
 * @param {{ width: number, height: number }} room
 * @param {number} unit the pixels of one rem
 * @returns {Layout}
 */
export function layoutOf({ queries, keys }, room, unit) {
  const size = SIZE * unit;
  /** @param {string[]} labels */
  const widest = (labels) => Math.min(LONGEST, Math.max(...labels.map((label) => [...label].length)));
  const upright = widest(keys) === 1;
  const name = size * LETTER;
  const left = 2 * size + name * widest(queries),
    top = 1.6 * size + (upright ? 1.1 * size : name * widest(keys) + 0.3 * size);
  /** @param {number} beside @param {number} above */
  const fitting = (beside, above) => Math.min((room.width - beside) / keys.length, (room.height - above) / queries.length);
  const cell = Math.min(fitting(left, top), LARGEST_CELL * unit);
  if (cell >= size) return { left, top, cell, size, every: 1, upright };
  // A name and its position: "some 20", one above the other where they stand upright.
  const digits = String(Math.max(queries.length, keys.length) - 1).length;
  const wide = { left: left + name * (digits + 1), top: top + (upright ? 1.2 * size : name * (digits + 1)) };
  const small = Math.max(SMALLEST_CELL, fitting(wide.left, wide.top));
  // Positions that stand upright need the room of their digits.
  const apart = upright ? Math.max(1.1 * size, name * (digits + 0.7)) : 1.1 * size;
  const every = STEPS.find((step) => step * small >= apart) ?? 5000;
  return { ...wide, cell: small, size, every, upright };
}

/** The axes of a heatmap: their names, and those of all tokens or of some. @param {Sides} sides @param {Layout} layout */
function axes({ queries, keys, reads, isRead }, { left, top, cell, size, every, upright }) {
  /** @param {string} words @param {Record<string, string | number>} attributes */
  const text = (words, attributes) => shape("text", { fill: "currentColor", "font-size": size, ...attributes }, words);
  const mono = { "font-family": "monospace", "dominant-baseline": "central" };
  const marks = [
    text(isRead, { x: left, y: size }),
    text(reads, { transform: `translate(${size} ${top + cell * queries.length}) rotate(-90)` }),
  ];
  for (let i = 0; i < queries.length; i += every) {
    const name = shortened(queries[i], LONGEST);
    const words = every > 1 ? `${name} ${i}` : name;
    marks.push(text(words, { ...mono, x: left - 4, y: top + (i + 0.5) * cell, "text-anchor": "end" }));
  }
  for (let i = 0; i < keys.length; i += every) {
    const name = shortened(keys[i], LONGEST),
      x = left + (i + 0.5) * cell;
    const turned = { ...mono, transform: `translate(${x} ${top - 4}) rotate(-90)` };
    const above = { ...mono, x, "text-anchor": "middle" };
    if (!upright) marks.push(text(every > 1 ? `${name} ${i}` : name, turned));
    else {
      marks.push(text(name, { ...above, y: top - 0.65 * size }));
      if (every > 1) marks.push(text(String(i), { ...above, y: top - 1.75 * size }));
    }
  }
  return marks;
}
