// The generation tree as a drawing that stands alone: what is seen of it on the screen, its colours written out.

import { background, mixed } from "../kit/colour.js";
import { shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { EDGE, branchesOf } from "./layout.js";

const SANS = { "font-family": "sans-serif" };
const TOP = 34,
  BOTTOM = 28; // room for the title and for what the colours mean

/** @typedef {{ ground: string, ink: string, pale: string, origin: DOMRect }} Look colours, and where the canvas begins on the screen */

/**
 * @param {HTMLElement} root
 * @param {import("./boxes.js").Boxes} boxes
 */
export function pictureOf(root, boxes) {
  const [width, height] = boxes.extent,
    tall = height + TOP + BOTTOM;
  const ground = background(root),
    ink = getComputedStyle(root).getPropertyValue("--st-text-color").trim();
  const look = { ground, ink, pale: solid(mixed(ink, ground, 0.35)), origin: boxes.canvas.getBoundingClientRect() };
  const picture = shape("svg", { width, height: tall, viewBox: `0 0 ${width} ${tall}` });
  /** @param {string} text @param {number} y @param {number} size */
  const words = (text, y, size) => shape("text", { x: EDGE, y, fill: ink, "font-size": size, ...SANS }, text);
  picture.append(shape("rect", { width: "100%", height: "100%", fill: ground }));
  picture.append(words("What the model wrote, as a tree", 21, 15));
  const canvas = shape("g", { transform: `translate(0 ${TOP})` });
  for (const [d, kind] of boxes.lines) {
    const strong = kind.includes("strong");
    const line = shape("path", { d, fill: "none", stroke: strong ? ink : look.pale, "stroke-width": strong ? 2 : 1 });
    if (kind.includes("next")) line.setAttribute("stroke-dasharray", "3 3");
    canvas.append(line);
  }
  for (const { run, strong } of branchesOf(boxes.outline)) drawBox(canvas, run, strong ? ink : look.pale, look);
  for (const line of boxes.next.lines) drawNext(canvas, line, look);
  const meaning = "colour: probability under the model, 0 … 100 %; grey: the prompt; Σ: sum of log-probabilities";
  picture.append(canvas, words(meaning, height + TOP + 18, 13));
  return picture;
}

/** @param {number[]} colour */
function solid(colour) {
  return `rgb(${colour.map(Math.round).join(",")})`;
}

/** The tint of a chip, whose style has its strength; a token of the prompt has none. @param {HTMLElement} chip @param {Look} look */
function tintOf(chip, { ink, ground }) {
  const strength = parseFloat(chip.style.getPropertyValue("--p")) / 100;
  return Number.isNaN(strength) ? mixed(ink, ground, 0.06) : mixed(ROLES.output, ground, strength);
}

/** @param {Element} canvas @param {import("./run.js").Run} run @param {string} line the colour of its edge and its text @param {Look} look */
function drawBox(canvas, run, line, look) {
  const { origin, ground } = look;
  const at = run.element.getBoundingClientRect(),
    seen = run.text.getBoundingClientRect();
  const [x, y] = [at.left - origin.left, at.top - origin.top];
  canvas.append(shape("rect", { x, y, width: at.width, height: at.height, rx: 6, fill: ground, stroke: line }));
  const size = { width: seen.width, height: seen.height };
  const inner = shape("svg", { x: seen.left - origin.left, y: seen.top - origin.top, ...size });
  for (const chip of run.text.querySelectorAll(".chip")) {
    const box = chip.getBoundingClientRect();
    if (box.bottom < seen.top || box.top > seen.bottom) continue;
    const place = { x: box.left - seen.left, y: box.top - seen.top, width: box.width, height: box.height };
    drawChip(inner, chip.textContent ?? "", place, tintOf(/** @type {HTMLElement} */ (chip), look), line);
  }
  canvas.append(inner);
  if (run.foot.hidden) return;
  const sums = [...run.foot.children].map((part) => part.textContent).join("   ");
  canvas.append(shape("text", { x: x + 8, y: y + at.height - 7, fill: line, "font-size": 11, ...SANS }, sums));
}

/** @param {Element} canvas @param {HTMLElement} line @param {Look} look */
function drawNext(canvas, line, look) {
  const { origin, ground, ink, pale } = look;
  const at = line.getBoundingClientRect();
  const [name, number] = /** @type {HTMLElement[]} */ ([...line.children]);
  const [x, y] = [at.left - origin.left, at.top - origin.top];
  const isCut = line.classList.contains("cut");
  const frame = { x, y, width: at.width, height: at.height, rx: 4, fill: ground, stroke: pale, "stroke-dasharray": "3 3" };
  canvas.append(shape("rect", frame));
  const box = name.getBoundingClientRect();
  const place = { x: box.left - origin.left, y: box.top - origin.top, width: box.width, height: box.height };
  const colour = isCut ? pale : ink;
  drawChip(canvas, name.textContent ?? "", place, tintOf(name, look), colour, isCut);
  const end = { x: x + at.width - 6, y: y + at.height - 6, fill: colour, "font-size": 11, "text-anchor": "end" };
  canvas.append(shape("text", { ...end, ...SANS }, number.textContent ?? ""));
}

/**
 * A token of the picture.
 *
 * @param {Element} into
 * @param {string} label
 * @param {{ x: number, y: number, width: number, height: number }} box
 * @param {number[]} tint
 * @param {string} ink
 * @param {boolean} [isStruck] crossed out
 */
function drawChip(into, label, { x, y, width, height }, tint, ink, isStruck = false) {
  into.append(shape("rect", { x, y, width, height, rx: 3, fill: solid(tint) }));
  const middle = { x: x + width / 2, y: y + height / 2, "text-anchor": "middle", "dominant-baseline": "central" };
  const text = shape("text", { ...middle, fill: ink, "font-size": 13, "font-family": "monospace" }, label);
  if (isStruck) text.setAttribute("text-decoration", "line-through");
  into.append(text);
}
