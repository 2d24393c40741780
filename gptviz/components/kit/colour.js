// The scales of colour of gptviz/figures/kit/theme.py.

import { ROLES } from "./roles.js";

/** The red, green and blue of a colour (0 … 255), written as #RRGGBB or rgb(…). @param {string} colour */
export function rgb(colour) {
  const hex = colour.match(/^#(..)(..)(..)/);
  if (hex) return hex.slice(1).map((pair) => parseInt(pair, 16));
  return (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
}

/** Whether the page is dark where `element` is. @param {Element} element */
export function isDark(element) {
  const [r, g, b] = rgb(background(element));
  return 0.3 * r + 0.6 * g + 0.1 * b < 128;
}

/** The colour of the page's background. @param {Element} element */
export function background(element) {
  return getComputedStyle(element).getPropertyValue("--st-background-color").trim() || "#FFFFFF";
}

/** So much (0 … 1) of a colour on a ground, as red, green and blue. @param {string} colour @param {string} ground @param {number} share */
export function mixed(colour, ground, share) {
  const under = rgb(ground);
  return rgb(colour).map((c, i) => share * c + (1 - share) * under[i]);
}

/** How light a colour is: from 0, black, to 1, white (WCAG 2.2, relative luminance). @param {string} colour */
function luminance(colour) {
  const [r, g, b] = rgb(colour)
    .map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Black or white, whichever is read better on a colour: its contrast is 4.5 at least. As `ink` in theme.py. @param {string} ground */
export function inkOn(ground) {
  const light = luminance(ground) + 0.05;
  return light / 0.05 > 1.05 / light ? "#000000" : "#FFFFFF";
}

/**
 * A scale of 256 colours [256 · 3], drawn from stops.
 *
 * @param {[place: number, rgb: number[]][]} stops from place 0 to place 1
 */
export function scale(stops) {
  const table = new Uint8ClampedArray(768);
  for (let i = 0; i < 256; i++) {
    const at = i / 255;
    const found = stops.findIndex(([place]) => place >= at);
    const upper = Math.max(1, found);
    const [low, from] = stops[upper - 1],
      [high, to] = stops[upper];
    const share = (at - low) / (high - low);
    for (let c = 0; c < 3; c++) table[3 * i + c] = (1 - share) * from[c] + share * to[c];
  }
  return table;
}

/** The scale for 0 … 1 in a role's colour, from just off the page's background. @param {string} colour @param {Element} element */
export function sequential(colour, element) {
  const ground = background(element);
  return scale([
    [0, mixed(colour, ground, 0.07)],
    [0.65, rgb(colour)],
    [1, mixed(colour, isDark(element) ? "#FFFFFF" : "#000000", 0.6)],
  ]);
}

/** The scale for −1 … 1, zero being the page's background: orange below, blue above. @param {Element} element */
export function diverging(element) {
  const end = isDark(element) ? "#FFFFFF" : "#000000";
  return scale([
    [0, mixed(ROLES.key, end, 0.6)],
    [0.2, rgb(ROLES.key)],
    [0.5, rgb(background(element))],
    [0.8, rgb(ROLES.query)],
    [1, mixed(ROLES.query, end, 0.6)],
  ]);
}

/** The colour of `place` (0 … 1) on a scale, for CSS. @param {ArrayLike<number>} table @param {number} place */
export function colourAt(table, place) {
  const i = 3 * Math.round(255 * Math.max(0, Math.min(1, place)));
  return `rgb(${table[i]} ${table[i + 1]} ${table[i + 2]})`;
}

/** Equal ratios as equal steps, down to 0.1 %. @param {number} probability */
export function logarithmic(probability) {
  return 1 + Math.log10(Math.max(probability, 0.001)) / 3;
}
