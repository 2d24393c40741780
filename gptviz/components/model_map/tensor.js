// The numbers of a box on the page: a table in colours, its scale, and the way to other pages of the tensor.

import { colourAt, diverging, rgb, sequential } from "../kit/colour.js";
import { tools } from "../kit/details.js";
import { make, shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { brief, chip, count, shortened } from "../kit/text.js";
import { sizes } from "./boxes.js";
import { Cells, isWrapped } from "./cells.js";
import { MONO, SANS } from "./pen.js";

const NO_NUMBERS =
  "This step has no numbers of its own that the pass records: it changes what comes in as the equation says. " +
  "See the boxes before and after it.";

/** The numbers of the tensor that is open, or what stands in their place. @param {any} map */
export function tensorOf(map) {
  const { opened, data } = map;
  const piece = opened.tensor;
  const place = make("div", "tensor");
  if (!piece) {
    place.append(make("p", "note", NO_NUMBERS));
    return place;
  }
  place.append(controls(piece, opened.at, data));
  const isHere = data.tensor && opened.isOf(data.tensor);
  if (isHere) {
    const cells = new Cells({ piece, tensor: data.tensor, at: opened.at, data });
    place.append(...new Tensor(map, cells).elements());
  } else place.append(make("p", "note waiting", "Reading the numbers…"));
  return place;
}

/** Which page of the tensor is shown, and the way to the others. @param {any} piece @param {number[]} at @param {any} data */
function controls(piece, at, data) {
  const row = make("div", "controls");
  const dimensions = piece.shape.length;
  piece.shape.forEach((/** @type {number} */ size, /** @type {number} */ axis) => {
    const group = make("span", "axis");
    if (axis < dimensions - 2) group.append(menu(piece.axes[axis], axis, size, at[axis]));
    else {
      const page = isWrapped(piece) ? data.page * data.page : data.page;
      const isAcross = axis === dimensions - 1 && dimensions > 1;
      group.append(...steps({ axis, size, first: at[axis], page, isAcross, name: piece.axes[axis] }));
    }
    row.append(group);
  });
  return row;
}

/** @param {string} name @param {number} axis @param {number} size @param {number} chosen */
function menu(name, axis, size, chosen) {
  const select = make("select", "", undefined, { "data-axis": axis, "data-of": axis, "aria-label": name });
  for (let i = 0; i < size; i++) select.append(make("option", "", `${name} ${i}`, { value: i }));
  select.value = String(chosen);
  return select;
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

// Of the picture, in its pixels: a cell, and the room for names at the left and the top.
const CELL = { width: 54, height: 20 },
  LEFT = 96,
  TOP = 50,
  NARROWEST = 480;

/** A page of numbers, drawn. */
class Tensor {
  /** @param {any} map @param {Cells} cells */
  constructor(map, cells) {
    this.map = map;
    this.cells = cells;
    this.scale = cells.isShare ? sequential(ROLES.pattern, map.root) : diverging(map.root);
  }

  elements() {
    const { cells, map } = this;
    const { piece } = cells;
    const label = `Numbers of ${piece.symbol}`;
    const scroll = make("div", "scroll cells-frame", undefined, { tabindex: "0", role: "region", "aria-label": label });
    scroll.append(this.table(label));
    const details = {
      name: `${piece.name}${piece.rows ? `-rows-${piece.rows.join("-")}` : ""}`,
      numbers: () => cells.table,
      code: () => cells.tensor.code,
      picture: () => this.picture(),
    };
    return [scroll, this.facts(), this.scaleLine(), tools(map.root, details)];
  }

  facts() {
    const { smallest, largest, mean, size } = this.cells;
    const line = make("p", "facts number");
    const facts = { min: smallest, max: largest, mean, "√ mean square": size };
    for (const [name, value] of Object.entries(facts)) line.append(make("span", "", name), make("strong", "", brief(value)));
    return line;
  }

  scaleLine() {
    const { cells, scale } = this;
    const line = make("div", "scale-line note");
    const bar = make("span", "bar");
    bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map((at) => colourAt(scale, at)).join(", ")})`;
    const [low, high] = cells.ends;
    line.append(make("span", "number", low), bar, make("span", "number", high), make("span", "", cells.unit));
    return line;
  }

  /** The colour of a cell, and what is readable on it. @param {number} value @returns {[ground: string, ink: string]} */
  colours(value) {
    const place = this.cells.placeOf(value);
    if (!Number.isFinite(place)) return ["", ""];
    const ground = colourAt(this.scale, place),
      [r, g, b] = rgb(ground);
    return [ground, 0.3 * r + 0.6 * g + 0.1 * b > 140 ? "#111820" : "#FFFFFF"];
  }

  /** @param {string} caption */
  table(caption) {
    const { piece, grid } = this.cells;
    const { rows, columns } = grid;
    const [down, across] = piece.shape.length > 1 ? piece.axes.slice(-2) : [piece.axes[0], ""];
    const head = make("tr");
    head.append(make("th", "corner", "", { "aria-label": `${down} down, ${across} across` }));
    for (const { name, number } of columns) {
      const cell = make("th", "", undefined, { scope: "col" });
      cell.append(chip(shortened(name, columns.length > 6 ? 6 : 16)));
      if (number !== null && name !== String(number)) cell.title = `${across || down} ${number}: ${name}`;
      head.append(cell);
    }
    const table = make("table", "cells");
    table.append(make("caption", "aloud", caption), head, ...rows.map((row) => this.row(row)));
    return table;
  }

  /** @param {{ name: string, number: number | null, cells: number[][] }} row */
  row({ name, number, cells }) {
    const header = make("th", "", undefined, { scope: "row" });
    if (name !== String(number)) header.append(make("small", "", `${number} `));
    header.append(chip(shortened(name, 10)));
    const line = make("tr");
    line.append(header);
    for (const indices of cells) {
      const value = this.cells.valueAt(indices),
        text = this.cells.written(indices);
      const cell = make("td", "number", text, { "data-value": value, title: text ? value : "hidden by the mask" });
      if (text) [cell.style.background, cell.style.color] = this.colours(value);
      line.append(cell);
    }
    return line;
  }

  /** The page of the tensor as a drawing. */
  picture() {
    const { cells, map } = this;
    const { piece, grid } = cells;
    const { pen } = map.stage;
    const { rows, columns } = grid;
    const { width: w, height: h } = CELL;
    const width = Math.max(LEFT + w * columns.length + 12, NARROWEST),
      height = TOP + h * rows.length + 30;
    const lead = piece.shape.length > 2 ? `, ${piece.axes[0]} ${cells.at[0]}` : "";
    const range = piece.rows ? ` [${piece.rows.join(":")}]` : "";
    const title = `${map.data.model}: ${piece.name}${range} ${sizes(piece.shape)}${lead}`;
    const names = { size: 11, font: MONO };
    const picture = shape(
      "svg",
      { width, height, "font-family": SANS },
      shape("rect", { width, height, fill: pen.colours.ground }),
      pen.text(12, 20, title, { anchor: "start", size: 13, weight: 650 }),
      ...columns.map(({ name }, i) => pen.text(LEFT + w * (i + 0.5), TOP - 6, shortened(name, 7), names)),
    );
    rows.forEach((row, i) => {
      const y = TOP + h * i;
      picture.append(pen.text(LEFT - 8, y + 14, shortened(row.name, 10), { ...names, anchor: "end" }));
      row.cells.forEach((indices, j) => {
        const text = cells.written(indices);
        if (!text) return;
        const [ground, ink] = this.colours(cells.valueAt(indices));
        const x = LEFT + w * j;
        picture.append(
          shape("rect", { x, y, width: w - 1, height: h - 1, fill: ground }),
          pen.text(x + w / 2, y + 14, text, { size: 11, fill: ink }),
        );
      });
    });
    const [smallest, largest, mean, size] = [cells.smallest, cells.largest, cells.mean, cells.size].map(brief);
    const facts = `min ${smallest}, max ${largest}, mean ${mean}, root mean square ${size}`;
    const [low, high] = cells.ends;
    picture.append(pen.text(12, height - 9, `${facts}; colours from ${low} to ${high}`, { anchor: "start", size: 11 }));
    return picture;
  }
}
