// The words of the tree.
import { brief, percent } from "../kit/text.js";

/** @typedef {import("./nodes.js").TreeNode} TreeNode */

/** @param {number} number */
export function nats(number) {
  return `${brief(number)} nats`;
}

/** How a node was chosen, in a line. @param {TreeNode} node */
export function chosen({ how, byHand, draw }) {
  const drawn = draw === -Infinity ? "the settings had cut it" : `${percent(Math.exp(draw))} in the draw`;
  if (!how) return drawn; // it came while the tree was growing
  return byHand ? `${how}; ${drawn}` : `drawn with ${percent(Math.exp(draw))} (${how}) from:`;
}
