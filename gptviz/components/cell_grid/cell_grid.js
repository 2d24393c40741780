// A grid of cells, each a button: all heads of a model, parts of a sum, patches.

import { colourAt, diverging, inkOn, sequential } from "../kit/colour.js";
import { copyOf } from "../kit/copy.js";
import { tools } from "../kit/details.js";
import { closest, focusedBeside, make, TabStop } from "../kit/elements.js";
import { onKeys, walked } from "../kit/keys.js";
import { picture } from "../kit/picture.js";
import { ROLES } from "../kit/roles.js";
import { brief } from "../kit/text.js";
import { View, view } from "../kit/view.js";
import { said, tableOfCells, textOf } from "./cells.js";

/** @typedef {import("./cells.js").Cell} Cell @typedef {import("./cells.js").Data} Data */

// Of more rows than this all are in sight at once: their cells are low, and show no number.
const MANY_ROWS = 16;

class CellGrid extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    /** @type {Data} */
    this.data = /** @type {any} */ (null); // until the first payload
    this.stop = new TabStop();
    /** By row and column. @type {(HTMLButtonElement | null)[][]} */
    this.buttons = [];
    this.grid = make("div", "small grid", undefined, { role: "grid" });
    this.legend = make("div", "legend note");
    this.frame = make("div", "frame", [this.grid]);
    this.foot = make("div", "row");
    root.replaceChildren(this.frame, this.legend, this.foot);
    this.grid.addEventListener("click", (event) => {
      const name = closest(event, ".cell")?.dataset.name;
      if (name !== undefined) this.send("choose", { name, of: this.data.of });
    });
    onKeys(this.grid, (event) => this.key(event));
    this.grid.addEventListener("focusin", (event) => this.stop.reach(closest(event, ".cell")));
  }

  /** @param {Data} data */
  show(data) {
    const focused = focusedBeside(this.root)?.dataset.name;
    this.data = data;
    const [low, high] = data.ends;
    this.colours = low < 0 ? diverging(this.root) : sequential(ROLES.pattern, this.root);
    this.grid.setAttribute("aria-label", data.label);
    this.grid.style.setProperty("--columns", String(data.heads.length));
    this.grid.classList.toggle("dense", data.rows.length > MANY_ROWS);
    this.buttons = data.rows.map(({ cells }, row) => cells.map((cell, column) => cell && this.button(cell, row, column)));
    const head = { role: "columnheader" };
    const heads = [make("span", "corner", "", head), ...data.heads.map((name) => make("span", "column", name, head))];
    const lines = data.rows.map(({ name }, row) => [
      make("span", "name", name, { role: "rowheader" }),
      ...this.buttons[row].map((button) => make("span", "place", button ? [button] : [], { role: "gridcell" })),
    ]);
    this.grid.replaceChildren(...[heads, ...lines].map((cells) => make("div", "line", cells, { role: "row" })));
    const all = this.buttons.flat().filter((button) => button !== null);
    const again = all.find((button) => button.dataset.name === focused);
    this.stop.reach(again ?? all.find((button) => button.ariaPressed === "true") ?? all[0]);
    again?.focus({ preventScroll: true });
    if (!again) this.reveal(all.find((button) => button.ariaPressed === "true"));
    this.legend.textContent = data.legend + (high ? ` Scale: ${this.scale}` : "");
    this.foot.replaceChildren(
      make("span", "note", data.hint),
      tools(this.root, {
        name: data.file,
        numbers: () => tableOfCells(data),
        code: () => data.code,
        picture: () => this.picture(),
      }),
    );
  }

  /** Scroll the frame, not the page, to a cell. @param {HTMLElement | undefined} cell */
  reveal(cell) {
    if (!cell) return;
    const at = cell.getBoundingClientRect(),
      seen = this.frame.getBoundingClientRect();
    if (at.top < seen.top || at.bottom > seen.bottom) this.frame.scrollTop += at.top - seen.top - seen.height / 2;
    if (at.left < seen.left || at.right > seen.right) this.frame.scrollLeft += at.left - seen.left - seen.width / 2;
  }

  /** The ends of the scale, in words. */
  get scale() {
    const { ends, unit } = this.data;
    const [low, high] = ends.map((end) => (Number.isInteger(end) ? String(end) : brief(end)));
    return `${ends[0] < 0 ? `± ${high}` : `${low} to ${high}`} ${unit}`.trimEnd();
  }

  /** @param {Cell} cell @param {number} row @param {number} column */
  button(cell, row, column) {
    const { ends } = this.data;
    const [low, high] = ends,
      isFramed = cell.chosen || cell.state !== null,
      words = said(cell, this.data);
    const look = { title: words, "aria-label": words, "aria-pressed": isFramed, tabindex: -1 };
    const button = make("button", "bare cell", textOf(cell, high > low), look);
    Object.assign(button.dataset, { name: cell.name, row, column });
    button.classList.toggle("framed", isFramed);
    if (cell.value !== null && high > low) {
      const colour = colourAt(/** @type {ArrayLike<number>} */ (this.colours), (cell.value - low) / (high - low));
      Object.assign(button.style, { backgroundColor: colour, color: inkOn(colour) });
    }
    return button;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = closest(event, ".cell")?.dataset;
    if (!at) return false;
    const { buttons } = this,
      columns = this.data.heads.length;
    const from = { row: Number(at.row), column: Number(at.column) };
    const to = walked(from, event.key, buttons.length, columns, ({ row, column }) => buttons[row][column] !== null);
    if (to) this.stop.focus(buttons[to.row][to.column], this.frame);
    return to !== null;
  }

  picture() {
    const { title, model, prompt, settings, ends } = this.data;
    const heading = { title, model, prompt, settings: [...settings, ...(ends[1] ? [this.scale] : [])] };
    return picture(this.root, heading, copyOf([this.grid]));
  }
}

export default view(CellGrid);
