import { background, mixed, sequential } from "../kit/colour.js";
import { make, shape } from "../kit/elements.js";
import { paint } from "../kit/heatmap.js";
import { ROLES } from "../kit/roles.js";
import { aloud, parametersOf, short } from "./boxes.js";
import { SMALL, direction, rounded, turns } from "./geometry.js";

// Numbers as `thumbnails` in __init__.py packs them.
const HIDDEN = 255,
  WHOLE_SHARE = 250;
const SANS = "sans-serif";

/** @typedef {import("./geometry.js").Point} Point */
/** @typedef {{ path: string, x: number, y: number, w: number, h: number }} Spot something drawn, by its corner and its size */
/** @typedef {Spot & { cx: number, cy: number, role: import("../kit/roles.js").Role }} Place with its middle and its role */
/** @typedef {{ size?: number, weight?: 400 | 500 | 600 | 650 | 700, anchor?: string, fill?: string, font?: string, within?: number }} Look
 *  of a text; `within`: the width it must not exceed */
/** @typedef {{ x: number, y: number, text: string, anchor?: string }} Label */
/** @typedef {{ colour?: string, width?: number, label?: Label | null, head?: boolean }} Stroke of an arrow; `head`: with a tip */

const ruler = make("canvas").getContext("2d");

/** How many pixels a text is wide. @param {string} content @param {string} font as in a style sheet */
function wideOf(content, font) {
  if (!ruler) return 0;
  ruler.font = font;
  return ruler.measureText(content).width;
}

/** What one drawing of the map is made with: boxes, points on the stream, arrows, thumbnails. Colours are written out, so that a
 *  drawing can stand alone. */
export class Pen {
  /** @param {{ root: HTMLElement, data: import("./boxes.js").Payload, boxes: import("./boxes.js").Boxes, layout: import("./geometry.js").Layout, isPlain: boolean }} what
   *  `isPlain`: without shapes, counts and the names of tensors */
  constructor({ root, data, boxes, layout, isPlain }) {
    this.root = root;
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
    this.svg = shape(
      "svg",
      {
        width: layout.width,
        height: layout.height,
        viewBox: `0 0 ${layout.width} ${layout.height}`,
        class: "drawing",
        "font-family": SANS,
      },
      this.under,
    );
    /** What can be clicked, by path. @type {Map<string, HTMLElement | SVGElement>} */
    this.elements = new Map();
    /** Where each box is drawn, by path. @type {Map<string, Place>} */
    this.places = new Map();
    /** Their paths in the order of the stream. @type {string[]} */
    this.order = [];
    /** @type {{ start: string, end: string, element: SVGElement }[]} */
    this.arrows = [];
    /** @type {{ canvas: HTMLCanvasElement, x: number, y: number, width: number, height: number }[]} */
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
    const element = shape("text", attributes, content);
    // A text that is too wide gets narrower letters: lower ones could not be read.
    if (within !== undefined && wideOf(content, `${weight} ${size}px ${font}`) > within) {
      element.setAttribute("textLength", String(within));
      element.setAttribute("lengthAdjust", "spacingAndGlyphs");
    }
    return element;
  }

