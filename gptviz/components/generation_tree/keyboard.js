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
  if (key === "Home") return { node: START };
  if (key === "End") return { node: nodes.current };
  if ("line" in spot) {
    if (key === "ArrowLeft") return { node: nodes.current };
    if (key === "ArrowRight") return null;
    const line = spot.line + DOWN[key];
    return line >= 0 && line < lines ? { line } : neighbour(NEXT, DOWN[key], nodes, outline, lines);
  }
  if (key === "ArrowLeft") {
    const { parent } = nodes.node(spot.node);
    return parent === null ? null : { node: parent };
  }
  if (key === "ArrowRight") return childOf(spot.node, nodes, lines);
  return neighbour(spot.node, DOWN[key], nodes, outline, lines);
}

/** @param {number} id @param {Nodes} nodes @param {number} lines @returns {Spot | null} */
function childOf(id, nodes, lines) {
  const { children } = nodes.node(id);
  const next = children.find((child) => nodes.onPath.has(child));
  if (next === undefined && id === nodes.current && lines) return { line: 0 };
  const node = next ?? children[0];
  return node === undefined ? null : { node };
}

/**
 * The token in the same place of the text, in the branch drawn above (−1) or below (1).
 *
 * @param {Place} at
 * @param {number} way
 * @param {Nodes} nodes
 * @param {Branch} outline
 * @param {number} lines
 * @returns {Spot | null}
 */
function neighbour(at, way, nodes, outline, lines) {
  const position = at === NEXT ? nodes.node(nodes.current).position + 1 : nodes.node(at).position;
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
}
