// What a reader has chosen: its usual values, what may take their place, and how the address writes it. Nothing here draws.

import { MEAN, SHOWS } from "./settings.js";

/**
 * @typedef {object} Choice
 * @property {number} block
 * @property {number} head
 * @property {string | [number, number][]} heads "one", the "mean" or "all" of the block, or the heads to compare
 * @property {"pattern" | "rest" | "value" | "rollout"} show which quantity
 * @property {"out" | "in"} direction what a token reads, or who reads it
 * @property {number | null} query the query that is held
 * @property {number | null} key the key that is held
 * @property {string | null} sort the fact that orders the heads
 * @property {number | null} least heads with less of that fact are hidden
 * @property {boolean} log
 */

/** @type {Omit<Choice, "block" | "head">} */
const USUAL = { heads: "one", show: "pattern", direction: "out", query: null, key: null, sort: null, least: null, log: false };

/** The keys of a choice in the address. */
export const KEYS = ["block", "head", ...Object.keys(USUAL)];

/** What is chosen before anybody chooses.
 *  @param {any} numbers
 *  @returns {Choice} */
export function usualChoice({ n_block, n_head, start }) {
  return { ...USUAL, ...start, block: Math.min(start.block, n_block - 1), head: Math.min(start.head, n_head - 1) };
}

/** The quantities that these numbers can show. @param {import("./numbers.js").Numbers} numbers */
export function quantities(numbers) {
  /** @type {Record<string, string>} */
  const needs = { rest: "without first", rollout: "rollout" };
  return Object.keys(SHOWS).filter((name) => !needs[name] || numbers.arrays[needs[name]]);
}

/** @param {unknown} value @param {number} count */
function wholeBelow(value, count) {
  return /^\d{1,6}$/.test(String(value)) && Number(value) < count ? Number(value) : undefined;
}

/**
 * "one", the "mean" or "all" of the block, or heads to compare: "1.2 0.3".
 *
 * @param {any} value
 * @param {import("./numbers.js").Numbers} numbers
 */
function headsOf(value, { n_block, n_head }) {
  if (["one", MEAN, "all"].includes(value)) return value;
  const heads = String(value)
    .split(" ")
    .map((one) =>
      one
        .match(/^(\d{1,4})\.(\d{1,4})$/)
        ?.slice(1)
        .map(Number),
    );
  return heads.every((at) => at && at[0] < n_block && at[1] < n_head) ? heads : undefined;
}

/**
 * How each value is read; undefined where it is impossible.
 *
 * @type {Record<string, (value: any, numbers: import("./numbers.js").Numbers) => unknown>}
 */
const READERS = {
  block: (value, numbers) => wholeBelow(value, numbers.n_block),
  head: (value, numbers) => wholeBelow(value, numbers.n_head),
  heads: headsOf,
  show: (value, numbers) => (quantities(numbers).includes(value) ? value : undefined),
  direction: (value) => (["out", "in"].includes(value) ? value : undefined),
  query: (value, numbers) => wholeBelow(value, numbers.nQuery),
  key: (value, numbers) => wholeBelow(value, numbers.nKey),
  sort: (value, numbers) => (numbers.facts.includes(value) ? value : undefined),
  least: (value) => (/^\d{1,4}$/.test(String(value)) ? Number(value) : undefined),
  log: (value) => /** @type {Record<string, boolean>} */ ({ true: true, false: false })[String(value).toLowerCase()],
};

/** Put the values of `asked` into a choice where they are possible; null asks for the usual one.
 *  @param {any} choice changed
 *  @param {Record<string, unknown>} asked
 *  @param {import("./numbers.js").Numbers} numbers
 *  @returns {[string, string][]} what is impossible: key and value */
export function takeOver(choice, asked, numbers) {
  /** @type {[string, string][]} */
  const refused = [];
  for (const [key, value] of Object.entries(asked)) {
    if (!Object.hasOwn(READERS, key)) continue;
    const taken = value === null ? /** @type {any} */ (usualChoice(numbers))[key] : READERS[key](value, numbers);
    if (taken === undefined) refused.push([key, String(value)]);
    else choice[key] = taken;
  }
  const { query, key } = choice;
  if (query !== null && key !== null && numbers.place(query, key) < 0) {
    refused.push(["key", String(key)]);
    choice.key = null;
  }
  return refused;
}

/** For other numbers: what was chosen stays where it is still possible.
 *  @param {Choice} before
 *  @param {import("./numbers.js").Numbers} numbers
 *  @returns {Choice} */
export function fitted(before, numbers) {
  const choice = usualChoice(numbers);
  const kept = Object.entries(written(before)).filter(([, value]) => value !== null);
  takeOver(choice, Object.fromEntries(kept), numbers);
  return choice;
}

/** A choice as `takeOver` reads it. @param {Choice} choice @returns {Record<string, string | null>} */
export function written(choice) {
  return Object.fromEntries(Object.entries(choice).map(([key, value]) => [key, value === null ? null : asText(value)]));
}

/** @param {any} value */
function asText(value) {
  return Array.isArray(value) ? value.map((at) => at.join(".")).join(" ") : String(value);
}

/**
 * A choice as the address has it: null for what is usual. A head that the reader chose is named all the same: which one is usual
 * depends on the text.
 *
 * @param {Choice} choice
 * @param {import("./numbers.js").Numbers} numbers
 * @param {boolean} isHeadChosen
 */
export function forAddress(choice, numbers, isHeadChosen = false) {
  /** @type {any} */
  const usual = isHeadChosen ? { ...usualChoice(numbers), block: null, head: null } : usualChoice(numbers);
  return Object.fromEntries(Object.entries(choice).map(([key, value]) => [key, value === usual[key] ? null : asText(value)]));
}
