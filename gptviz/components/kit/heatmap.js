// A heatmap: cells in the colours of a scale, words in them, drawings above them, and the cell under the pointer.

import { colourAt } from "./colour.js";
import { make, setAttributes, shape } from "./elements.js";

/** @typedef {import("./keys.js").Cell} Cell */

/** @typedef {(row: number, column: number) => number} Values of the cells */

/**
 * Where the cells are in the frame, in pixels.
 *
 * @typedef {object} Place
 * @property {number} left room for the names of the rows
 * @property {number} top room for what stands above the columns
 * @property {number} width of a cell
 * @property {number} height of a cell
 */

// Where the bar of a legend shows the scale.
const STOPS = [0, 0.25, 0.5, 0.65, 0.8, 1];
// Browsers refuse a canvas of more pixels; the browser of an iPhone has the lowest limit.
const LARGEST_CANVAS = 2 ** 24;
// Words are drawn this far beyond the visible part, as a share of its width, so that not every step of scrolling draws them again.
const ROOM_BESIDE = 0.25;

/** The pixels of the screen that one pixel of the page has. */
function density() {
  return globalThis.devicePixelRatio || 1;
}

/** How many cells of this size a pixel of the screen stands for, along each axis. @param {number} cell pixels */
export function poolOf(cell) {
  return Math.max(1, Math.floor(1 / (cell * density())));
}

/**
 * The largest of `pool` × `pool` values together; NaN where all of them are.
 *
 * @param {Values} value
 * @param {number} rows
 * @param {number} columns
 * @param {number} pool
 * @returns {Values}
 */
export function pooled(value, rows, columns, pool) {
  if (pool === 1) return value;
  return (down, across) => {
    let most = Number.NaN;
    const lastRow = Math.min((down + 1) * pool, rows),
      lastColumn = Math.min((across + 1) * pool, columns);
    for (let row = down * pool; row < lastRow; row++) {
      for (let column = across * pool; column < lastColumn; column++) {
        const one = value(row, column);
        if (!(one <= most)) most = Number.isNaN(one) ? most : one;
      }
    }
    return most;
  };
}

/**
 * Paint cells, one pixel each.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {number} rows
 * @param {number} columns
 * @param {Values} place 0 … 1 on the scale, or NaN for a blank cell
 * @param {ArrayLike<number>} table the scale
 */
export function paint(canvas, rows, columns, place, table) {
  canvas.width = columns;
  canvas.height = rows;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(columns, rows);
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, at += 4) {
      const value = place(row, column);
      if (Number.isNaN(value)) continue; // blank: see-through
      const i = 3 * Math.round(255 * Math.max(0, Math.min(1, value)));
      image.data[at] = table[i];
      image.data[at + 1] = table[i + 1];
      image.data[at + 2] = table[i + 2];
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

/** Paint what another canvas shows. @param {HTMLCanvasElement} canvas @param {HTMLCanvasElement} other */
export function paintAs(canvas, other) {
  canvas.width = other.width;
  canvas.height = other.height;
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).drawImage(other, 0, 0);
}

/**
 * The colours of a scale from place 0 to place 1, for a bar that shows it.
 *
 * @param {ArrayLike<number>} table
 * @returns {[place: number, colour: string][]}
 */
export function coloursOf(table) {
  return STOPS.map((place) => [place, colourAt(table, place)]);
}

/**
 * The parts of a legend: the bar of a scale between the values at its ends, and what is measured.
 *
 * @param {ArrayLike<number>} table
 * @param {string} low
 * @param {string} high
 * @param {string} unit
 */
export function legendOf(table, low, high, unit) {
  const bar = make("span", "scale");
  bar.style.background = `linear-gradient(to right, ${coloursOf(table)
    .map(([place, colour]) => `${colour} ${100 * place}%`)
    .join(", ")})`;
  return [make("span", "number", low), bar, make("span", "number", high), make("span", "faint", unit)];
}

/** The canvas with the cells, and above it a drawing for names and outlines. */
export class Heatmap {
  /** @param {string} kind how it is called aloud */
  constructor(kind) {
    this.canvas = make("canvas", "heat");
    this.marks = shape("svg", { class: "overlay marks", "aria-hidden": "true" });
    const look = { tabindex: "0", role: "application", "aria-roledescription": kind };
    this.frame = make("div", "frame heatmap", [this.canvas, this.marks], look);
    this.rows = this.columns = 0;
    /** @type {Place} */
    this.place = { left: 0, top: 0, width: 0, height: 0 };
  }

