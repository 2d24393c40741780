// The map as a table and as a picture that stands alone.

import { shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { PALEST, STRONGEST, shortened } from "../kit/text.js";
import { parametersOf, placed, sizes, sure, titleOf } from "./boxes.js";
import { GUESSES, TOKENS, lined } from "./geometry.js";
import { MONO, SANS } from "./pen.js";

/** @typedef {import("./pen.js").Pen} Pen */

const COLUMNS = ["box", "name", "role", "values (shape)", "weights (shape)", "parameters", "equation"];
// Boxes that come after the blocks of their stack.
const ENDS = ["final_norm", "memory", "head.token", "shares", "logits"];

/** A row for every box of the model, as they are computed. @param {import("./boxes.js").Boxes} boxes */
export function tableOfBoxes(boxes) {
  const all = [];
  const stacks = boxes.data.sizes[0] ? ["encoder.", ""] : [""];
  for (const stack of stacks) {
    const outside = boxes.data.boxes.filter(
      (/** @type {any} */ { path }) => placed(path).block === null && placed(path).stack === stack,
    );
    /** @param {any} box */
    const isEnd = ({ path }) => ENDS.includes(placed(path).within);
    if (!stack && stacks.length > 1) all.push(boxes.get("memory"));
    all.push(...outside.filter((/** @type {any} */ box) => !isEnd(box)));
    for (let block = 0; block < boxes.blocks(stack); block++) all.push(...boxes.of(stack, block).map((path) => boxes.get(path)));
    all.push(...outside.filter((/** @type {any} */ box) => isEnd(box) && box.path !== "memory"));
  }
  return { columns: COLUMNS, rows: all.map(rowOf) };
}

/** @param {any} box */
function rowOf(box) {
  /** @param {string} kind @param {(piece: any) => string} write */
  const listed = (kind, write) => box.pieces.filter((/** @type {any} */ piece) => piece.kind === kind).map(write);
  /** @param {any} piece */
  const rows = ({ rows: some }) => (some ? `[${some.join(":")}]` : "");
  const weights = listed("weight", (piece) => `${piece.name}${rows(piece)} ${sizes(piece.shape)}`);
  const activations = listed("activation", (piece) => `${piece.name} ${sizes(piece.shape)}`);
  return [box.path, titleOf(box), box.role, activations.join("; "), weights.join("; "), parametersOf(box), box.equation];
}

// Of a picture: the title's height, and the room at each side.
const HEAD = 34,
  BESIDE = 12,
  BELOW = 14;

/** The map as a drawing that stands alone. @param {any} data the payload @param {Pen} pen */
export function pictureOfMap(data, pen) {
  const { layout } = pen;
  const width = layout.width + 2 * BESIDE,
    height = layout.height + HEAD + BELOW;
  const step = data.step === null ? "" : `, step ${data.step}`;
  const note = { size: 10.5, anchor: "end", fill: pen.ink(0.72) };
  const picture = shape(
    "svg",
    { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": SANS },
    shape("rect", { width, height, fill: pen.colours.ground }),
    pen.text(BESIDE, 22, `${data.model}${step}: ${data.size}`, { size: 14, weight: 650, anchor: "start" }),
    pen.text(width - BESIDE, 22, "W: learned, how many; all else is computed for this text", note),
  );
  const all = shape("g", { transform: `translate(${BESIDE} ${HEAD})` }, ...bare(pen.svg));
  for (const { canvas, ...place } of pen.thumbnails)
    all.append(shape("image", { ...place, href: canvas.toDataURL(), style: "image-rendering: pixelated" }));
  const texts = data.sizes[0] ? [data.source, data.tokens] : [data.tokens];
  texts.forEach((tokens, row) => all.append(written(pen, tokens, 0, layout.topOf(row), TOKENS)));
  const left = layout.width - GUESSES,
    top = layout.topOf(texts.length - 1);
  if (data.kind === "encoder-decoder") all.append(written(pen, data.guesses, left, top, GUESSES));
  else
    all.append(
      ...data.guesses.flatMap((/** @type {[string, number | null]} */ guess, /** @type {number} */ i) =>
        guessOf(pen, guess, left, top + 30 + 15 * i),
      ),
    );
  picture.append(all);
  return picture;
}

/** The parts of a drawing without what they need on the page alone. @param {SVGElement} svg */
function bare(svg) {
  const parts = [...svg.childNodes].map((part) => /** @type {Element} */ (part.cloneNode(true)));
  for (const element of parts.flatMap((part) => [part, ...part.querySelectorAll("*")])) {
    for (const name of element.getAttributeNames())
      if (/^(class|role|tabindex|aria-.*|data-.*)$/.test(name)) element.removeAttribute(name);
  }
  return parts;
}

/** @param {Pen} pen @param {[label: string, probability: number | null]} guess @param {number} x @param {number} y */
function guessOf(pen, [label, probability], x, y) {
  return [
    pen.text(x + 2, y, shortened(label, 8), { anchor: "start", size: 12, font: MONO }),
    shape("rect", { x: x + 64, y: y - 8, width: Math.max(0.5, 26 * (probability ?? 0)), height: 8, fill: ROLES.output }),
    pen.text(x + GUESSES - 2, y, sure(probability), { anchor: "end", size: 11 }),
  ];
}

/**
 * Tokens as text.
 *
 * @param {Pen} pen
 * @param {[label: string, probability: number | null][]} tokens
 * @param {number} x
 * @param {number} top
 * @param {number} width
 */
function written(pen, tokens, x, top, width) {
  const group = shape("g");
  lined(tokens, width).forEach((line, i) => {
    const y = top + 32 + 17 * i;
    for (const { label, probability, at, width: long } of line) {
      const box = { x: x + at, y: y - 12, width: long - 1, height: 15, rx: 2 };
      const share = (PALEST + (STRONGEST - PALEST) * (probability ?? 0)) / 100;
      if (probability !== null) group.append(shape("rect", { ...box, fill: pen.mix(ROLES.output, share) }));
      group.append(pen.text(x + at + (long - 1) / 2, y, label, { size: 12, font: MONO }));
    }
  });
  return group;
}
