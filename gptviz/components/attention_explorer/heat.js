// One head as a heatmap.

import { make, shape } from "../kit/elements.js";
import { Heatmap, legendOf, paintAs, poolOf } from "../kit/heatmap.js";
import { onKeys } from "../kit/keys.js";
import { ROLES } from "../kit/roles.js";
import { rem } from "../kit/size.js";
import { shortened } from "../kit/text.js";
import { MEAN, SHOWS, SIDES } from "./settings.js";

// Of the names on the axes: their size and the largest cell in rem, the width of a letter as a share of its height, the most letters.
const SIZE = 0.75,
  LARGEST_CELL = 2.6,
  LETTER = 0.62,
  LONGEST = 6;
// Pixels, so that there is something to see in the smallest room.
const SMALLEST_CELL = 0.01;
// Where there is no room to name every token, one in this many is named.
const STEPS = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];
const ROLLOUT =
  "For each block: half the mean of its heads, half the token itself; multiplied from block 0 up. " +
  "The head makes no difference.";

/** One head, queries downwards and keys across; a cell that is chosen opens its arithmetic. */
export class Heat {
  /** @param {import("./attention_explorer.js").Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.title = make("strong", "title");
    this.about = make("p", "note about", undefined, { tabindex: "0" }); // on a low window it scrolls
    this.heatmap = new Heatmap("heatmap");
    this.legend = make("div", "legend");
    this.element = make("div", "right", [this.title, this.heatmap.frame, this.legend, this.about]);
    this.cross = /** @type {const} */ (["query", "key"]).map((side) =>
      shape("rect", { fill: "none", stroke: ROLES[side], "stroke-width": 1.5 }),
    );
    const { frame } = this.heatmap;
    frame.addEventListener("pointermove", (event) => this.over(event));
    frame.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && explorer.look({}));
    frame.addEventListener("pointerdown", (event) => (this.touched = event.pointerType === "touch"));
    frame.addEventListener("click", (event) => this.clicked(event));
    onKeys(frame, (event) => this.key(event));
  }

  /** The cells' size, and the room around them. */
  resize() {
    const { numbers } = this.explorer;
    const layout = layoutOf(numbers, this.explorer.heatRoom(this), rem());
    const { left, top, cell } = layout;
    this.heatmap.lay(numbers.nQuery, numbers.nKey, { left, top, width: cell, height: cell });
    this.heatmap.marks.replaceChildren(...axes(numbers, layout), ...this.cross);
    const before = this.pool;
    /** How many tokens a pixel of the picture stands for along each axis. @type {number | undefined} */
    this.pool = poolOf(cell);
    if (before && before !== this.pool) this.draw();
  }

  /** Another head, or another scale. */
  draw() {
    const { explorer } = this;
    const { numbers, choice, selection } = explorer;
    const { large } = selection;
    const show = SHOWS[choice.show];
    this.title.textContent = selection.name;
    const help = "arrow keys walk the cells, Enter opens the arithmetic of one";
    this.heatmap.frame.setAttribute("aria-label", `Heatmap of ${selection.name}, ${show.name}: ${help}`);
    const pool = numbers.has(large[0]) ? (this.pool ?? 1) : 1;
    const { canvas } = this.heatmap;
    if (numbers.has(large[0])) explorer.paint(canvas, large, choice.show, pool);
    else if (large[1] === MEAN)
      canvas.width = canvas.height = 1; // blank until the numbers are here
    else paintAs(canvas, explorer.grid.of(large).canvas);
    const blank = [numbers.masked ? "may not be read" : "", choice.show === "rest" ? "the first token" : ""].filter(Boolean);
    const unit = selection.unit + (blank.length ? `; blank: ${blank.join(", or ")}` : "");
    this.legend.replaceChildren(...legendOf(explorer.palettes[show.role], ...selection.ends, unit));
    const half = numbers.half ? " Numbers have only three digits: with more digits there would be too much to send." : "";
    const pooled = pool > 1 ? ` The picture is too small for single cells: each dot is the largest of ${pool} × ${pool}.` : "";
    this.about.textContent = (choice.show === "rollout" ? ROLLOUT : numbers.average(large)) + half + pooled;
  }

  /** Outline the row and the column that are looked at. @param {import("./settings.js").Aim | null} aim */
  point(aim) {
    const { numbers } = this.explorer;
    /** @type {{ query?: number, key?: number }} */
    const at = aim ? { [aim.side]: aim.index, ...(aim.partner === null ? {} : { [SIDES[aim.side]]: aim.partner }) } : {};
    const [row, column] = this.cross,
      { query, key } = at;
    this.heatmap.outline(row, query === undefined ? null : { row: query, column: 0, columns: numbers.nKey }, 2);
    this.heatmap.outline(column, key === undefined ? null : { row: 0, column: key, rows: numbers.nQuery }, 2);
  }

  /** @param {MouseEvent} event */
  at(event) {
    const cell = this.heatmap.at(event);
    return cell && { query: cell.row, key: cell.column };
  }

  /** Whether the block that is shown lets a query read a key. @param {{ query: number, key: number }} at */
  isVisible({ query, key }) {
    const { numbers, choice } = this.explorer;
    return numbers.isVisible(query, key, choice.block);
  }

  /** @param {PointerEvent} event */
  over(event) {
    if (event.pointerType === "touch") return; // a tap does it
    const at = this.at(event);
    this.explorer.look(at && this.isVisible(at) ? at : {});
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const at = this.at(event);
    if (!at || !this.isVisible(at)) return;
    const before = this.explorer.hover;
    // A first tap does what hovering does, a second one on the same cell opens it.
    if (this.touched && !(before.query === at.query && before.key === at.key) && !this.explorer.selection.isOpen)
      this.explorer.look(at);
    else this.explorer.open(at.query, at.key);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { explorer } = this;
    const { numbers, choice, hover } = explorer;
    const from = { query: hover.query ?? choice.query ?? numbers.nQuery - 1, key: hover.key ?? choice.key ?? 0 };
    const to = explorer.walked(event.key, from);
    if (to) {
      if (explorer.selection.isOpen) explorer.choose(to);
      explorer.look(to, true);
    } else if (event.key === "Enter" || event.key === " ") {
      if (this.isVisible(from)) explorer.open(from.query, from.key);
    } else if (event.key === "Escape") explorer.free();
    else return false;
    return true;
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
 * As large as there is room. Names of tokens are as large as all type, so where cells are smaller some tokens alone are named.
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

/**
 * The axes of a heatmap: their names, and those of all tokens or of some.
 *
 * @param {{ queries: string[], keys: string[], reads: string, isRead: string }} numbers
 * @param {Layout} layout
 */
export function axes({ queries, keys, reads, isRead }, { left, top, cell, size, every, upright }) {
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
