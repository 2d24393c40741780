// The choices of a reader: what they are called, and the sliders that set them.

import { make } from "../kit/elements.js";
import { count } from "../kit/text.js";

export const SEEDS = 100;
export const VOCABULARY = "All, by vocabulary";
/** @type {Record<string, string>} */
export const ORDERS = { "All, by probability": "likeliest first", [VOCABULARY]: "by vocabulary" };

/**
 * What a reader has chosen; where nothing is drawn, only the order and the bars.
 *
 * @typedef {{ temperature: number, top_k: number, top_p: number, seed: number, tokens: string, log: boolean }} Chosen
 */

// Of each choice: what it `says` to a reader, and of a slider its name, its ends and its step. Which values it can have, and which one
// is usual, comes with the payload.
/** @type {Record<string, { says: (value: any) => string, slider?: { name: string, ends: [number, number, number] } }>} */
export const CHOICES = {
  temperature: {
    says: (value) => (Number(value.toFixed(2)) === value ? value.toFixed(2) : String(value)),
    slider: { name: "Temperature", ends: [0, 2, 0.01] },
  },
  top_k: { says: (value) => (value ? count(value) : "off"), slider: { name: "Top-k", ends: [0, 1, 1] } },
  top_p: {
    says: (value) => (value === 1 ? "off" : String(value)),
    slider: { name: "Top-p", ends: [0.05, 1, 0.001] },
  },
  seed: { says: String, slider: { name: "Seed", ends: [0, SEEDS - 1, 1] } },
  tokens: { says: (value) => ORDERS[value] },
  log: { says: (value) => (value ? "on" : "off") },
};
export const OF_THE_DRAW = ["temperature", "top_k", "top_p", "seed"];

/** The numbers that top-k's slider offers: all of the small ones, then in steps of a tenth, and 0, which keeps all. @param {number} size of the vocabulary */
export function notches(size) {
  const offered = [];
  for (let k = 1; k < size; k = k < 100 ? k + 1 : Math.ceil(1.1 * k)) offered.push(k);
  if (size > 1 && offered.at(-1) !== size - 1) offered.push(size - 1);
  return [...offered, 0];
}

/** The slider of a choice, and next to it its value. */
export class Slider {
  /** @param {string} key @param {string} help */
  constructor(key, help) {
    const { name, ends } = /** @type {{ name: string, ends: [number, number, number] }} */ (CHOICES[key].slider);
    const [min, max, step] = ends;
    this.key = key;
    /** @type {number[] | null} */
    this.offered = null; // the values that its places stand for, null where they are the values
    const look = { type: "range", min, max, step, "aria-label": name, "aria-description": help };
    this.range = make("input", "range", undefined, look);
    this.range.dataset.key = key;
    this.value = make("span", "value");
  }

  /** Let its places stand for these values, the last of which is 0. @param {number[]} values */
  offer(values) {
    this.offered = values;
    this.range.max = String(values.length - 1);
  }

  get chosen() {
    const place = Number(this.range.value);
    return this.offered ? this.offered[place] : place;
  }

  /** @param {number} value */
  show(value) {
    // The first place whose value is at least so large; the last place stands for 0.
    const place = value && this.offered ? this.offered.findIndex((one) => one >= value) : -1;
    this.range.value = String(!this.offered ? value : place < 0 ? this.offered.length - 1 : place);
    this.value.textContent = CHOICES[this.key].says(value);
    this.range.setAttribute("aria-valuetext", this.value.textContent);
  }
}
