// What a drawing of the map is made with.

import { background, mixed, sequential } from "../kit/colour.js";
import { make, setAttributes, shape } from "../kit/elements.js";
import { paint } from "../kit/heatmap.js";
import { ROLES } from "../kit/roles.js";
import { aloud, parametersOf, short } from "./boxes.js";
import { SMALL, direction, rounded, turns } from "./geometry.js";

// Numbers as `thumbnails` in __init__.py packs them.
const HIDDEN = 255,
  WHOLE_SHARE = 250;
const SANS = "sans-serif";
/** How the stream is drawn: a thick line without a tip. @type {Stroke} */
export const STREAM = { width: 3, head: false };

/** @typedef {import("../kit/roles.js").Role} Role @typedef {import("./geometry.js").Point} Point */
/** @typedef {[x: number, y: number, w: number, h: number]} Rect */
/** @typedef {{ path: string, x: number, w: number }} Flank something an arrow leaves to the right */
/** @typedef {Flank & { y: number, h: number }} Spot something drawn, by its corner and its size */
/** @typedef {Spot & { cx: number, cy: number, role: Role }} Place with its middle and its role */
/** @typedef {{ size?: number, weight?: 400 | 500 | 600 | 650 | 700, anchor?: string, fill?: string, font?: string, within?: number }} Look
 *  of a text; `within`: the width it must not exceed */
/** @typedef {{ label?: string, sub?: string, strength?: number }} How a box is drawn: its name, a line below it, its colour's strength */
/** @typedef {{ colour?: string, width?: number, head?: boolean }} Stroke of an arrow; `head`: with a tip */

const ruler = /** @type {CanvasRenderingContext2D} */ (make("canvas").getContext("2d"));

/** What one drawing of the map is made with: boxes, points on the stream, arrows, thumbnails. Colours are written out, so that a
 *  drawing can stand alone. */
export class Pen {
  /** @param {{ root: HTMLElement, data: import("./boxes.js").Payload, boxes: import("./boxes.js").Boxes, layout: import("./geometry.js").Layout, isPlain: boolean }} what
   *  `isPlain`: without shapes, counts and the names of tensors */
  constructor({ root, data, boxes, layout, isPlain }) {
    this.isPlain = isPlain;
    this.data = data;
    this.boxes = boxes;
    this.layout = layout;
    this.width = layout.width;
    this.colours = {
      ground: background(root),
      text: getComputedStyle(root).getPropertyValue("--st-text-color").trim() || "#0F1720",
    };
    this.under = shape("g"); // what boxes stand on
    const { width, height } = layout;
    const look = { width, height, viewBox: `0 0 ${width} ${height}`, class: "drawing", "font-family": SANS };
    this.svg = shape("svg", look, this.under);
    /** What can be clicked, by path. @type {Map<string, HTMLElement | SVGElement>} */
    this.elements = new Map();
    /** Where each box is drawn, by path. @type {Map<string, Place>} */
    this.places = new Map();
    /** Their paths in the order of the stream. @type {string[]} */
    this.order = [];
    /** @type {{ start: string, end: string, element: SVGElement }[]} */
    this.arrows = [];
    /** @type {HTMLCanvasElement[]} */
    this.thumbnails = [];
    this.scaleOfPattern = sequential(ROLES.pattern, root);
  }

  /** @param {number} [share] */
  ink(share = 1) {
    return share === 1 ? this.colours.text : this.mix(this.colours.text, share);
  }

  /** @param {string} colour @param {number} share */
  mix(colour, share) {
    return `rgb(${mixed(colour, this.colours.ground, share).map(Math.round).join(" ")})`;
  }

  /** @param {number} x @param {number} y @param {string} content @param {Look} [look] */
  text(x, y, content, { size = SMALL, weight = 400, anchor = "middle", fill = this.ink(), font = SANS, within } = {}) {
    const attributes = { x, y, "font-size": size, "font-weight": weight, "text-anchor": anchor, fill, "font-family": font };
    // A text that is too wide gets narrower letters: lower ones could not be read.
    ruler.font = `${weight} ${size}px ${font}`;
    const isWide = within !== undefined && ruler.measureText(content).width > within;
    const element = shape("text", attributes, content);
    return isWide ? setAttributes(element, { textLength: within, lengthAdjust: "spacingAndGlyphs" }) : element;
  }