  /** A shape, a count or the name of a tensor, which a plain map leaves out. @param {number} x @param {number} y @param {string} content @param {Look} [look] */
  detail(x, y, content, look) {
    if (!this.isPlain) this.under.append(this.text(x, y, content, { fill: this.ink(0.72), ...look }));
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {Record<string, string | number>} look */
  rect(x, y, width, height, look) {
    return shape("rect", { x, y, width, height, ...look });
  }

  /**
   * Something to click: a box of the model, or a block.
   *
   * @param {string} path
   * @param {string} label
   * @param {Record<string, string | number | boolean>} attributes
   * @param {SVGElement[]} children
   */
  held(path, label, attributes, ...children) {
    const group = shape(
      "g",
      { role: "button", class: "held", "aria-label": label, "data-path": path, ...attributes },
      ...children,
    );
    this.elements.set(path, group);
    this.order.push(path);
    this.svg.append(group);
    return group;
  }

  /**
   * A box at x, y: its part that is computed in the colour of its role, its weights as a band below.
   *
   * @param {string} path
   * @param {number} x
   * @param {number} y
   * @param {number} w
   * @param {number} h
   * @param {{ label?: string | null, sub?: string, strength?: number }} [how]
   * @returns {Place}
   */
  drawBox(path, x, y, w, h, { label = null, sub = "", strength = 0.16 } = {}) {
    const box = this.boxes.at(path);
    const parameters = parametersOf(box);
    const learned = box.pieces.some((piece) => piece.kind === "weight");
    const band = learned ? (this.isPlain ? 7 : 15) : 0;
    const colour = ROLES[/** @type {import("../kit/roles.js").Role} */ (box.role)];
    /** @type {SVGElement[]} */
    const parts = [
      this.rect(x, y, w, h, {
        rx: 5,
        fill: this.mix(colour, box.role === "weight" ? 0.06 : strength),
        stroke: colour,
        "stroke-width": 1.4,
        class: "edge",
      }),
    ];
    if (learned) {
      const top = y + h - band,
        letters = parameters ? `W ${short(parameters)}` : "W shared";
      parts.push(
        shape("path", {
          d: `M${x} ${top}h${w}v${band - 5}q0 5 -5 5h${10 - w}q-5 0 -5 -5z`,
          fill: this.mix(ROLES.weight, 0.3),
          stroke: ROLES.weight,
          "stroke-width": 1.4,
        }),
      );
      if (!this.isPlain) parts.push(this.text(x + w / 2, top + 11.5, letters, { weight: 600, within: w - 4 }));
    }
    if (this.isPlain) sub = "";
    const middle = y + (h - band) / 2;
    parts.push(this.text(x + w / 2, middle + (sub ? -2.5 : 4.5), label ?? box.name, { size: 12.5, weight: 650 }));
    if (sub) parts.push(this.text(x + w / 2, middle + 11.5, sub, { fill: this.ink(0.72), within: w - 6 }));
    this.held(path, aloud(box), { "data-box": path }, ...parts);
    const place = { path, x, y, w, h, cx: x + w / 2, cy: y + h / 2, role: box.role };
    this.places.set(path, place);
    return place;
  }

  /**
   * A point on the stream: where something is added, or taken up.
   *
   * @param {string} path
   * @param {number} x
   * @param {number} y
   * @returns {Place}
   */
  drawPoint(path, x, y) {
    const box = this.boxes.at(path);
    const sum = box.name === "⊕",
      r = sum ? 9 : 6;
    /** @type {SVGElement[]} */
    const parts = [
      shape("circle", {
        cx: x,
        cy: y,
        r,
        fill: sum ? this.colours.ground : ROLES.stream,
        stroke: ROLES.stream,
        "stroke-width": 2,
        class: "edge",
      }),
    ];
    if (sum) parts.push(shape("path", { d: `M${x - 5} ${y}h10M${x} ${y - 5}v10`, stroke: this.ink(), "stroke-width": 1.8 }));
    // a generous place to hit
    parts.push(shape("circle", { cx: x, cy: y, r: 14, fill: "transparent" }));
    this.held(path, aloud(box), { "data-box": path }, ...parts);
    return { path, x: x - r, y: y - r, w: 2 * r, h: 2 * r, cx: x, cy: y, role: "stream" };
  }

  /**
   * An arrow through points, with rounded corners, and what flows in it.
   *
   * @param {string} start
   * @param {string} end
   * @param {Point[]} points
   * @param {Stroke} [stroke]
   */
  arrow(start, end, points, { colour = ROLES.stream, width = 1.6, label = null, head = true } = {}) {
    const element = shape(
      "g",
      { class: "arrow" },
      shape("path", { d: rounded(points), fill: "none", stroke: colour, "stroke-width": width, "stroke-linejoin": "round" }),
    );
    if (head) {
      const place = `translate(${points.at(-1)}) rotate(${direction(points)})`;
      element.append(shape("path", { d: "M0 0L-7 -3.6L-7 3.6z", fill: colour, transform: place }));
    }
    if (label && !this.isPlain)
      element.append(this.text(label.x, label.y, label.text, { fill: this.ink(0.72), anchor: label.anchor ?? "middle" }));
    this.under.append(element);
    this.arrows.push({ start, end, element });
  }

  /**
   * An arrow straight to the right, from one box to another.
   *
   * @param {{ path: string, x: number, w: number }} from
   * @param {{ path: string, x: number }} to
   * @param {number} y
   * @param {Stroke} [options]
   */
  level(from, to, y, options = {}) {
    this.arrow(from.path, to.path, turns(from.x + from.w, y, to.x), options);
  }

  /**
   * An arrow straight up or down, from one box to another.
   *
   * @param {Spot} from
   * @param {Spot} to
   * @param {number} x
   * @param {Stroke} [options]
   */
  plumb(from, to, x, options = {}) {
    const [begin, end] = from.y < to.y ? [from.y + from.h, to.y] : [from.y, to.y + to.h];
    this.arrow(from.path, to.path, turns(x, begin, x, end), options);
  }

  /**
   * A small step between two boxes.
   *
   * @param {string} path
   * @param {number} x
   * @param {number} y
   * @param {number} w
   * @param {number} h
   * @param {string} label
   * @returns {Place}
   */
  drawPill(path, x, y, w, h, label) {
    const box = this.boxes.at(path),
      colour = ROLES[/** @type {import("../kit/roles.js").Role} */ (box.role)];
    const parts = [
      this.rect(x, y, w, h, {
        rx: h / 2,
        fill: this.mix(colour, box.role === "weight" ? 0.3 : 0.16),
        stroke: colour,
        "stroke-width": 1.2,
        class: "edge",
      }),
      this.text(x + w / 2, y + h / 2 + 4, label, { weight: 600, within: w - 6 }),
    ];
    this.held(path, aloud(box), { "data-box": path }, ...parts);
    return { path, x, y, w, h, cx: x + w / 2, cy: y + h / 2, role: box.role };
  }

  /**
   * A sum that belongs to a box which is drawn elsewhere.
   *
   * @param {string} path
   * @param {number} x
   * @param {number} y
   * @returns {Spot}
   */
  plus(path, x, y) {
    const r = 9;
    this.under.append(
      shape("circle", { cx: x, cy: y, r, fill: this.colours.ground, stroke: ROLES.stream, "stroke-width": 2 }),
      shape("path", { d: `M${x - 5} ${y}h10M${x} ${y - 5}v10`, stroke: this.ink(), "stroke-width": 1.8 }),
    );
    return { path, x: x - r, y: y - r, w: 2 * r, h: 2 * r };
  }

  /**
   * A pattern as a heatmap, of one head or (null) the mean of all.
   *
   * @param {string} kind
   * @param {number} block
   * @param {number | null} head
   * @param {number} x
   * @param {number} y
   * @param {number} side
   */
  thumbnail(kind, block, head, x, y, side) {
    const cells = this.data.arrays[kind];
    if (!cells || block >= cells.shape[0] || side < 4) return null;
    const [, heads, rows, columns] = cells.shape,
      area = rows * columns,
      start = block * heads * area;
    const tall = rows >= columns ? side : (side * rows) / columns,
      wide = rows >= columns ? (side * columns) / rows : side;
    const canvas = make("canvas", "thumbnail", undefined, { "aria-hidden": "true" });
    Object.assign(canvas.style, { left: `${x}px`, top: `${y}px`, width: `${wide}px`, height: `${tall}px` });
    /** @param {number} row @param {number} column */
    const share = (row, column) => {
      let sum = 0;
      for (let h = head ?? 0; h < (head === null ? heads : head + 1); h++) {
        const value = cells[start + h * area + row * columns + column];
        if (value === HIDDEN) return NaN;
        sum += value;
      }
      return sum / WHOLE_SHARE / (head === null ? heads : 1);
    };
    paint(canvas, rows, columns, share, this.scaleOfPattern);
    this.thumbnails.push({ canvas, x, y, width: wide, height: tall });
    return canvas;
  }
}
