// What all parts of the explorer agree on: what can be shown, the sides of a pattern, and what a reader can choose.

import { percent } from "../kit/text.js";

/** @typedef {"query" | "key"} Side of a pattern */

/** @typedef {[block: number, head: number | "mean"]} Head */

/** @typedef {{ side: Side, index: number, partner: number | null }} Aim what is looked at */

/** @typedef {"pattern" | "rest" | "value" | "rollout"} Quantity that is shown */

/**
 * What a reader has chosen.
 *
 * @typedef {object} Choice
 * @property {number} block
 * @property {number} head
 * @property {string | [number, number][]} heads "one", the "mean" or "all" of the block, or the heads to compare
 * @property {Quantity} show which quantity
 * @property {"out" | "in"} direction what a token reads, or who reads it
 * @property {number | null} query the query that is held
 * @property {number | null} key the key that is held
 * @property {string | null} sort the fact that orders the heads
 * @property {number | null} least heads with less of that fact are hidden
 * @property {boolean} log
 */

/** @type {Record<Quantity, { name: string, role: "pattern" | "value", unit: string, help: string }>} */
export const SHOWS = {
  pattern: {
    name: "Pattern",
    role: "pattern",
    unit: "share of the row",
    help: "Softmax of the scores: how a query shares its attention among the keys",
  },
  rest: {
    name: "Without the first",
    role: "pattern",
    unit: "share of the row without the first token",
    help: "What a query leaves to all tokens but the first, scaled up to 100 %: many heads rest on the first token when they find nothing to read",
  },
  value: {
    name: "Value-weighted",
    role: "value",
    unit: "length of share · v W_O",
    help: "‖share · v W_O‖: the length of the vector that a key adds to the query’s stream",
  },
  rollout: {
    name: "Rollout",
    role: "pattern",
    unit: "share, through the blocks",
    help: "Attention multiplied from the first block up to this one (Abnar & Zuidema 2020)",
  },
};
/** @type {Record<string, { name: string, says: (value: number) => string, fewest?: boolean }>} */
export const FACTS = {
  previous: { name: "the token before", says: (value) => `${percent(value)} on the token before` },
  first: { name: "the first token", says: (value) => `${percent(value)} on the first token` },
  itself: { name: "its own token", says: (value) => `${percent(value)} on itself` },
  followed: {
    name: "what followed an earlier copy",
    says: (value) => `${percent(value)} on what followed an earlier copy of the token`,
  },
  spread: { name: "few tokens", says: (value) => `spread over ${value.toFixed(1)} tokens`, fewest: true },
};
/** @type {Record<Side, Side>} */
export const SIDES = { query: "key", key: "query" };
// Stands where a head does for the mean of all heads of a block.
export const MEAN = "mean";

/** @param {number} value @param {number} low @param {number} high */
export function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

/** @param {Head} a @param {Head} b */
export function same(a, b) {
  return a[0] === b[0] && a[1] === b[1];
}
