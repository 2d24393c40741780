// What the tree says in words, and how strongly it tints.
import { brief, percent } from "../kit/text.js";

/** @typedef {import("./nodes.js").TreeNode} TreeNode */

// The ends of a tint, in percent of the role's colour: text stays readable on either, in light and dark.
const PALEST = 6,
  STRONGEST = 62;

/** How much of a role's colour stands for a share of 0 … 1. @param {number} share */
export function tinted(share) {
  return `${PALEST + (STRONGEST - PALEST) * share}%`;
}

/** @param {number} number */
export function nats(number) {
  return `${brief(number)} nats`;
}

/** How a node was chosen, in a line. @param {TreeNode} node */
export function chosen({ how, byHand, draw }) {
  const drawn = draw === -Infinity ? "the draw had cut it" : `${percent(Math.exp(draw))} in the draw`;
  if (!how) return drawn; // it came while the tree was growing
  return byHand ? `${how}; ${drawn}` : `drawn with ${percent(Math.exp(draw))} (${how}) from:`;
}
