// A drawing as the text of a file. Programs that know only SVG 1.1 open it too: Inkscape, Illustrator, PowerPoint.

import { make, SVG } from "./elements.js";

const XML = "http://www.w3.org/XML/1998/namespace",
  XLINK = "http://www.w3.org/1999/xlink";
const PAINTS = ["fill", "stroke", "stop-color"];
// A paint as SVG 1.1 has it: a name, #rgb or #rrggbb, rgb(…) with commas, a reference.
const KNOWN = /^((?!transparent)[a-z]+|#([\da-f]{3}){1,2}|rgb\(\d+(, ?\d+){2}\)|url\(#[^"')]+\))$/i;
// A reference within the file; browsers write it with quotation marks, or with the page's address before it.
const REFERENCE = /url\(["']?[^"')#]*#([^"')]+)["']?\)/g;

/**
 * A computed colour as an attribute has it, and how opaque it is (0 … 1).
 *
 * @param {string} colour `rgb(…)`, `rgba(…)` or `color(srgb …)`
 * @returns {{ paint: string, opacity: number }}
 */
export function paintOf(colour) {
  const numbers = (colour.replace("color(srgb", "").match(/[\d.]+(?:e-?\d+)?%?/g) ?? []).map((one) =>
    one.endsWith("%") ? Number(one.slice(0, -1)) / 100 : Number(one),
  );
  const unit = colour.startsWith("color(") ? 255 : 1;
  const [r = 0, g = 0, b = 0, opacity = colour.includes("(") ? 1 : 0] = numbers;
  return { paint: `rgb(${[r, g, b].map((one) => Math.round(unit * one)).join(", ")})`, opacity };
}

/** Write a paint as SVG 1.1 has it: its opacity is a separate attribute. @param {Element} part @param {string} name */
function writePaint(part, name) {
  let written = part.getAttribute(name);
  if (written === null || KNOWN.test(written)) return;
  if (!/^(rgb|color\(srgb )/.test(written)) {
    // Any other colour that the browser knows: one pixel is painted with it.
    const context = /** @type {CanvasRenderingContext2D} */ (make("canvas").getContext("2d"));
    context.fillStyle = written;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, alpha] = context.getImageData(0, 0, 1, 1).data;
    written = `rgb(${r} ${g} ${b} / ${alpha / 255})`;
  }
  const { paint, opacity } = paintOf(written);
  const share = `${name.replace("-color", "")}-opacity`;
  part.setAttribute(name, paint);
  if (opacity < 1) part.setAttribute(share, String(opacity * Number(part.getAttribute(share) ?? 1)));
}

/** A number of a text, in letters and digits (FNV-1a): two texts share one by accident once in 4,000 million times. @param {string} text */
function numberOf(text) {
  let number = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) number = Math.imul(number ^ text.charCodeAt(i), 0x01000193);
  return (number >>> 0).toString(36);
}

/**
 * A drawing as the text of a file that stands alone. The names of its parts begin with a number of all that is drawn, so that two
 * files can be put into one document.
 *
 * @param {SVGElement} drawing
 */
export function svgFile(drawing) {
  drawing.setAttribute("xmlns", SVG);
  drawing.setAttributeNS(XML, "xml:space", "preserve");
  const own = `g${numberOf(new XMLSerializer().serializeToString(drawing))}-`;
  for (const part of [drawing, ...drawing.querySelectorAll("*")]) {
    if (part.id) part.id = own + part.id;
    for (const { name, value } of part.attributes) {
      if (value.includes("url(")) part.setAttribute(name, value.replace(REFERENCE, `url(#${own}$1)`));
    }
    for (const name of PAINTS) writePaint(part, name);
    const source = part.getAttribute("href");
    if (source === null) continue;
    part.removeAttribute("href");
    part.setAttributeNS(XLINK, "xlink:href", source);
  }
  return new XMLSerializer().serializeToString(drawing);
}