  /** A shape, a count or the name of a tensor, which a plain map leaves out. @param {number} x @param {number} y @param {string} content @param {Look} [look] */
  detail(x, y, content, look) {
    if (!this.isPlain) this.under.append(this.text(x, y, content, { fill: this.ink(0.72), ...look }));
  }

  /** @param {Rect} rect @param {import("../kit/elements.js").Attributes} look */
  rect([x, y, width, height], look) {
    return shape("rect", { x, y, width, height, ...look });
  }

  /**
   * Something to click: a box of the model, or a block.
   *
   * @param {string} path
   * @param {string} label
   * @param {import("../kit/elements.js").Attributes} attributes
   * @param {SVGElement[]} children
   */
  held(path, label, attributes, ...children) {
    const look = { role: "button", class: "held", "aria-label": label, "data-path": path, ...attributes };
    const group = shape("g", look, ...children);
    this.elements.set(path, group);
    this.order.push(path);
    this.svg.append(group);
  }

  /** A box of the model, drawn with these shapes. @param {string} path @param {Rect} rect @param {SVGElement[]} shapes @returns {Place} */
  drawn(path, [x, y, w, h], shapes) {
    const box = this.boxes.at(path);
    this.held(path, aloud(box), { "data-box": path }, ...shapes);
    const place = { path, x, y, w, h, cx: x + w / 2, cy: y + h / 2, role: box.role };
    this.places.set(path, place);
    return place;
  }

  /** A box: what is computed in the colour of its role, its weights as a band below. @param {string} path @param {Rect} rect @param {How} [how] */
  drawBox(path, rect, { label, sub = "", strength = 0.16 } = {}) {
    const [x, y, w, h] = rect,
      box = this.boxes.at(path),
      stroke = ROLES[box.role];
    const fill = this.mix(stroke, box.role === "weight" ? 0.06 : strength);
    /** @type {SVGElement[]} */
    const parts = [this.rect(rect, { rx: 5, fill, stroke, "stroke-width": 1.4, class: "edge" })];
    const isLearned = box.pieces.some((piece) => piece.kind === "weight");
    const band = isLearned ? (this.isPlain ? 7 : 15) : 0;
    if (isLearned) parts.push(...this.band(box, [x, y + h - band, w, band]));
    const middle = y + (h - band) / 2,
      hasSub = sub !== "" && !this.isPlain;
    parts.push(this.text(x + w / 2, middle + (hasSub ? -2.5 : 4.5), label ?? box.name, { size: 12.5, weight: 650 }));
    if (hasSub) parts.push(this.text(x + w / 2, middle + 11.5, sub, { fill: this.ink(0.72), within: w - 6 }));
    return this.drawn(path, rect, parts);
  }

  /** The band of the weights of a box, with their number. @param {import("./boxes.js").Box} box @param {Rect} rect */
  band(box, [x, y, w, h]) {
    const d = `M${x} ${y}h${w}v${h - 5}q0 5 -5 5h${10 - w}q-5 0 -5 -5z`;
    const path = shape("path", { d, fill: this.mix(ROLES.weight, 0.3), stroke: ROLES.weight, "stroke-width": 1.4 });
    const parameters = parametersOf(box),
      letters = parameters ? `W ${short(parameters)}` : "W shared";
    return this.isPlain ? [path] : [path, this.text(x + w / 2, y + 11.5, letters, { weight: 600, within: w - 4 })];
  }

  /** A point on the stream: where something is added, or taken up. @param {string} path @param {number} x @param {number} y */
  drawPoint(path, x, y) {
    const isSum = this.boxes.at(path).name === "⊕",
      r = isSum ? 9 : 6;
    const point = isSum ? this.sum(x, y) : [this.circle(x, y, ROLES.stream, r)];
    const target = shape("circle", { cx: x, cy: y, r: 14, fill: "transparent" }); // a generous place to hit
    return this.drawn(path, [x - r, y - r, 2 * r, 2 * r], [...point, target]);
  }

