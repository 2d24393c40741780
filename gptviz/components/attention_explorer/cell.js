// The arithmetic of one cell.

import { colourAt } from "../kit/colour.js";
import { tableOf } from "../kit/details.js";
import { make, shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { brief, count, percent } from "../kit/text.js";
import { named } from "./readout.js";
import { ARROWS, clamp } from "./settings.js";

/** @typedef {ReturnType<import("./numbers.js").Numbers["cell"]>} Shown */

// How far pattern and arithmetic may differ by rounding: numbers travel in single or in half precision.
const ROUNDING = { single: 1e-5, half: 2e-2 };

/** How one cell of the pattern comes about: q · k dimension by dimension, the score, the softmax over its row. */
export class Cell {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.element = make("section", "cell", undefined, { "aria-label": "The arithmetic of one cell", tabindex: "0" });
    this.element.hidden = true;
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("click", (/** @type {any} */ event) => event.target.closest(".shut") && explorer.free());
    this.element.addEventListener("pointermove", (event) => this.over(event));
    this.element.addEventListener("pointerleave", () => this.say(null));
  }

  draw() {
    const { explorer } = this;
    const { choice, numbers, selection } = explorer;
    this.element.hidden = !selection.isOpen;
    if (!selection.isOpen) return;
    const { opened } = selection;
    const { query, key } = choice;
    const cell = numbers.cell(...opened, query, key);
    /** @type {Shown} */
    this.shown = cell;
    const head = make("div", "row");
    const what = make("div", "what");
    const most = selection.isMean ? ", which of all heads reads it most" : "";
    const where = ` in block ${opened[0]}, head ${opened[1]}${most}`;
    what.append("How ", named(numbers, "query", query), " comes to read ", named(numbers, "key", key), where);
    const shut = make("button", "tool shut", "Close");
    head.append(what, shut);
    /** @type {HTMLElement} */
    this.dimension = make("p", "note dimension");
    const steps = [this.strips(cell), this.dimension, this.equations(cell), this.row(cell, key)];
    this.element.replaceChildren(head, ...steps, this.check(cell), this.table(cell));
    this.say(null);
  }

  /** The cell in a sentence. */
  said() {
    return `${/** @type {Element} */ (this.element.querySelector(".what")).textContent}: ${percent(this.shown.share)}`;
  }

  /** Four rows of bars over the dimensions of the head, each on a scale of its own. @param {Shown} cell */
  strips(cell) {
    const n = cell.q.length,
      high = 26,
      gap = 7,
      left = 64,
      width = 300;
    /** @type {[string, any][]} */
    const rows = [
      ["query q", cell.q],
      ["key k", cell.k],
      ["q · k", cell.products],
      ["sum so far", cell.sums],
    ];
    const drawing = shape("svg", {
      class: "strips",
      viewBox: `0 0 ${left + width} ${rows.length * (high + gap)}`,
      role: "img",
      "aria-label": `q times k in ${n} dimensions, and their running sum`,
    });
    rows.forEach(([name, values], row) => {
      const most = values.reduce((/** @type {number} */ one, /** @type {number} */ value) => Math.max(one, value), 0);
      const least = values.reduce((/** @type {number} */ one, /** @type {number} */ value) => Math.min(one, value), 0);
      const unit = high / (most - least || 1),
        top = row * (high + gap),
        zero = top + most * unit;
      drawing.append(
        shape("text", { x: 0, y: top + 12, fill: "currentColor", "font-size": 11 }, name),
        shape("text", { x: 0, y: top + 24, fill: "currentColor", "font-size": 9 }, `${brief(least)} … ${brief(most)}`),
        shape("line", { x1: left, x2: left + width, y1: zero, y2: zero, stroke: "currentColor", "stroke-opacity": 0.3 }),
      );
      values.forEach((/** @type {number} */ value, /** @type {number} */ i) => {
        const length = Math.abs(value) * unit;
        drawing.append(
          shape("rect", {
            x: left + (i * width) / n + 0.5,
            width: Math.max(0.8, width / n - 1),
            y: value < 0 ? zero : zero - length,
            height: Math.max(0.4, length),
            fill: colourAt(this.explorer.signed, value < 0 ? 0.2 : 0.8),
          }),
        );
      });
    });
    /** @type {{ left: number, n: number }} */
    this.ruler = { left: left / (left + width), n };
    return drawing;
  }

  /** @param {any} event */
  over(event) {
    const drawing = event.target.closest(".strips");
    if (!drawing) return this.say(null);
    const box = drawing.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width - this.ruler.left) / (1 - this.ruler.left);
    this.say(place < 0 ? null : Math.min(this.ruler.n - 1, Math.floor(place * this.ruler.n)));
  }

  /** @param {any} i a dimension, or null for all */
  say(i) {
    if (!this.shown) return;
    const { q, k, products, sums, dot } = this.shown;
    const all = `${q.length} dimensions; all products together: q·k = ${brief(dot)}`;
    const one = () => `dimension ${i}: ${brief(q[i])} × ${brief(k[i])} = ${brief(products[i])}; sum so far ${brief(sums[i])}`;
    this.dimension.textContent = i === null ? all : one();
  }

  /** @param {Shown} cell */
  equations(cell) {
    const root = Math.sqrt(cell.q.length);
    const list = make("dl", "equations");
    /** @param {string} name @param {string} words @param {number} value */
    const line = (name, words, value) => {
      list.append(make("dt", "", name), make("dd", "", words, { "data-value": value }));
    };
    const term = `, ${cell.position < 0 ? "−" : "+"} ${brief(Math.abs(cell.position))} for the position = ${brief(cell.score)}`;
    const scaled = `${brief(cell.dot)} ÷ √${cell.q.length} (${brief(root)}) = ${brief(cell.scaled)}`;
    line("score", scaled + (this.explorer.numbers.arrays.position ? term : ""), cell.score);
    const less = cell.less ? ` (less ${brief(cell.less)}, the row’s largest, which changes no share)` : "";
    line("exp(score)", `${brief(cell.exps[this.explorer.choice.key])}${less}`, cell.exps[this.explorer.choice.key]);
    line("sum", `over the ${count(cell.visible)} key${cell.visible > 1 ? "s" : ""} it may read: ${brief(cell.sum)}`, cell.sum);
    line("share", `${brief(cell.exps[this.explorer.choice.key])} ÷ ${brief(cell.sum)} = ${percent(cell.share)}`, cell.share);
    list.querySelectorAll("dt").forEach((/** @type {any} */ name) => (name.nextSibling.dataset.name = name.textContent));
    return list;
  }

  /** exp(score) of every key of the row. @param {Shown} cell @param {number} chosen */
  row(cell, chosen) {
    const n = cell.exps.length,
      width = 362,
      high = 34;
    const label = "exp(score) of every key of the row";
    const drawing = shape("svg", { class: "softmax", viewBox: `0 0 ${width} ${high + 2}`, role: "img", "aria-label": label });
    const largest = cell.exps.reduce((most, value) => (value > most ? value : most), 0) || 1;
    cell.exps.forEach((value, i) => {
      if (Number.isNaN(value)) return;
      const length = Math.max(0.6, (value / largest) * high);
      const bar = { x: (i * width) / n, width: Math.max(0.6, width / n - 0.6), y: high - length, height: length };
      drawing.append(shape("rect", { ...bar, fill: ROLES.pattern, "fill-opacity": i === chosen ? 1 : 0.4 }));
    });
    const box = { x: (chosen * width) / n - 0.6, width: Math.max(2, width / n + 0.6), y: 0.5, height: high };
    drawing.append(
      shape("line", { x1: 0, x2: width, y1: high + 0.5, y2: high + 0.5, stroke: "currentColor", "stroke-opacity": 0.3 }),
      shape("rect", { ...box, fill: "none", stroke: ROLES.key }),
    );
    return drawing;
  }

  /** The model's own number beside it. @param {Shown} cell */
  check(cell) {
    const { numbers, choice, selection } = this.explorer;
    const { opened } = selection;
    const apart = Math.abs(cell.share - cell.pattern);
    const isRounding = apart <= ROUNDING[numbers.half ? "half" : "single"] * Math.max(cell.pattern, 1e-3);
    const own = `The model’s own share: ${percent(cell.pattern)}`;
    const words = isRounding ? `${own}, the same.` : `${own}, which is ${apart.toExponential(1)} apart, more than rounding.`;
    const moved = numbers.moved(...opened, choice.key),
      here = numbers.value(...opened, choice.query, choice.key);
    const value = ` Read alone, this key would add a vector of length ${brief(moved)}; here it adds ${brief(here)}.`;
    const line = make("p", isRounding ? "note check" : "note check wrong", words + value, { "data-apart": apart });
    line.title = `They differ by ${apart.toExponential(1)}${isRounding ? ", which is rounding" : ""}`;
    return line;
  }

  /** @param {Shown} cell */
  table(cell) {
    const details = make("details");
    details.append(make("summary", "", "Every dimension in numbers"));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1)
        details.append(tableOf(this.numbers(cell), "Every dimension in numbers"));
    });
    return details;
  }

  /** @param {Shown} cell */
  numbers(cell) {
    const rows = [...cell.q].map((q, i) => [i, q, cell.k[i], cell.products[i], cell.sums[i]]);
    return { columns: ["dimension", "q", "k", "q · k", "sum so far"], rows };
  }

  /** @param {any} event */
  key(event) {
    const { explorer } = this;
    const { choice, numbers } = explorer;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const walk = event.target === this.element ? ARROWS[event.key] : null;
    if (walk) {
      const query = clamp(choice.query + walk[0], 0, numbers.nQuery - 1),
        key = clamp(choice.key + walk[1], 0, numbers.nKey - 1);
      if (numbers.isVisible(query, key)) explorer.choose({ query, key });
    } else if (event.key === "Escape") explorer.free();
    else {
      if (event.key === "Enter" || event.key === " ") event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
