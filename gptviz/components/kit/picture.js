// A picture to download: a drawing under a heading that describes it, so that it can be used by itself on a slide.

import { background } from "./colour.js";
import { setAttributes, shape } from "./elements.js";

const SANS = "sans-serif";
// Pixels: what stays free at the edges, how wide a picture is at least, and of each kind of text its size and the height of a line.
const MARGIN = 24,
  NARROWEST = 640,
  AFTER_HEADING = 14;
const TITLE = { size: 20, line: 27, weight: 650 },
  WORDS = { size: 14, line: 20, weight: 400 };
const SCALE = { width: 180, height: 12, line: 26 };
// The smallest type of a picture: a drawing that has smaller is made larger.
const SMALLEST = 12;
// A longer prompt is cut, and its length is stated.
const MOST_LINES = 6;

/** @typedef {(text: string) => number} Measure how wide a text is, in pixels */

/**
 * The meaning of a colour.
 *
 * @typedef {object} Scale
 * @property {[place: number, colour: string][]} stops from place 0 to place 1
 * @property {string} low what the colour at 0 stands for
 * @property {string} high what the colour at 1 stands for
 * @property {string} unit what is measured, and what a blank means
 *
 * @typedef {object} Heading
 * @property {string} title what is seen
 * @property {string} [model] its name, and the step of its training
 * @property {string} [prompt] the text it reads
 * @property {string[]} [settings] what a reader has chosen, a phrase each
 * @property {Scale | null} [scale]
 */

/**
 * Lines no wider than `width`: they break after spaces, a word that is wider breaks anywhere.
 *
 * @param {string} text
 * @param {number} width
 * @param {Measure} measure
 */
export function wrapped(text, width, measure) {
  const lines = [""];
  for (const word of text.match(/\S+\s*|\s+/g) ?? []) {
    if (measure((lines.at(-1) + word).trimEnd()) <= width) {
      lines[lines.length - 1] += word;
      continue;
    }
    if (lines.at(-1)) lines.push("");
    for (const character of word) {
      if (lines.at(-1) && measure(lines.at(-1) + character) > width) lines.push("");
      lines[lines.length - 1] += character;
    }
  }
  return lines.map((line) => line.trimEnd());
}

/** A text as tokens show it, as a text to be read. @param {string[]} labels @param {boolean} [isSpaced] every token is a word */
export function textOf(labels, isSpaced = false) {
  return labels.join(isSpaced ? " " : "").replaceAll("␣", " ");
}

/**
 * How wide texts of a size and weight are in the browser's sans-serif; some room is left for that of another program.
 *
 * @param {{ size: number, weight: number }} look
 * @returns {Measure}
 */
function measuring({ size, weight }) {
  const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  context.font = `${weight} ${size}px ${SANS}`;
  return (text) => 1.06 * context.measureText(text).width;
}

/** @param {Scale} scale @param {number} top @param {string} ink @param {Measure} measure */
function legend({ stops, low, high, unit }, top, ink, measure) {
  const from = MARGIN + measure(low) + 8,
    to = from + SCALE.width;
  const colours = stops.map(([place, colour]) => shape("stop", { offset: place, "stop-color": colour }));
  /** @param {string} words @param {number} x */
  const text = (words, x) => shape("text", { x, y: top + WORDS.size, "font-size": WORDS.size, fill: ink }, words);
  return [
    shape("defs", {}, shape("linearGradient", { id: "scale-of-the-picture" }, ...colours)),
    text(low, MARGIN),
    shape("rect", { x: from, y: top + 3, width: SCALE.width, height: SCALE.height, fill: "url(#scale-of-the-picture)" }),
    text(high, to + 8),
    text(unit, to + 8 + measure(high) + 20),
  ];
}

/**
 * A picture that stands alone: its colours are written out, its texts are all there and within it.
 *
 * @param {HTMLElement} root of the view, whose colours it has
 * @param {Heading} heading
 * @param {ReturnType<typeof import("./copy.js").copyOf>} copy
 * @returns {SVGSVGElement} with `width`, `height` and `viewBox`
 */
export function picture(root, { title, model = "", prompt = "", settings = [], scale = null }, copy) {
  const ink = getComputedStyle(root).getPropertyValue("--st-text-color").trim() || getComputedStyle(root).color,
    ground = background(root),
    words = measuring(WORDS);
  const sizes = [...copy.drawing.querySelectorAll("text")].map((text) => parseFloat(text.getAttribute("font-size") ?? ""));
  const zoom = Math.max(1, SMALLEST / Math.min(...sizes.filter((size) => size > 0), SMALLEST));
  const ofScale = scale ? words(scale.low + scale.high + scale.unit) + SCALE.width + 36 : 0;
  const inner = Math.ceil(Math.max(NARROWEST - 2 * MARGIN, zoom * copy.width, ofScale)),
    width = inner + 2 * MARGIN;
  const svg = shape("svg", { "font-family": SANS });
  svg.append(shape("title", {}, title), shape("rect", { width: "100%", height: "100%", fill: ground }));
  let top = MARGIN;
  /** @param {string[]} lines @param {{ size: number, line: number, weight: number }} look */
  const write = (lines, look) => {
    for (const line of lines) {
      const place = { x: MARGIN, y: top + look.size, "font-size": look.size, "font-weight": look.weight };
      svg.append(shape("text", { ...place, fill: ink }, line));
      top += look.line;
    }
  };
  write(wrapped(title, inner, measuring(TITLE)), TITLE);
  const facts = [...(model ? [`Model: ${model}`] : []), ...settings].join(" · ");
  if (facts) write(wrapped(facts, inner, words), WORDS);
  const read = prompt ? wrapped(`Prompt: “${prompt}”`, inner, words) : [];
  if (read.length > MOST_LINES) read.splice(MOST_LINES - 1, Infinity, `… ”, ${[...prompt].length} characters`);
  write(read, WORDS);
  if (scale) {
    svg.append(...legend(scale, top + 4, ink, words));
    top += SCALE.line;
  }
  top += AFTER_HEADING;
  svg.append(shape("g", { transform: `translate(${MARGIN} ${top}) scale(${zoom})` }, copy.drawing));
  const height = Math.ceil(top + zoom * copy.height + MARGIN);
  return setAttributes(svg, { width, height, viewBox: `0 0 ${width} ${height}` });
}
