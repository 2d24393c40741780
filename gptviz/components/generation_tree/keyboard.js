// Walking the tree with the keyboard: left to the parent, right to the child, up and down to the same place in other branches.
import { ARROWS, DOWN } from "../kit/keys.js";
import { NEXT, START } from "./nodes.js";

/** @typedef {import("./nodes.js").Nodes} Nodes @typedef {import("./nodes.js").Branch} Branch @typedef {import("./nodes.js").Place} Place */

/**
 * Where the keyboard stands: on a node, or on one of the lines of what may come next.
 *
 * @typedef {{ node: number } | { line: number }} Spot
 */

/** The keys that walk. */
export const WALKING = [...Object.keys(ARROWS), "Home", "End"];

/**
 * Where a key leads, null if nowhere.
 *
 * @param {string} key one of WALKING
 * @param {Spot} spot
 * @param {Nodes} nodes
 * @param {Branch} outline
 * @param {number} lines how many lines of what may come next are shown
 * @returns {Spot | null}
 */
export function walk(key, spot, nodes, outline, lines) {
  /** The token in the same place of the text, in the branch drawn above (−1) or below (1). @param {Place} at @returns {Spot | null} */
  const neighbour = (at) => {
    const way = DOWN[key],
      position = at === NEXT ? nodes.node(nodes.current).position + 1 : nodes.node(at).position;
    /** @type {Place[]} */
    const level = [];
    /** @param {Branch} branch */
    const visit = (branch) => {
      const first = nodes.node(branch.start).position;
      if (branch.current && position === first + branch.nodes.length && lines) level.push(NEXT);
      if (position >= first && position < first + branch.nodes.length) level.push(branch.nodes[position - first]);
      else branch.children.forEach(visit);
    };
    visit(outline);
    const found = level[level.indexOf(at) + way];
    if (found === undefined) return null;
    return found === NEXT ? { line: way > 0 ? 0 : lines - 1 } : { node: found };
  };
  if (key === "Home") return { node: START };
  if (key === "End") return { node: nodes.current };
  if ("line" in spot) {
    if (key === "ArrowLeft") return { node: nodes.current };
    if (key === "ArrowRight") return null;
    const line = spot.line + DOWN[key];
    return line >= 0 && line < lines ? { line } : neighbour(NEXT);
  }
  const { parent, children } = nodes.node(spot.node);
  if (key === "ArrowLeft") return parent === null ? null : { node: parent };
  if (key !== "ArrowRight") return neighbour(spot.node);
  const onPath = children.find((child) => nodes.onPath.has(child)),
    node = onPath ?? children[0];
  if (onPath === undefined && spot.node === nodes.current && lines) return { line: 0 };
  return node === undefined ? null : { node };
}
