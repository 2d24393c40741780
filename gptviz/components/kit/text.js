// Tokens and numbers, as they are shown and said everywhere.

import { make } from "./elements.js";

// Without a prototype: a token may be called "constructor".
export const SPOKEN = { __proto__: null, "␣": "space", "⏎": "newline", "⇥": "tab" };

/** How a token is called aloud. */
export function spoken(label) {
  return SPOKEN[label] ?? label;
}

/** A token as a chip: monospaced, kept apart from the direction of its neighbours. */
export function chip(label, tag = "span") {
  const element = make(tag, "chip", label);
  element.classList.toggle("blank", label in SPOKEN);
  element.setAttribute("aria-label", spoken(label));
  return element;
}

/** At most `longest` characters of a text. */
export function shortened(text, longest = 24) {
  const characters = [...text];
  return characters.length <= longest ? text : `${characters.slice(0, longest - 1).join("")}…`;
}

/** Three significant digits, with a real minus. */
export function brief(number) {
  if (Number.isNaN(number)) return "–";
  if (!Number.isFinite(number)) return number < 0 ? "−∞" : "∞";
  const size = Math.abs(number);
  const text =
    size !== 0 && (size < 0.001 || size >= 100_000)
      ? number.toExponential(2)
      : size >= 100
        ? number.toFixed(0)
        : number.toPrecision(3);
  return text.replaceAll("-", "−");
}

export function percent(probability) {
  if (probability === 0) return "0 %";
  return probability < 0.001 ? "< 0.1 %" : `${(100 * probability).toPrecision(3)} %`;
}

/** A count with thin separators. */
export function count(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
