// Tokens and numbers, as they are shown and said everywhere.

/**
 * The names of white space, to be read aloud. Without a prototype: a token may be called "constructor".
 *
 * @type {Record<string, string>}
 */
export const SPOKEN = Object.assign(Object.create(null), { "␣": "space", "⏎": "newline", "⇥": "tab" });

/** How a token is called aloud. @param {string} label */
export function spoken(label) {
  return SPOKEN[label] ?? label;
}

/** At most `longest` characters of a text. @param {string} text @param {number} [longest] */
export function shortened(text, longest = 24) {
  const characters = [...text];
  return characters.length <= longest ? text : `${characters.slice(0, longest - 1).join("")}…`;
}

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** Three significant digits, with a real minus; what is far from 1 with a power of ten: 2.35 · 10⁻⁶. @param {number} number */
export function brief(number) {
  if (Number.isNaN(number)) return "–";
  if (!Number.isFinite(number)) return number < 0 ? "−∞" : "∞";
  const size = Math.abs(number);
  const isFar = size !== 0 && (size < 0.001 || size >= 100_000);
  const [digits, exponent] = size.toExponential(2).split("e"),
    raised = exponent.replace("+", "").replaceAll(/./g, (sign) => (sign === "-" ? "⁻" : RAISED[Number(sign)]));
  const text = isFar ? `${digits} · 10${raised}` : size >= 100 ? size.toFixed(0) : size.toPrecision(3);
  return (number < 0 ? "−" : "") + text;
}

/** @param {number} probability */
export function percent(probability) {
  if (probability === 0) return "0 %";
  return probability < 0.001 ? "< 0.1 %" : `${(100 * probability).toPrecision(3)} %`;
}

/** A number of things: "1 block", "2 blocks". @param {number} number @param {string} name */
export function plural(number, name) {
  return `${count(number)} ${name}${number === 1 ? "" : "s"}`;
}

/** A count with thin separators. @param {number} number */
export function count(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
