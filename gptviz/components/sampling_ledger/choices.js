// What a reader chooses: how it is read from the address, which values it can have, and the sliders that set it.

import { inAddress } from "../kit/address.js";
import { make } from "../kit/elements.js";
import { count, shortened } from "../kit/text.js";

export const SEEDS = 100;
const LIKELIEST = "All, by probability";
export const VOCABULARY = "All, by vocabulary";
/** @type {Record<string, string>} */
export const ORDERS = { [LIKELIEST]: "likeliest first", [VOCABULARY]: "by vocabulary" };

/**
 * What a reader has chosen.
 *
 * @typedef {{ temperature: number, top_k: number, top_p: number, seed: number, tokens: string, log: boolean }} Choices
 */

/** A number as a person, a link or `String` writes it, NaN for anything else. @param {string} text */
function numeral(text) {
  return /^(\d+\.?\d*|\.\d+)(e-\d+)?$/.test(text) ? Number(text) : NaN;
}

// Of each choice: its `usual` value, which the address leaves out, how a text is `read`, which values are `possible` with a
// vocabulary of that size, what it `says` to a reader, and of a slider its name, its ends and its step.
/** @type {Record<string, { usual: any, read: (text: string) => any, possible: (value: any, size: number) => boolean, says: (value: any) => string, slider?: { name: string, ends: [number, number, number] } }>} */
export const CHOICES = {
  temperature: {
    usual: 1,
    read: numeral,
    possible: (value) => value >= 0 && value <= 2,
    says: (value) => (Number(value.toFixed(2)) === value ? value.toFixed(2) : String(value)),
    slider: { name: "Temperature", ends: [0, 2, 0.01] },
  },
  top_k: {
    usual: 0,
    read: numeral,
    possible: (value, size) => Number.isInteger(value) && value <= Math.max(size, 100),
    says: (value) => (value ? count(value) : "off"),
    slider: { name: "Top-k", ends: [0, 1, 1] },
  },
  top_p: {
    usual: 1,
    read: numeral,
    possible: (value) => value >= 0.05 && value <= 1,
    says: (value) => (value === 1 ? "off" : String(value)),
    slider: { name: "Top-p", ends: [0.05, 1, 0.001] },
  },
  seed: {
    usual: 0,
    read: numeral,
    possible: (value) => Number.isInteger(value) && value < SEEDS,
    says: String,
    slider: { name: "Seed", ends: [0, SEEDS - 1, 1] },
  },
  tokens: { usual: LIKELIEST, read: String, possible: (value) => value in ORDERS, says: (value) => ORDERS[value] },
  log: {
    usual: false,
    read: (text) => /** @type {Record<string, boolean>} */ ({ true: true, false: false })[text],
    possible: (value) => typeof value === "boolean",
    says: (value) => (value ? "on" : "off"),
  },
};
export const OF_THE_DRAW = ["temperature", "top_k", "top_p", "seed"];

/** What is chosen where nothing says otherwise. @returns {Choices} */
export function usualChoices() {
  return /** @type {any} */ (Object.fromEntries(Object.entries(CHOICES).map(([key, { usual }]) => [key, usual])));
}

/** Those of `keys` that the address chooses, and in words what it asks for in vain. @param {string[]} keys @param {number} size of the vocabulary */
export function choicesInAddress(keys, size) {
  /** @type {Record<string, any>} */
  const chosen = {};
  /** @type {string[]} */
  const vain = [];
  for (const key of keys) {
    const { usual, read, possible, says } = CHOICES[key];
    const text = inAddress(key);
    if (text === null) continue;
    const value = read(text);
    if (possible(value, size)) chosen[key] = value;
    else vain.push(`${key} = “${shortened(text, 80)}”, which is not available here; the view began with ${says(usual)}.`);
  }
  return { chosen, vain };
}

/** The numbers that top-k's slider offers: all of the small ones, then in steps of a tenth, and 0, which keeps all. @param {number} size of the vocabulary */
export function notches(size) {
  const offered = [];
  for (let k = 1; k < size; k = k < 100 ? k + 1 : Math.ceil(1.1 * k)) offered.push(k);
  if (size > 1 && offered.at(-1) !== size - 1) offered.push(size - 1);
  return [...offered, 0];
}

/** The slider of a choice, and beside it the value it stands at. */
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
    this.range.value = String(this.offered ? placeOf(value, this.offered) : value);
    this.value.textContent = CHOICES[this.key].says(value);
    this.range.setAttribute("aria-valuetext", this.value.textContent);
  }
}

/** The first place whose value is at least so large; the last place stands for 0. @param {number} value @param {number[]} offered */
function placeOf(value, offered) {
  const place = value ? offered.findIndex((one) => one >= value) : -1;
  return place < 0 ? offered.length - 1 : place;
}
