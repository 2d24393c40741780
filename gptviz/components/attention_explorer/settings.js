// What all parts of the explorer agree on: what can be shown, the sides of a pattern, and the keys that walk.

import { percent } from "../kit/text.js";

export const SHOWS = {
  pattern: {
    name: "Pattern",
    role: "pattern",
    unit: "share of the row",
    help: "Softmax of the scores: how a query shares its attention among the keys",
  },
  value: {
    name: "Value-weighted",
    role: "value",
    unit: "length of share · v W_O",
    help: "‖share · v W_O‖: how long the vector is that a key adds to the query’s stream",
  },
  rollout: {
    name: "Rollout",
    role: "pattern",
    unit: "share, through the blocks",
    help: "Attention multiplied from the first block up to this one (Abnar & Zuidema 2020)",
  },
};
export const FACTS = {
  previous: { name: "the token before", says: (value) => `${percent(value)} on the token before` },
  first: { name: "the first token", says: (value) => `${percent(value)} on the first token` },
  itself: { name: "its own token", says: (value) => `${percent(value)} on itself` },
  spread: { name: "few tokens", says: (value) => `spread over ${value.toFixed(1)} tokens`, fewest: true },
};
export const SIDES = { query: "key", key: "query" };
// Stands where a head does for the mean of all heads of a block.
export const MEAN = "mean";
// Where a scale of colour is drawn from.
export const STOPS = [0, 0.25, 0.5, 0.65, 0.8, 1];
export const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

export function same(a, b) {
  return a[0] === b[0] && a[1] === b[1];
}
