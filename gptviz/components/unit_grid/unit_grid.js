// All heads and MLPs of a model: which are switched off, and what the loss is without each.

import { colourAt, diverging, inkOn } from "../kit/colour.js";
import { copyOf } from "../kit/copy.js";
import { tools } from "../kit/details.js";
import { closest, make, TabStop } from "../kit/elements.js";
import { onKeys, walked } from "../kit/keys.js";
import { picture } from "../kit/picture.js";
import { brief } from "../kit/text.js";
import { view } from "../kit/view.js";
import { limitOf, said, signed, tableOfUnits } from "./cells.js";

/** @typedef {import("./cells.js").Cell} Cell @typedef {import("./cells.js").Data} Data */

const HINT = "A click, or Enter, switches a head or an MLP off on every page, or brings it back; the arrow keys walk.";

class UnitGrid {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {(event: string, value: unknown) => void} */
    this.send = () => {};
    this.stop = new TabStop();
    /** @type {Map<string, HTMLButtonElement>} */
    this.buttons = new Map();
    this.grid = make("div", "grid", undefined, { role: "group", "aria-label": "Heads and MLPs: blocks downwards" });
    this.legend = make("div", "legend note");
    this.frame = make("div", "frame");
    this.frame.append(this.grid);
    const foot = make("div", "row");
    foot.append(
      make("span", "note", HINT),
      tools(root, {
        name: "switch_off",
        numbers: () => tableOfUnits(/** @type {Data} */ (this.data)),
        code: () => /** @type {Data} */ (this.data).code,
        picture: () => this.picture(),
      }),
    );
    root.replaceChildren(this.frame, this.legend, foot);
    this.grid.addEventListener("click", (event) => this.clicked(event));
    onKeys(this.grid, (event) => this.key(event));
    this.grid.addEventListener("focusin", (event) => {
      if (event.target instanceof HTMLButtonElement) this.stop.reach(event.target);
    });
  }

  /** @param {Data} data */
  show(data) {
    const shadow = /** @type {ShadowRoot} */ (this.root.getRootNode());
    const focused = shadow.activeElement instanceof HTMLButtonElement ? shadow.activeElement.dataset.unit : undefined;
    this.data = data;
    this.limit = limitOf(data);
    this.colours = diverging(this.root);
    this.buttons.clear();
    this.grid.style.setProperty("--columns", String(data.columns.length));
    this.grid.replaceChildren(make("span", "corner"), ...data.columns.map((name) => make("span", "column", name)));
    data.rows.forEach(({ name, cells }, row) => {
      this.grid.append(make("span", "name", name));
      this.grid.append(...cells.map((cell, column) => (cell ? this.cell(cell, { row, column }) : make("span", "none"))));
    });
    this.stop.reach(this.buttons.get(focused ?? "") ?? this.buttons.values().next().value);
    if (focused) this.buttons.get(focused)?.focus({ preventScroll: true });
    this.legend.textContent = this.limit
      ? `Blue: the loss rises without it; orange: it falls. Scale: ± ${brief(this.limit)} ${data.measured}`
      : "Colours, what the loss is without each, come when they are computed: below.";
  }

  /** @param {Cell} cell @param {{ row: number, column: number }} place */
  cell({ unit, title, edit, change }, place) {
    const known = change !== null && this.limit;
    const button = make("button", "bare cell", known ? signed(change) : "", {
      "data-unit": unit,
      tabindex: "-1",
      "aria-pressed": String(edit !== null),
    });
    const words = said({ unit, title, edit, change }, /** @type {Data} */ (this.data).measured);
    button.title = words;
    button.setAttribute("aria-label", words);
    button.classList.toggle("off", edit !== null);
    if (known && this.colours) {
      const colour = colourAt(this.colours, 0.5 + change / (2 * /** @type {number} */ (this.limit)));
      button.style.backgroundColor = colour;
      button.style.color = inkOn(colour);
    }
    if (edit !== null) button.textContent = edit.includes("=") ? edit.split("=")[1] : "off";
    Object.assign(button.dataset, place);
    this.buttons.set(unit, button);
    return button;
  }

  /** @param {Event} event */
  clicked(event) {
    const button = event.target;
    if (button instanceof HTMLButtonElement && this.data) this.send("switch", { unit: button.dataset.unit, of: this.data.of });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { rows, columns } = /** @type {Data} */ (this.data);
    const at = closest(event, ".cell")?.dataset;
    if (!at) return false;
    const from = { row: Number(at.row), column: Number(at.column) };
    const to = walked(from, event.key, rows.length, columns.length, ({ row, column }) => Boolean(rows[row].cells[column]));
    if (to) this.stop.focus(this.buttons.get(rows[to.row].cells[to.column]?.unit ?? ""), this.frame);
    return to !== null;
  }

  picture() {
    const data = /** @type {Data} */ (this.data);
    const copy = copyOf([this.grid]);
    const heading = {
      title: "The loss without each head and each MLP",
      model: data.model,
      prompt: data.prompt,
      settings: [...data.settings, ...(this.limit ? [`${data.measured}, ± ${brief(this.limit)}`] : [])],
    };
    return picture(this.root, heading, copy.drawing, copy);
  }
}

export default view(UnitGrid);
