// What a reader has chosen: its usual values, what may take their place, and how the address writes it. Nothing here draws.

import { valuesIn } from "../kit/values.js";

/**
 * @typedef {object} Choice
 * @property {number} block
 * @property {number} head
 * @property {string | [number, number][]} heads "one", the "mean" or "all" of the block, or the heads to compare
 * @property {import("./settings.js").Quantity} show which quantity
 * @property {"out" | "in"} direction what a token reads, or who reads it
 * @property {number | null} query the query that is held
 * @property {number | null} key the key that is held
 * @property {string | null} sort the fact that orders the heads
 * @property {number | null} least heads with less of that fact are hidden
 * @property {boolean} log
 */

/** @type {Omit<Choice, "block" | "head">} */
const USUAL = { heads: "one", show: "pattern", direction: "out", query: null, key: null, sort: null, least: null, log: false };

/** What is chosen before anybody chooses.
 *  @param {import("./numbers.js").Numbers} numbers
 *  @returns {Choice} */
export function usualChoice({ n_block, n_head, start }) {
  return { ...USUAL, ...start, block: Math.min(start.block, n_block - 1), head: Math.min(start.head, n_head - 1) };
}

/** Put the values of `asked` into a choice where they are possible; null asks for the usual one.
 *  @param {Choice} choice changed
 *  @param {Record<string, unknown>} asked
 *  @param {import("./numbers.js").Numbers} numbers
 *  @returns {[string, string][]} what is impossible: key and value */
export function takeOver(choice, asked, numbers) {
  const { values, refused } = valuesIn(numbers.declared, asked);
  /** @type {Record<string, unknown>} */
  const usual = { ...usualChoice(numbers) };
  for (const [key, value] of Object.entries(values)) Object.assign(choice, { [key]: value ?? usual[key] });
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

/** @param {unknown} value */
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
  /** @type {Record<string, unknown>} */
  const usual = isHeadChosen ? { ...usualChoice(numbers), block: null, head: null } : usualChoice(numbers);
  return Object.fromEntries(Object.entries(choice).map(([key, value]) => [key, value === usual[key] ? null : asText(value)]));
}
