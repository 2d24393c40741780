// The store of a generation tree: every token with what it was chosen from, and what each step attended to. No element of the page.

import { brief } from "../kit/text.js";

/** The node that stands for the prompt. */
export const START = 0;
/** In place of a node: the token that may come after the current one. */
export const NEXT = "next";

/**
 * A token of the tree.
 *
 * @typedef {object} TreeNode
 * @property {number} id
 * @property {number | null} parent null for the prompt
 * @property {number} token its id in the vocabulary
 * @property {number} position how many tokens come before it
 * @property {number} logprob ln of its probability under the model, in nats
 * @property {number} draw ln of its probability in the draw, in nats; −∞ where the draw had cut it
 * @property {number} total sum of `logprob` from the prompt to here
 * @property {number[]} children ids
 * @property {string} how how it was chosen
 * @property {boolean} byHand whether it was not drawn, but chosen by hand or brought from another text
 * @property {[token: number, probability: number, drawn: number][]} candidates none for the prompt
 */

/**
 * Tokens without a fork between them: one box.
 *
 * @typedef {object} Branch
 * @property {number[]} nodes
 * @property {number} start the first of them
 * @property {number} end the last of them
 * @property {boolean} strong on the current path
 * @property {boolean} current ends at the current node
 * @property {number} level 1 for the prompt's branch, one more after each fork
 * @property {Branch[]} children
 */

/** @typedef {number | "next"} Place a node, or NEXT */
/** @typedef {{ start: number, keys: number, from: number, numbers: Float32Array }} Step the attention of a step among all numbers */
/** @typedef {{ start: number, weights: Float64Array }} Attended weights by place in the text, from place `start` on */

/** @param {number} number */
export function nats(number) {
  return `${brief(number)} nats`;
}

/** The nodes of one tree. */
export class Nodes {
  /** @param {any} payload with parts of the tree that came before, see finished.py */
  constructor(payload) {
    this.number = payload.number;
    const parts = [...(payload.parts ?? []), payload];
    /** @type {Record<number, string>} */
    this.labels = Object.assign({}, ...parts.map(({ labels }) => labels));
    this.code = payload.code ?? "# Pause first: the tree is growing.";
    this.prompt = payload.prompt; // labels
    this.promptLength = payload.prompt_length;
    const [layers, heads] = payload.heads;
    this.layers = layers;
    this.headsOfLayer = heads;
    /** @type {Map<number, TreeNode>} */
    this.all = new Map();
    const prompt = { id: START, parent: null, position: payload.prompt_length - 1, children: [], candidates: [] };
    this.all.set(START, { ...prompt, token: -1, logprob: 0, draw: 0, total: 0, how: "", byHand: false });
    for (const part of parts) if (part.arrays.node) this.addAll(part);
    /** Where the attention of each step lies, by the node after which it was made. @type {Map<number, Step>} */
    this.places = new Map();
    for (const { arrays } of parts) {
      const { place = [], attention: numbers } = arrays;
      for (let i = 0; i < place.length; i += 4)
        this.places.set(place[i], { start: place[i + 1], keys: place[i + 2], from: place[i + 3], numbers });
    }
    /** @type {number} */
    this.current = payload.current;
    this.path = this.pathTo(this.current); // the nodes from the first after the prompt to the current one
    this.onPath = new Set(this.path).add(START);
  }

  get size() {
    return this.all.size;
  }

  /** @param {Place | null | undefined} id */
  has(id) {
    return this.all.has(/** @type {number} */ (id));
  }

  /** @param {number} id @returns {TreeNode} */
  node(id) {
    const found = this.all.get(id);
    if (!found) throw new Error(`the tree has no node ${id}`);
    return found;
  }

