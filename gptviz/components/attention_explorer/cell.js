// The arithmetic of one cell.

import { colourAt } from "../kit/colour.js";
import { tableOf } from "../kit/details.js";
import { button, closest, make, setAttributes, shape } from "../kit/elements.js";
import { onKeys } from "../kit/keys.js";
import { ROLES } from "../kit/roles.js";
import { brief, count, percent } from "../kit/text.js";
import { named } from "./readout.js";
import { clamp } from "./settings.js";

/** @typedef {ReturnType<import("./numbers.js").Numbers["cell"]>} Shown */

// How far pattern and arithmetic may differ by rounding: numbers are sent in single or in half precision.
const ROUNDING = { single: 1e-5, half: 2e-2 };

/** How one cell of the pattern comes about: q · k dimension by dimension, the score, the softmax over its row. */
export class Cell {
  /** @param {import("./attention_explorer.js").Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.element = make("section", "cell", undefined, { "aria-label": "The arithmetic of one cell", tabindex: "0" });
    this.element.hidden = true;
    onKeys(this.element, (event) => this.key(event));
    this.element.addEventListener("pointermove", (event) => this.over(event));
    this.element.addEventListener("pointerleave", () => this.say(null));
  }

  draw() {
    const { explorer } = this;
    const { choice, numbers, selection } = explorer;
    this.element.hidden = !selection.isOpen;
    if (!selection.isOpen) return;
    const { opened } = selection,
      { query, key } = held(choice);
    const cell = numbers.cell(...opened, query, key);
    /** @type {Shown} */
    this.shown = cell;
    const most = selection.isMean ? ", which of all heads reads it most" : "";
    const shared = numbers.shared(opened[1]);
    const where = ` in block ${opened[0]}, head ${opened[1]}${most}${shared && `. ${shared}`}`;
    const names = [named(numbers, "query", query), named(numbers, "key", key)];
    const what = make("div", "what", ["How ", names[0], " comes to read ", names[1], where]);
    const head = make("div", "row", [what, button("Close", () => explorer.free(), { class: "tool shut" })]);
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

  /** Four rows of bars over the dimensions of the head, each on its own scale. @param {Shown} cell */
  strips(cell) {
    const n = cell.q.length;
    /** @type {[string, ArrayLike<number> & Iterable<number>][]} */
    const rows = [
      ["query q", cell.q],
      ["key k", cell.k],
      ["q · k", cell.products],
      ["sum so far", cell.sums],
    ];
    const about = `q times k in ${n} dimensions, and their running sum`;
    const strips = make("div", "strips", undefined, { role: "img", "aria-label": about });
    for (const [name, values] of rows) {
      const most = Math.max(0, ...values),
        least = Math.min(0, ...values),
        unit = 1 / (most - least || 1),
        zero = most * unit;
      const bars = Array.from(values, (value, i) =>
        shape("rect", {
          x: i + 0.05,
          width: 0.9,
          y: value < 0 ? zero : zero - value * unit,
          height: Math.max(0.015, Math.abs(value) * unit),
          fill: colourAt(this.explorer.signed, value < 0 ? 0.2 : 0.8),
        }),
      );
      const words = [make("span", "", name), make("span", "", `${brief(least)} … ${brief(most)}`)];
      strips.append(make("div", "tiny strip-name", words), stretched("strip", n, zeroLine(n, zero), ...bars));
    }
    return strips;
  }

  /** @param {PointerEvent} event */
  over(event) {
    const drawing = closest(event, ".strip");
    if (!drawing) return this.say(null);
    const box = drawing.getBoundingClientRect(),
      n = this.shown.q.length;
    this.say(clamp(Math.floor(((event.clientX - box.left) / box.width) * n), 0, n - 1));
  }

  /** @param {number | null} i a dimension, or null for all */
  say(i) {
    if (!this.shown) return;
    const { q, k, products, sums, dot } = this.shown;
    const all = `${q.length} dimensions; all products together: q·k = ${brief(dot)}`;
    this.dimension.textContent =
      i === null ? all : `dimension ${i}: ${brief(q[i])} × ${brief(k[i])} = ${brief(products[i])}; sum so far ${brief(sums[i])}`;
  }