  /**
   * Give the cells their places.
   *
   * @param {number} rows
   * @param {number} columns
   * @param {Place} place
   * @param {{ width: number, height: number }} [size] of the frame, if something stands below or next to the cells
   */
  lay(rows, columns, place, size) {
    Object.assign(this, { rows, columns, place });
    const { left, top } = place,
      width = columns * place.width,
      height = rows * place.height;
    const whole = size ?? { width: left + width, height: top + height };
    Object.assign(this.canvas.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    Object.assign(this.frame.style, { width: `${whole.width}px`, height: `${whole.height}px` });
    setAttributes(this.marks, whole);
  }

  /** The cell under the pointer; null outside them. @param {{ clientX: number, clientY: number }} event @returns {Cell | null} */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / box.height) * this.rows),
      column = Math.floor(((event.clientX - box.left) / box.width) * this.columns);
    return row >= 0 && column >= 0 && row < this.rows && column < this.columns ? { row, column } : null;
  }

  /**
   * Lay an outline around a cell, or around several rows and columns of cells; without an area it is hidden.
   *
   * @param {SVGRectElement} rect
   * @param {(Cell & { rows?: number, columns?: number }) | null} area
   * @param {number} [least] how wide and how high it is at least, in pixels
   */
  outline(rect, area, least = 3) {
    rect.setAttribute("visibility", area ? "visible" : "hidden");
    if (!area) return;
    const { left, top, width, height } = this.place;
    const { row, column, rows = 1, columns = 1 } = area;
    const size = { width: Math.max(least, columns * width), height: Math.max(least, rows * height) };
    setAttributes(rect, { x: left + column * width, y: top + row * height, ...size });
  }
}

/** @typedef {{ text: string, x: number, y: number, ink: string }} Word in a cell, with its middle in pixels of the frame */

/** @typedef {{ size: number, letterSpacing: string, wordSpacing: string }} Type its size in pixels, and the spacing as in CSS */

/**
 * Words in the cells of a heatmap, on a canvas: an element for each would be too many. Of a heatmap that is wider than the box in
 * which it scrolls, only the visible part is drawn, and some room around it.
 */
export class Words {
  /** @param {Heatmap} heatmap @param {HTMLElement} box */
  constructor(heatmap, box) {
    this.heatmap = heatmap;
    this.box = box;
    this.canvas = make("canvas", "overlay words", undefined, { "aria-hidden": "true" });
    heatmap.canvas.after(this.canvas);
    /** @type {(from: number, to: number) => Iterable<Word>} */
    this.words = () => [];
    /** @type {Type} */
    this.type = { size: 0, letterSpacing: "", wordSpacing: "" };
    this.drawn = { from: 0, to: 0 };
    this.close = () => {};
    box.addEventListener("scroll", () => this.scrolled());
  }

  /**
   * Write words into the cells.
   *
   * @param {(from: number, to: number) => Iterable<Word>} words of the columns from `from` to the one before `to`
   * @param {Type} type
   */
  show(words, type) {
    this.words = words;
    this.type = type;
    this.draw();
  }

  /** The part of the cells that is seen, with `room` pixels on each side: from left to right in the frame. @param {number} room */
  seen(room) {
    const { place, columns } = this.heatmap;
    const { scrollLeft, clientWidth } = this.box;
    return {
      from: Math.max(place.left, scrollLeft - room),
      to: Math.min(place.left + columns * place.width, scrollLeft + clientWidth + room),
    };
  }

  scrolled() {
    const { from, to } = this.seen(0);
    if (from < this.drawn.from || to > this.drawn.to) this.draw();
  }

  draw() {
    const { canvas, heatmap, type } = this;
    const { left, top, width, height } = heatmap.place;
    const { from, to } = this.seen(ROOM_BESIDE * this.box.clientWidth);
    // Rounding may put the right edge of the last column a little beyond it.
    const first = Math.max(0, Math.floor((from - left) / width)),
      beyond = Math.min(heatmap.columns, Math.ceil((to - left) / width));
    const words = [...this.words(first, beyond)];
    this.drawn = { from, to };
    canvas.hidden = !words.length;
    if (canvas.hidden) return;
    const corner = { x: Math.floor(from), y: Math.floor(top) };
    const wide = Math.ceil(to) - corner.x,
      high = Math.ceil(top + heatmap.rows * height) - corner.y;
    const sharpness = Math.min(density(), Math.sqrt(LARGEST_CANVAS / (wide * high)));
    canvas.width = Math.floor(sharpness * wide);
    canvas.height = Math.floor(sharpness * high);
    Object.assign(canvas.style, { left: `${corner.x}px`, top: `${corner.y}px`, width: `${wide}px`, height: `${high}px` });
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(canvas.width / wide, canvas.height / high);
    context.translate(-corner.x, -corner.y);
    Object.assign(context, { font: `${type.size}px monospace`, textAlign: "center" });
    Object.assign(context, { letterSpacing: type.letterSpacing, wordSpacing: type.wordSpacing });
    const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = context.measureText("x");
    for (const { text, x, y, ink } of words) {
      context.fillStyle = ink;
      context.fillText(text, x, y + (up - down) / 2);
    }
    // Again where the window comes to a screen with other pixels.
    this.close();
    const screen = matchMedia(`(resolution: ${density()}dppx)`);
    const again = () => this.draw();
    screen.addEventListener("change", again);
    this.close = () => screen.removeEventListener("change", again);
  }
}
