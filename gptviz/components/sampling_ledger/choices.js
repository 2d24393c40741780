// What a reader chooses: how it is read from the address, which values it can have, and the sliders that set it.

import { inAddress } from "../kit/address.js";
import { make } from "../kit/elements.js";
import { count, shortened } from "../kit/text.js";

export const SEEDS = 100;
const LIKELIEST = "All, by probability";
export const VOCABULARY = "All, by vocabulary";
export const ORDERS = { [LIKELIEST]: "likeliest first", [VOCABULARY]: "by vocabulary" };

/** A number as a person, a link or `String` writes it, NaN for anything else. */
function numeral(text) {
  return /^(\d+\.?\d*|\.\d+)(e-\d+)?$/.test(text) ? Number(text) : NaN;
}

// Of each choice: its `usual` value, which the address leaves out, how a text is `read`, which values are `possible` with a
// vocabulary of that size, what it `says` to a reader, and of a slider its name, its ends and its step.
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
    read: (text) => ({ true: true, false: false })[text],
    possible: (value) => typeof value === "boolean",
    says: (value) => (value ? "on" : "off"),
  },
};
export const OF_THE_DRAW = ["temperature", "top_k", "top_p", "seed"];

/** What is chosen where nothing says otherwise. */
export function usualChoices() {
  return Object.fromEntries(Object.entries(CHOICES).map(([key, { usual }]) => [key, usual]));
}

/** Those of `keys` that the address chooses, and in words what it asks for in vain. */
export function choicesInAddress(keys, size) {
  const chosen = {},
    vain = [];
  for (const key of keys) {
    const { usual, read, possible, says } = CHOICES[key];
    const text = inAddress(key);
    if (text === null) continue;
    const value = read(text);
    if (possible(value, size)) chosen[key] = value;
    else vain.push(`${key} = “${shortened(text, 80)}”, which is not to be had here; it began as ${says(usual)}.`);
  }
  return { chosen, vain };
}

/** The numbers that top-k's slider offers: all of the small ones, then in steps of a tenth, and 0, which keeps all. */
export function notches(size) {
  const offered = [];
  for (let k = 1; k < size; k = k < 100 ? k + 1 : Math.ceil(1.1 * k)) offered.push(k);
  if (size > 1 && offered.at(-1) !== size - 1) offered.push(size - 1);
  return [...offered, 0];
}

/** The slider of a choice, and beside it the value it stands at. */
export class Slider {
  constructor(key, help) {
    const {
      name,
      ends: [min, max, step],
    } = CHOICES[key].slider;
    this.key = key;
    const look = { type: "range", min, max, step, "aria-label": name, "aria-description": help };
    this.range = make("input", "range", undefined, look);
    this.range.dataset.key = key;
    this.value = make("span", "value");
  }

  /** Let its places stand for these values, the last of which is 0. */
  offer(values) {
    this.offered = values;
    this.range.max = values.length - 1;
  }

  get chosen() {
    const place = Number(this.range.value);
    return this.offered ? this.offered[place] : place;
  }

  show(value) {
    this.range.value = this.offered ? this.placeOf(value) : value;
    this.value.textContent = CHOICES[this.key].says(value);
    this.range.setAttribute("aria-valuetext", this.value.textContent);
  }

  placeOf(value) {
    const place = value ? this.offered.findIndex((offered) => offered >= value) : -1;
    return place < 0 ? this.offered.length - 1 : place;
  }
}
