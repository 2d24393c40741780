// Tokens as chips, tinted by their probabilities, and in lines with a bar and a number.

import { make } from "./elements.js";
import { percent, SPOKEN, shortened, spoken } from "./text.js";

// The ends of a tint, in percent of the role's colour, as in kit.css: text stays readable on either, in light and dark.
export const PALEST = 6;
export const STRONGEST = 54;

/**
 * A token as a chip: monospaced, kept apart from the direction of its neighbours.
 *
 * @template {"span" | "button"} [Tag="span"]
 * @param {string} label
 * @param {Tag} [tag]
 */
export function chip(label, tag = /** @type {Tag} */ ("span")) {
  const element = make(tag, "chip", label);
  element.classList.toggle("blank", label in SPOKEN);
  element.setAttribute("aria-label", spoken(label));
  return element;
}

/** How much of a role's colour stands for a probability (0 … 1), for CSS. @param {number} probability */
export function tinted(probability) {
  return `${PALEST + (STRONGEST - PALEST) * probability}%`;
}

/** Give a chip the tint of a probability (0 … 1). @template {HTMLElement} One @param {One} one @param {number} probability @returns {One} */
export function tint(one, probability) {
  one.classList.add("tinted");
  one.style.setProperty("--tint", tinted(probability));
  return one;
}

/**
 * Let a line of a list show a token, a bar as long as its probability (0 … 1), and the number.
 *
 * @template {HTMLElement} Line
 * @param {Line} line
 * @param {string} label
 * @param {number | null} probability null has no bar
 * @param {number} [longest] characters of the token
 * @returns {Line}
 */
export function fillLine(line, label, probability, longest = 24) {
  const name = tint(chip(shortened(label, longest)), probability ?? 0),
    fill = make("span", "fill");
  name.classList.add("name");
  fill.style.width = `${100 * (probability ?? 0)}%`;
  const number = probability === null ? "–" : percent(probability);
  line.append(name, make("span", "track", [fill]), make("span", "number", number));
  return line;
}