  /** @param {any} payload */
  addAll({ arrays, how: names, draws }) {
    const { node, parent, token, position, logprob, draw_logprob: draw, total } = arrays;
    for (let i = 0; i < node.length; i++) {
      const above = this.all.get(parent[i]);
      if (!above || this.all.has(node[i])) continue;
      this.all.set(node[i], {
        id: node[i],
        parent: parent[i],
        token: token[i],
        position: position[i],
        logprob: logprob[i],
        draw: draw[i],
        total: total[i],
        children: [],
        how: names[arrays.how[i]],
        byHand: arrays.how[i] < draws,
        candidates: candidatesOf(arrays, i),
      });
      above.children.push(node[i]);
    }
  }

  /** @param {number} id */
  label(id) {
    return id === START ? (this.prompt.at(-1) ?? "") : this.labels[this.node(id).token];
  }

  /** How many tokens after the prompt a node ends. @param {number} id */
  lengthAt(id) {
    return this.node(id).position - this.promptLength + 1;
  }

  /** The nodes from the first after the prompt to `id`. @param {number} id */
  pathTo(id) {
    const path = [];
    for (let node = this.all.get(id); node && node.id !== START; node = this.all.get(/** @type {number} */ (node.parent))) {
      path.push(node.id);
    }
    return path.reverse();
  }

  /**
   * The tree of branches: a branch ends where it forks, where it ends, and at the current node. The current path comes first.
   *
   * @returns {Branch}
   */
  outline() {
    /** @param {number} start @param {number} level @returns {Branch} */
    const branch = (start, level) => {
      const nodes = [start];
      let last = this.node(start);
      while (last.children.length === 1 && last.id !== this.current) {
        last = this.node(last.children[0]);
        nodes.push(last.id);
      }
      const onPathFirst = [...last.children].sort((a, b) => Number(this.onPath.has(b)) - Number(this.onPath.has(a)));
      const children = onPathFirst.map((child) => branch(child, level + 1));
      const isCurrent = last.id === this.current;
      return { start, nodes, end: last.id, strong: this.onPath.has(start), current: isCurrent, level, children };
    };
    return branch(START, 1);
  }

  /** The node after which `at` was chosen. @param {Place} at */
  before(at) {
    return at === NEXT ? this.current : this.node(at).parent;
  }

  /**
   * The attention of the step that chose `at`, null if it is not here.
   *
   * @param {Place} at
   * @param {string} head "block.head", or "" for the mean of all heads
   * @returns {Attended | null}
   */
  attended(at, head) {
    const step = this.places.get(this.before(at) ?? -1);
    if (!step) return null;
    const { start, keys, from, numbers } = step;
    const [block, one] = head.split(".").map(Number);
    const rows = head ? [block * this.headsOfLayer + one] : [...Array(this.layers * this.headsOfLayer).keys()];
    const weights = new Float64Array(keys);
    for (const row of rows) {
      for (let key = 0; key < keys; key++) weights[key] += numbers[from + row * keys + key] / rows.length;
    }
    return { start, weights };
  }

  /** The tree as a table. */
  table() {
    const columns = ["node", "parent", "position", "token id", "token", "log-probability (nats)", "sum of the branch (nats)"];
    columns.push("log-probability in the draw (nats)", "on the current path", "how chosen");
    const rows = [...this.all.values()]
      .filter((node) => node.id !== START)
      .map((node) => [
        ...[node.id, node.parent, node.position, node.token, this.label(node.id), node.logprob, node.total, node.draw],
        ...[this.onPath.has(node.id) ? "yes" : "no", node.how],
      ]);
    return { columns, rows };
  }
}

/** @param {any} arrays @param {number} row @returns {[number, number, number][]} */
function candidatesOf({ candidates, candidate_p: p }, row) {
  const [, each] = candidates.shape;
  /** @type {[number, number, number][]} */
  const found = [];
  for (let i = row * each; i < (row + 1) * each && candidates[i] >= 0; i++) found.push([candidates[i], p[2 * i], p[2 * i + 1]]);
  return found;
}