  /** @param {number} cx @param {number} cy @param {string} fill @param {number} r */
  circle(cx, cy, fill, r) {
    return shape("circle", { cx, cy, r, fill, stroke: ROLES.stream, "stroke-width": 2, class: "edge" });
  }

  /** The sign of a sum. @param {number} x @param {number} y */
  sum(x, y) {
    const cross = shape("path", { d: `M${x - 5} ${y}h10M${x} ${y - 5}v10`, stroke: this.ink(), "stroke-width": 1.8 });
    return [this.circle(x, y, this.colours.ground, 9), cross];
  }

  /** An arrow through points, with rounded corners. @param {string} start @param {string} end @param {Point[]} points @param {Stroke} [stroke] */
  arrow(start, end, points, { colour = ROLES.stream, width = 1.6, head = true } = {}) {
    const look = { d: rounded(points), fill: "none", stroke: colour, "stroke-width": width, "stroke-linejoin": "round" };
    const element = shape("g", { class: "arrow" }, shape("path", look));
    if (head) {
      const place = `translate(${points.at(-1)}) rotate(${direction(points)})`;
      element.append(shape("path", { d: "M0 0L-7 -3.6L-7 3.6z", fill: colour, transform: place }));
    }
    this.under.append(element);
    this.arrows.push({ start, end, element });
  }

  /** An arrow straight to the right, from one box to another. @param {Flank} from @param {Omit<Flank, "w">} to @param {number} y @param {Stroke} [stroke] */
  level(from, to, y, stroke) {
    this.arrow(from.path, to.path, turns(from.x + from.w, y, to.x), stroke);
  }

  /** An arrow straight up or down, from one box to another. @param {Spot} from @param {Spot} to @param {number} x @param {Stroke} [stroke] */
  plumb(from, to, x, stroke) {
    const [begin, end] = from.y < to.y ? [from.y + from.h, to.y] : [from.y, to.y + to.h];
    this.arrow(from.path, to.path, turns(x, begin, x, end), stroke);
  }

  /** A small step between two boxes. @param {string} path @param {Rect} rect @param {string} label */
  drawPill(path, rect, label) {
    const [x, y, w, h] = rect,
      { role } = this.boxes.at(path);
    const fill = this.mix(ROLES[role], role === "weight" ? 0.3 : 0.16);
    return this.drawn(path, rect, [
      this.rect(rect, { rx: h / 2, fill, stroke: ROLES[role], "stroke-width": 1.2, class: "edge" }),
      this.text(x + w / 2, y + h / 2 + 4, label, { weight: 600, within: w - 6 }),
    ]);
  }

  /**
   * A pattern as a heatmap, of one head or (null) the mean of all.
   *
   * @param {string} kind
   * @param {number} block
   * @param {number | null} head
   * @param {{ x: number, y: number, side: number }} square
   */
  thumbnail(kind, block, head, { x, y, side }) {
    const cells = this.data.arrays[kind];
    if (!cells || block >= cells.shape[0] || side < 4) return null;
    const [, heads, rows, columns] = cells.shape,
      area = rows * columns,
      shown = head === null ? [...Array(heads).keys()] : [head];
    const longest = Math.max(rows, columns);
    const canvas = make("canvas", "thumbnail", undefined, { "aria-hidden": "true" });
    const size = { width: `${(side * columns) / longest}px`, height: `${(side * rows) / longest}px` };
    Object.assign(canvas.style, { left: `${x}px`, top: `${y}px`, ...size });
    /** @param {number} row @param {number} column */
    const share = (row, column) => {
      const shares = shown.map((one) => cells[(block * heads + one) * area + row * columns + column]);
      return shares.includes(HIDDEN) ? NaN : shares.reduce((sum, one) => sum + one, 0) / WHOLE_SHARE / shown.length;
    };
    paint(canvas, rows, columns, share, this.scaleOfPattern);
    this.thumbnails.push(canvas);
    return canvas;
  }
}
