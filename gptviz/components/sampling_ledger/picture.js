// The lines in sight and the draw, as a drawing that stands alone.

import { background } from "../kit/colour.js";
import { shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { shortened } from "../kit/text.js";
import { CHOICES } from "./choices.js";
import { intervalsOf, nameWithin } from "./interval.js";
import { LANES, lanesOf, sumTexts } from "./lanes.js";
import { ROW } from "./list.js";
import { LONGEST_NAME } from "./words.js";

const PICTURE_ROWS = 16,
  PICTURE_TOP = 68,
  PICTURE_MARGIN = 10; // the last two in pixels
const WIDTHS = [100, 70, 125, 125, 125, 165, 170],
  WIDTHS_WITHOUT_DRAW = [140, 120, 620];
const GAP = 14;

export class Picture {
  /** @param {import("./sampling_ledger.js").Ledger} ledger */
  constructor(ledger) {
    this.ledger = ledger;
    this.ink = getComputedStyle(ledger.root).color;
    const names = Object.keys(LANES);
    let across = PICTURE_MARGIN;
    this.lanes = (ledger.seeds ? WIDTHS : WIDTHS_WITHOUT_DRAW).map((width, i) => {
      across += width;
      return { name: names[i], x: across - width, width: width - GAP };
    });
    this.width = across + PICTURE_MARGIN;
  }

  draw() {
    const { ledger, width } = this;
    const { title } = ledger.header;
    const tokens = ledger.list.inSight(PICTURE_ROWS);
    const under = PICTURE_TOP + ROW * tokens.length;
    const height = under + (ledger.seeds ? 96 : 10);
    const picture = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" });
    picture.append(shape("title", {}, title), shape("rect", { width, height, fill: background(ledger.root) }));
    picture.append(this.text(PICTURE_MARGIN, 22, title, { "font-size": 14, "font-weight": 600 }), ...this.heads());
    tokens.forEach((token, i) => picture.append(...this.line(PICTURE_TOP + ROW * i, token)));
    if (ledger.seeds) picture.append(...this.interval(under + 36));
    return picture;
  }

  heads() {
    const { chosen } = this.ledger;
    const sums = sumTexts(this.ledger);
    return this.lanes.flatMap(({ x, name }) => {
      const [title, , key] = LANES[name];
      const value = key ? ` ${CHOICES[key].says(chosen[/** @type {keyof typeof chosen} */ (key)])}` : "";
      return [this.text(x, 44, title + value, { "font-weight": 600 }), this.text(x, 58, sums[name], { "font-size": 10 })];
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
      marks.push(this.text(x + width, y + 13, number, { "text-anchor": "end", "font-size": 11 }));
    }
    return marks;
  }

  /** @param {number} y */
  interval(y) {
    const { ledger } = this;
    const { number, drawn } = ledger;
    const all = this.width - 2 * PICTURE_MARGIN;
    /** @param {number} place */
    const at = (place) => PICTURE_MARGIN + all * place;
    const name = shortened(ledger.header.labels[drawn], LONGEST_NAME);
    /** @type {SVGElement[]} */
    const marks = [this.text(at(0), y - 14, `The draw, seed ${ledger.chosen.seed}: ${number.toFixed(3)} falls on ${name}`)];
    let odd = false;
    for (const [token, start, end] of intervalsOf(ledger)) {
      odd = !odd;
      const isDrawn = token === drawn,
        shade = isDrawn ? 0.9 : token < 0 ? 0.1 : odd ? 0.35 : 0.2;
      const fill = isDrawn ? "#FFFFFF" : this.ink;
      const look = { "text-anchor": "middle", "font-size": 11, "font-family": "monospace", fill };
      marks.push(this.bar(at(start), y, all * (end - start), ROLES.output, shade));
      marks.push(this.text(at((start + end) / 2), y + 13, nameWithin(token, all * (end - start), ledger), look));
    }
    const small = { "font-size": 10 };
    const needle = { x1: at(number), x2: at(number), y1: y - 8, y2: y + ROW, stroke: this.ink, "stroke-width": 2 };
    marks.push(shape("line", needle), this.text(at(0), y + 34, "0", small));
    marks.push(this.text(at(1), y + 34, "1", { ...small, "text-anchor": "end" }));
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
