// The numbers of a box on the page: a table in colours, its scale, and the way to other pages of the tensor.

import { chip } from "../kit/chips.js";
import { colourAt, diverging, inkOn, sequential } from "../kit/colour.js";
import { copyOf } from "../kit/copy.js";
import { tools } from "../kit/details.js";
import { make } from "../kit/elements.js";
import { coloursOf, legendOf } from "../kit/heatmap.js";
import { picture } from "../kit/picture.js";
import { ROLES } from "../kit/roles.js";
import { brief, count, shortened } from "../kit/text.js";
import { sizes } from "./boxes.js";
import { Cells, isWrapped } from "./cells.js";
import { subjectOf } from "./export.js";

/** @typedef {import("./boxes.js").Piece} Piece @typedef {import("./boxes.js").Payload} Payload */
/** @typedef {import("./model_map.js").ModelMap} ModelMap */

const NO_NUMBERS =
  "This step has no numbers of its own that the pass records: it changes what comes in as the equation says. " +
  "See the boxes before and after it.";

/** The numbers of the tensor that is open, or what stands in their place. @param {ModelMap} map */
export function tensorOf(map) {
  const { opened, data } = map;
  const piece = opened.tensor;
  if (!piece) return make("div", "tensor", [make("p", "note", NO_NUMBERS)]);
  const parts =
    data.tensor && opened.isOf(data.tensor)
      ? new Tensor(map, new Cells({ piece, tensor: data.tensor, at: opened.at, data })).elements()
      : [make("p", "note waiting", "Reading the numbers…")];
  return make("div", "tensor", [controls(piece, opened.at, data), ...parts]);
}

/** Which page of the tensor is shown, and the way to the others. @param {Piece} piece @param {number[]} at @param {Payload} data */
function controls(piece, at, data) {
  const dimensions = piece.shape.length,
    page = isWrapped(piece) ? data.page * data.page : data.page;
  /** @param {number} size @param {number} axis */
  const group = (size, axis) => {
    const name = piece.axes[axis];
    if (axis < dimensions - 2) {
      const options = Array.from({ length: size }, (_, i) => make("option", "", `${name} ${i}`, { value: i }));
      const select = make("select", "field", options, { "data-axis": axis, "data-of": axis, "aria-label": name });
      select.value = String(at[axis]);
      return [select];
    }
    return steps({ axis, size, first: at[axis], page, isAcross: axis === dimensions - 1 && dimensions > 1, name });
  };
  const groups = piece.shape.map((size, axis) => make("span", "aligned axis", group(size, axis)));
  return make("div", "wrapped controls", groups);
}

/**
 * Buttons to the page before and after, and between them what is shown.
 *
 * @param {{ axis: number, size: number, first: number, page: number, isAcross: boolean, name: string }} what
 */
function steps({ axis, size, first, page, isAcross, name }) {
  const last = Math.min(size, first + page) - 1,
    what = isAcross ? "columns" : "rows";
  /** @param {string} sign @param {number} by @param {boolean} isDisabled */
  const step = (sign, by, isDisabled) => {
    const label = `${by < 0 ? "previous" : "next"} ${what}`;
    const button = make("button", "tool", sign, { "data-step": by, "data-of": axis, "aria-label": label });
    button.disabled = isDisabled;
    return button;
  };
  return [
    step(isAcross ? "←" : "↑", -page, first <= 0),
    make("span", "number", `${name} ${first}–${last} of ${count(size)}`),
    step(isAcross ? "→" : "↓", page, last >= size - 1),
  ];
}

/** A page of numbers, drawn. */
class Tensor {
  /** @param {ModelMap} map @param {Cells} cells */
  constructor(map, cells) {
    this.map = map;
    this.cells = cells;
    this.scale = cells.isShare ? sequential(ROLES.pattern, map.root) : diverging(map.root);
    this.table = this.buildTable();
    const { smallest, largest, mean, size } = cells;
    const facts = Object.entries({ min: smallest, max: largest, mean, "√ mean square": size });
    const words = facts.flatMap(([name, value]) => [make("span", "", name), make("strong", "", brief(value))]);
    this.facts = make("p", "wrapped facts number", words);
  }

  elements() {
    const { cells, map } = this;
    const { piece } = cells;
    const about = { tabindex: "0", role: "region", "aria-label": `Numbers of ${piece.symbol}` };
    const scroll = make("div", "scroll cells-frame", [this.table], about);
    const details = {
      name: `${piece.name}${piece.rows ? `-rows-${piece.rows.join("-")}` : ""}`,
      numbers: () => cells.table,
      code: () => cells.tensor.code,
      picture: () => this.picture(),
    };
    const [low, high] = cells.ends;
    const scale = make("div", "aligned wrapped scale-line", legendOf(this.scale, low, high, cells.unit));
    return [scroll, this.facts, scale, tools(map.root, details)];
  }

  /** The colour of a cell, and what is read best on it. @param {number} value @returns {[ground: string, ink: string]} */
  colours(value) {
    const place = this.cells.placeOf(value);
    if (!Number.isFinite(place)) return ["", ""];
    const ground = colourAt(this.scale, place);
    return [ground, inkOn(ground)];
  }

  buildTable() {
    const { piece, grid } = this.cells;
    const { rows, columns } = grid;
    const [down, across] = piece.shape.length > 1 ? piece.axes.slice(-2) : [piece.axes[0], ""];
    const heads = columns.map(({ name, number }) => {
      const cell = make("th", "", [chip(shortened(name, columns.length > 6 ? 6 : 16))], { scope: "col" });
      if (number !== null && name !== String(number)) cell.title = `${across || down} ${number}: ${name}`;
      return cell;
    });
    const corner = make("th", "corner", "", { "aria-label": `${down} down, ${across} across` });
    const lines = [make("tr", "", [corner, ...heads]), ...rows.map((row) => this.row(row))];
    return make("table", "tiny cells", [make("caption", "aloud", `Numbers of ${piece.symbol}`), ...lines]);
  }

  /** @param {{ name: string, number: number | null, cells: number[][] }} row */
  row({ name, number, cells }) {
    const place = name === String(number) ? [] : [make("small", "tiny", `${number} `)];
    const header = make("th", "", [...place, chip(shortened(name, 10))], { scope: "row" });
    const values = cells.map((indices) => {
      const value = this.cells.valueAt(indices),
        text = this.cells.written(indices);
      const cell = make("td", "number", text, { "data-value": value, title: text ? value : "hidden by the mask" });
      if (text) [cell.style.background, cell.style.color] = this.colours(value);
      return cell;
    });
    return make("tr", "", [header, ...values]);
  }

  /** The page of the tensor as a drawing that stands alone. */
  picture() {
    const { cells, map, scale } = this;
    const { piece } = cells;
    const range = piece.rows ? ` [${piece.rows.join(":")}]` : "";
    const lead = piece.shape.length > 2 ? `, ${piece.axes[0]} ${cells.at[0]}` : "";
    const { model, prompt } = subjectOf(map.data);
    const [low, high] = cells.ends;
    const heading = {
      title: `${piece.name}${range} ${sizes(piece.shape)}${lead}`,
      model,
      prompt: piece.kind === "activation" ? prompt : "",
      scale: { stops: coloursOf(scale), low, high, unit: cells.unit },
    };
    return picture(map.root, heading, copyOf([this.table, this.facts]));
  }
}
