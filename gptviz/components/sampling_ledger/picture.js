// The lines in sight and the draw, as a drawing that stands alone.

import { shape } from "../kit/elements.js";
import { picture } from "../kit/picture.js";
import { ROLES } from "../kit/roles.js";
import { shortened } from "../kit/text.js";
import { CHOICES, OF_THE_DRAW } from "./choices.js";
import { intervalsOf, nameWithin } from "./interval.js";
import { LANES, lanesOf, sumTexts } from "./lanes.js";
import { LONGEST_NAME, factsOf } from "./words.js";

const FEWEST_ROWS = 16,
  PICTURE_TOP = 38,
  ROW = 20; // the last two in pixels
const WIDTHS = [120, 80, 125, 145, 175, 200, 190],
  WIDTHS_WITHOUT_DRAW = [140, 120, 620];
const GAP = 14;

export class Picture {
  /** @param {import("./sampling_ledger.js").Ledger} ledger */
  constructor(ledger) {
    this.ledger = ledger;
    this.ink = getComputedStyle(ledger.root).color;
    const names = Object.keys(LANES);
    let across = 0;
    this.lanes = (ledger.seeds ? WIDTHS : WIDTHS_WITHOUT_DRAW).map((width, i) => {
      across += width;
      return { name: names[i], x: across - width, width: width - GAP };
    });
    this.width = across;
  }

  draw() {
    const { ledger, width } = this;
    const { element, line } = ledger.list;
    const tokens = ledger.list.inSight(Math.max(FEWEST_ROWS, Math.ceil(element.clientHeight / line)));
    const under = PICTURE_TOP + ROW * tokens.length;
    const drawing = shape("g", {}, ...this.heads());
    tokens.forEach((token, i) => drawing.append(...this.line(PICTURE_TOP + ROW * i, token)));
    if (ledger.seeds) drawing.append(...this.interval(under + 36));
    return picture(ledger.root, this.heading(), drawing, { width, height: under + (ledger.seeds ? 76 : 0) });
  }

  /** @returns {import("../kit/picture.js").Heading} */
  heading() {
    const { ledger } = this;
    const { header, chosen, seeds } = ledger;
    const drawn = Object.entries(CHOICES).filter(([key]) => OF_THE_DRAW.includes(key));
    const settings = seeds ? drawn.map(([key, { slider, says }]) => `${slider?.name} ${says(chosen[key])}`) : [];
    const facts = factsOf(ledger).map((fact) => fact.textContent ?? "");
    return { title: header.title, prompt: header.prompt, settings: [...settings, ...facts, ...(chosen.log ? ["log bars"] : [])] };
  }

  heads() {
    const { chosen } = this.ledger;
    const sums = sumTexts(this.ledger);
    return this.lanes.flatMap(({ x, name }) => {
      const [title, , key] = LANES[name];
      const value = key ? ` ${CHOICES[key].says(chosen[/** @type {keyof typeof chosen} */ (key)])}` : "";
      return [this.text(x, 14, title + value, { "font-weight": 600 }), this.text(x, 30, sums[name])];
    });
  }

  /** @param {number} y @param {number} token */
  line(y, token) {
    const {
      ledger,
      lanes: [first, ...lanes],
    } = this;
    const { header } = ledger;
    const cut = ledger.cut(token);
    const label = `${shortened(header.labels[token], 9)}${token === header.true ? " ▲" : ""}`;
    const look = { "font-family": "monospace", "text-decoration": cut ? "line-through" : "none" };
    /** @type {SVGElement[]} */
    const marks = [this.text(first.x, y + 13, label, look)];
    const shown = lanesOf(token, ledger);
    for (const { name, x, width } of lanes) {
      const [from, to, number] = shown[name];
      const room = width - (name === "top-p" || name === "after" ? 44 : 0);
      const isGrey = name === "logit" || name === "before" || name === cut || (name === "hot" && cut === "temperature 0");
      const shade = name === "after" ? 0.75 : 0.35;
      marks.push(this.bar(x + room * from, y, room * (to - from), isGrey ? ROLES.stream : ROLES.output, shade));
      marks.push(this.text(x + width, y + 13, number, { "text-anchor": "end" }));
    }
    return marks;
  }

  /** @param {number} y */
  interval(y) {
    const { ledger } = this;
    const { number, drawn } = ledger;
    const all = this.width;
    /** @param {number} place */
    const at = (place) => all * place;
    const name = shortened(ledger.header.labels[drawn], LONGEST_NAME);
    /** @type {SVGElement[]} */
    const marks = [this.text(at(0), y - 14, `The draw, seed ${ledger.chosen.seed}: ${number.toFixed(3)} falls on ${name}`)];
    let odd = false;
    for (const [token, start, end] of intervalsOf(ledger)) {
      odd = !odd;
      const isDrawn = token === drawn,
        shade = isDrawn ? 0.9 : token < 0 ? 0.1 : odd ? 0.35 : 0.2;
      const fill = isDrawn ? "#FFFFFF" : this.ink;
      const look = { "text-anchor": "middle", "font-family": "monospace", fill };
      marks.push(this.bar(at(start), y, all * (end - start), ROLES.output, shade));
      marks.push(this.text(at((start + end) / 2), y + 13, nameWithin(token, all * (end - start), ledger), look));
    }
    const needle = { x1: at(number), x2: at(number), y1: y - 8, y2: y + ROW, stroke: this.ink, "stroke-width": 2 };
    marks.push(shape("line", needle), this.text(at(0), y + 34, "0"));
    marks.push(this.text(at(1), y + 34, "1", { "text-anchor": "end" }));
    return marks;
  }

  /** @param {number} x @param {number} y @param {string} content @param {Record<string, string | number>} [look] */
  text(x, y, content, look = {}) {
    return shape("text", { x, y, fill: this.ink, "font-size": 12, ...look }, content);
  }

  /** @param {number} x @param {number} y @param {number} width @param {string} fill @param {number} opacity */
  bar(x, y, width, fill, opacity) {
    return shape("rect", { x, y: y + 1, width: Math.max(0, width), height: ROW - 4, fill, opacity });
  }
}