  /** @param {Shown} cell */
  equations(cell) {
    const { arrays, scale, cap } = this.explorer.numbers;
    const exp = cell.exps[held(this.explorer.choice).key];
    const list = make("dl", "equations");
    /** @param {string} name @param {string} words @param {number} value */
    const line = (name, words, value) => {
      list.append(make("dt", "faint", name), make("dd", "", words, { "data-name": name, "data-value": value }));
    };
    const steps = [times(cell, scale)];
    if (arrays.position)
      steps.push(
        `, ${cell.position < 0 ? "−" : "+"} ${brief(Math.abs(cell.position))} for the position = ${brief(cell.uncapped)}`,
      );
    if (cap) steps.push(`, capped: ${brief(cap)} · tanh(${brief(cell.uncapped)} ÷ ${brief(cap)}) = ${brief(cell.score)}`);
    line("score", steps.join(""), cell.score);
    const less = cell.less ? ` (minus ${brief(cell.less)}, the row’s largest score, which changes no share)` : "";
    line("exp(score)", `${brief(exp)}${less}`, exp);
    line("sum", `over the ${count(cell.visible)} key${cell.visible > 1 ? "s" : ""} it may read: ${brief(cell.sum)}`, cell.sum);
    line("share", `${brief(exp)} ÷ ${brief(cell.sum)} = ${percent(cell.share)}`, cell.share);
    return list;
  }

  /** exp(score) of every key of the row. @param {Shown} cell @param {number} chosen */
  row(cell, chosen) {
    const n = cell.exps.length;
    const largest = cell.exps.reduce((most, value) => (value > most ? value : most), 0) || 1;
    const bars = Array.from(cell.exps, (value, i) => {
      const height = Number.isNaN(value) ? 0 : Math.max(0.02, value / largest);
      const look = { fill: ROLES.pattern, "fill-opacity": i === chosen ? 1 : 0.4 };
      return shape("rect", { x: i, width: 0.9, y: 1 - height, height, ...look });
    });
    const look = { fill: "none", stroke: ROLES.key, "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" };
    const box = shape("rect", { x: chosen, width: 0.9, y: 0.01, height: 0.98, ...look });
    const about = { role: "img", "aria-label": "exp(score) of every key of the row" };
    return setAttributes(stretched("softmax", n, ...bars, zeroLine(n, 1), box), about);
  }

  /** The model's own number next to it. @param {Shown} cell */
  check(cell) {
    const { numbers, choice, selection } = this.explorer;
    const { opened } = selection,
      { query, key } = held(choice);
    const apart = Math.abs(cell.share - cell.pattern);
    const isRounding = apart <= ROUNDING[numbers.half ? "half" : "single"] * Math.max(cell.pattern, 1e-3);
    const own = `The model’s own share: ${percent(cell.pattern)}`;
    const words = isRounding ? `${own}, the same.` : `${own}. The difference of ${brief(apart)} is more than rounding.`;
    const moved = numbers.moved(...opened, query, key),
      here = numbers.value(...opened, query, key);
    const value = ` With a share of 100 % this key would add a vector of length ${brief(moved)}; here it adds ${brief(here)}.`;
    const line = make("p", isRounding ? "note check" : "note check wrong", words + value, { "data-apart": apart });
    line.title = `They differ by ${brief(apart)}${isRounding ? ", which is rounding" : ""}`;
    return line;
  }

  /** @param {Shown} cell */
  table(cell) {
    const name = "Every dimension in numbers";
    const details = make("details", "", [make("summary", "", name)]);
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      const rows = [...cell.q].map((q, i) => [i, q, cell.k[i], cell.products[i], cell.sums[i]]);
      details.append(tableOf({ columns: ["dimension", "q", "k", "q · k", "sum so far"], rows }, name));
    });
    return details;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { explorer, element } = this;
    const to = event.target === element && explorer.walked(event.key, held(explorer.choice));
    if (to) explorer.choose(to);
    else if (event.key === "Escape") explorer.free();
    else return false;
    return true;
  }
}

/** The query and the key of the cell that is open. @param {import("./settings.js").Choice} choice */
function held({ query, key }) {
  return { query: query ?? 0, key: key ?? 0 };
}

/** q · k times the model's scale, in words. @param {Shown} cell @param {number} scale */
function times(cell, scale) {
  const n = cell.q.length,
    root = Math.sqrt(n);
  if (scale === 1) return `q·k = ${brief(cell.dot)}`;
  const isUsual = Math.abs(scale * root - 1) < 1e-6;
  return `${brief(cell.dot)} ${isUsual ? `÷ √${n} (${brief(root)})` : `× ${brief(scale)}`} = ${brief(cell.scaled)}`;
}

/** A drawing of `n` units across and one down, which takes the room that it has. @param {string} name @param {number} n @param {SVGElement[]} children */
function stretched(name, n, ...children) {
  return shape("svg", { class: name, viewBox: `0 0 ${n} 1`, preserveAspectRatio: "none" }, ...children);
}

/** The line of zero. @param {number} n @param {number} y */
function zeroLine(n, y) {
  const look = { stroke: "currentColor", "stroke-opacity": 0.3, "vector-effect": "non-scaling-stroke" };
  return shape("line", { x1: 0, x2: n, y1: y, y2: y, ...look });
}
