// The picture to take away.

import { background, colourAt } from "../kit/colour.js";
import { make, shape } from "../kit/elements.js";
import { axes } from "./heat.js";
import { STOPS } from "./settings.js";

const MOST_IN_PICTURE = 6;

/** The heads shown as heatmaps side by side, with titles and their scale. @param {any} explorer */
export function drawing(explorer) {
  const { numbers, selection } = explorer;
  const heads = selection.loaded.slice(0, MOST_IN_PICTURE);
  const room = { left: 52, top: 76 },
    side = 340;
  const cell = Math.min(side / numbers.nKey, side / numbers.nQuery, 26);
  const size = { width: cell * numbers.nKey, height: cell * numbers.nQuery };
  const across = room.left + Math.max(size.width, 220) + 16,
    width = across * heads.length,
    height = room.top + size.height + 56;
  const ink = getComputedStyle(explorer.root).color;
  /** @param {string} text @param {Record<string, string | number>} look */
  const words = (text, look) => shape("text", { fill: ink, "font-family": "sans-serif", "font-size": 12, ...look }, text);
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  svg.append(shape("rect", { width: "100%", height: "100%", fill: background(explorer.root) }));
  heads.forEach((/** @type {[number, number]} */ at, /** @type {number} */ i) => {
    const canvas = make("canvas");
    explorer.paint(canvas, at, explorer.choice.show);
    const title = heads.length > 1 ? `Block ${at[0]}, head ${at[1]}` : `${selection.name} of ${numbers.model}`;
    const place = { x: room.left, y: room.top, ...size, preserveAspectRatio: "none", style: "image-rendering: pixelated" };
    const marks = shape("g", { transform: "translate(0 24)" });
    marks.append(...axes(numbers, cell, { left: room.left, top: room.top - 24 }, cell >= 9, ink));
    const group = shape("g", { transform: `translate(${i * across} 0)`, "font-family": "sans-serif" });
    group.append(
      words(title, { x: room.left, y: 20, "font-weight": "bold", "font-size": 14 }),
      shape("image", { href: canvas.toDataURL(), ...place }),
      marks,
    );
    svg.append(group);
  });
  const stops = STOPS.map((place) => shape("stop", { offset: place, "stop-color": colourAt(explorer.palette, place) }));
  const [low, high] = selection.ends;
  const x = room.left,
    y = height - 30;
  svg.append(
    shape("defs", {}, shape("linearGradient", { id: "scale" }, ...stops)),
    words(low, { x, y: y + 9 }),
    shape("rect", { x: x + 48, y, width: 90, height: 10, fill: "url(#scale)" }),
    words(high, { x: x + 144, y: y + 9 }),
    words(selection.unit, { x, y: y + 24, "font-size": 11 }),
  );
  return svg;
}
