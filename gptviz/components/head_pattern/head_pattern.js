// The pattern of one head: what each token reads of each other one. All heads together are in attention_explorer.

import { sequential } from "../kit/colour.js";
import { copyOf } from "../kit/copy.js";
import { announce, tools } from "../kit/details.js";
import { make } from "../kit/elements.js";
import { coloursOf, legendOf, paint, poolOf, pooled } from "../kit/heatmap.js";
import { onKeys, walked } from "../kit/keys.js";
import { picture } from "../kit/picture.js";
import { ROLES } from "../kit/roles.js";
import { rem } from "../kit/size.js";
import { Square } from "../kit/square.js";
import { percent, shortened } from "../kit/text.js";
import { View, view } from "../kit/view.js";

/** @typedef {import("../kit/keys.js").Cell} Cell */
/**
 * @typedef {import("../kit/square.js").Sides & {
 *   title: string, code: string, heading: import("../kit/picture.js").Heading, arrays: { pattern: Float32Array },
 * }} Data what the server sends: see `payload` in __init__.py
 */

// In rem: the height that the square takes at most.
const HIGHEST = 24;
const UNIT = "share of the row";
const HINT = "Point at a cell, or walk with the arrow keys, to read its share.";

class HeadPattern extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    /** @type {Data} */
    this.data = /** @type {any} */ (null); // until the first payload
    /** @type {Cell | null} */
    this.at = null; // the cell that is looked at
    this.title = make("strong");
    this.square = new Square();
    this.legend = make("div", "tiny legend");
    this.readout = make("span", "cut note");
    const { frame } = this.square;
    frame.addEventListener("pointermove", (event) => this.look(this.square.at(event)));
    for (const end of ["pointerleave", "blur"]) frame.addEventListener(end, () => this.look(null));
    onKeys(frame, (event) => this.key(event));
    const details = { name: "pattern", numbers: () => this.numbers(), code: () => this.data.code, picture: () => this.picture() };
    const foot = make("div", "row", [this.readout, tools(root, details)]);
    root.replaceChildren(this.title, frame, this.legend, foot);
    this.whenResized(() => this.draw(), root);
  }

  /** @param {Data} data */
  show(data) {
    this.data = data;
    this.title.textContent = data.title;
    this.title.hidden = !data.title;
    this.draw();
    this.look(this.at);
  }

  /** What a query gives a key; NaN where it may not read it. @param {Cell} cell */
  share({ row, column }) {
    const { keys, arrays } = this.data;
    return arrays.pattern[row * keys.length + column];
  }

  get unit() {
    return UNIT + (this.data.arrays.pattern.some(Number.isNaN) ? "; blank: may not be read" : "");
  }

  draw() {
    const { data, square, root } = this,
      width = root.clientWidth;
    if (!data || !width) return;
    const pool = poolOf(square.fit(data, { width, height: Math.min(width, HIGHEST * rem()) }));
    const rows = data.queries.length,
      columns = data.keys.length;
    this.scale = sequential(ROLES.pattern, root);
    const most = pooled((row, column) => this.share({ row, column }), rows, columns, pool);
    paint(square.canvas, Math.ceil(rows / pool), Math.ceil(columns / pool), most, this.scale);
    this.legend.replaceChildren(...legendOf(this.scale, "0 %", "100 %", this.unit));
    square.frame.ariaLabel = `${data.heading.title}: the arrow keys walk the cells`;
  }

  /** Say what a query gives a key; nothing of a cell that may not be read. @param {Cell | null} cell @param {boolean} [aloud] */
  look(cell, aloud = false) {
    const { queries, keys } = this.data;
    const share = cell && cell.row < queries.length && cell.column < keys.length ? this.share(cell) : Number.NaN;
    this.at = Number.isNaN(share) ? null : cell;
    this.square.point(this.at ? { query: this.at.row, key: this.at.column } : {});
    /** @param {string[]} labels @param {number} at */
    const named = (labels, at) => `“${shortened(labels[at], 12)}” (${at})`;
    this.readout.textContent = this.at
      ? `${named(queries, this.at.row)} reads ${named(keys, this.at.column)}: ${percent(share)}`
      : HINT;
    if (aloud) announce(this.root, this.readout.textContent);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { queries, keys } = this.data;
    const from = this.at ?? { row: queries.length - 1, column: 0 };
    const to = walked(from, event.key, queries.length, keys.length, (cell) => !Number.isNaN(this.share(cell)));
    if (to) this.look(to, true);
    else if (event.key === "Escape") this.look(null);
    else return false;
    return true;
  }

  numbers() {
    const { queries, keys } = this.data;
    const rows = queries.flatMap((query, row) =>
      keys.flatMap((key, column) => {
        const share = this.share({ row, column });
        return Number.isNaN(share) ? [] : [[row, query, column, key, share]];
      }),
    );
    return { columns: ["query position", "query", "key position", "key", UNIT], rows };
  }

  picture() {
    const stops = coloursOf(/** @type {ArrayLike<number>} */ (this.scale));
    const heading = { ...this.data.heading, scale: { stops, low: "0 %", high: "100 %", unit: this.unit } };
    return picture(this.root, heading, copyOf([this.square.frame]));
  }
}

export default view(HeadPattern);
