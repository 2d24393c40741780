// How much room the parts of a block need, so that all of its boxes stand side by side. Nothing here draws.

import { SMALL } from "./geometry.js";

/** @typedef {{ path: string, label: string, heads: string[] }} Between a step between queries and keys: its word, and whose it is */

// From the left edge to the first part, from the last part to the right edge, and what the shape of the stream takes there.
const START = 34,
  END = 4,
  LABEL = 54;
// From an MLP parallel to the attention to the right end of the text under their sum.
const SUM = 36;
// Of bold letters in the sans-serif of most systems, as a share of their size.
const WIDTH_OF_LETTER = 0.57;
// A pattern is as wide as there is room, within these.
const LEAST = 120,
  LARGEST = 320;

/** The widths of the boxes of one block. */
export class Room {
  /** @param {import("./boxes.js").Boxes} boxes @param {string} stack @param {number} block */
  constructor(boxes, stack, block) {
    this.boxes = boxes;
    this.at = `${stack}blocks.${block}.`;
    this.paths = new Set(boxes.of(stack, block));
    const inside = [...this.paths];
    this.parts = ["attention", "cross_attention", "mlp"].filter((part) =>
      inside.some((path) => path.startsWith(`${this.at}${part}.`)),
    );
    this.isTight = this.parts.includes("cross_attention");
    /** Whether attention and MLP both read the stream as the block finds it. */
    this.isParallel = boxes.get(`${this.at}resid_post`)?.part === "parallel.join";
    /** Whether the MLP reads what the attention does, through one norm. */
    this.isShared = this.isParallel && this.has("attention.norm") && !this.has("mlp.norm");
    this.w = this.isTight
      ? { norm: 42, lead: 12, q: 76, scores: 54, mask: 37, gap: 8, pattern: 96, z: 34, mlp: 58, step: 10 }
      : { norm: 52, lead: 18, q: 92, scores: 70, mask: 42, gap: 14, pattern: 178, z: 86, mlp: 78, step: 16 };
    if (this.hasTwo) this.w.mlp -= 14;
    if (inside.some((path) => boxes.at(path).name === "Window")) this.w.mask += 12;
    for (const part of this.parts) {
      const between = this.between(part);
      const longest = Math.max(0, ...between.map(({ label }) => label.length));
      const each = longest * WIDTH_OF_LETTER * SMALL + 6;
      this.w.q = Math.max(this.w.q, between.length * (each + 4) - 4);
    }
  }

  /** Whether an MLP begins with two boxes side by side. */
  get hasTwo() {
    return this.has("mlp.gate") || this.has("mlp.router");
  }

  /** @param {string} path */
  has(path) {
    return this.paths.has(this.at + path);
  }

  /** What queries and keys of a part pass through. @param {string} part @returns {Between[]} */
  between(part) {
    const at = `${this.at}${part}.`;
    /** @type {Between[]} */
    const all = [
      { path: `${at}qk_norm`, label: "norm", heads: ["q", "k"] },
      { path: `${at}qk_norm.q`, label: "norm q", heads: ["q"] },
      { path: `${at}qk_norm.k`, label: "norm k", heads: ["k"] },
      { path: `${at}positions`, label: "rotary", heads: ["q", "k"] },
    ];
    return all.filter(({ path }) => this.paths.has(path) && this.boxes.at(path).part !== "distance");
  }

  /** The norm of the stream after a part, none where the norm stands elsewhere. @param {string} part */
  normOfStream(part) {
    return [...this.paths].find(
      (path) => path.startsWith(`${this.at}resid_`) && this.boxes.at(path).part === `${part}.norm_after`,
    );
  }

  /** How much room a part takes, from where it begins to where the next one does. @param {string} part */
  of(part) {
    const { w } = this;
    const isReading = !(this.isShared && part === "mlp");
    const pre = this.has(`${part}.norm`) ? w.norm + w.lead : isReading ? w.lead + 6 : 12;
    const after = this.has(`${part}.norm_after`) ? w.norm + 12 : 0;
    const post = this.normOfStream(part) ? w.norm + 8 : 0;
    if (part === "mlp") {
      const gate = this.hasTwo ? w.mlp + 12 : 0;
      return pre + gate + 2 * w.mlp + 12 + after + post + w.step + (this.isParallel ? SUM : 0);
    }
    const mask = this.has(`${part}.mask`) ? w.mask + w.gap : 0;
    return pre + 10 + w.q + w.gap + 8 + w.scores + mask + w.gap + w.pattern + after + (post ? post - 20 : 0) + w.step;
  }

  /** What all parts together need, and how little is enough. */
  get needed() {
    const all = this.parts.reduce((sum, part) => sum + this.of(part), START) + END;
    const attentions = this.parts.filter((part) => part !== "mlp").length;
    return { all, least: all - attentions * Math.max(0, this.w.pattern - LEAST) };
  }

  /** Let the patterns take the room that is left, or give what is missing. @param {number} width of the block */
  fit(width) {
    const spare = width - this.needed.all;
    const attentions = this.parts.filter((part) => part !== "mlp").length || 1;
    const change = spare < 0 ? spare : Math.max(0, spare - LABEL);
    this.w.pattern = Math.min(LARGEST, this.w.pattern + change / attentions);
  }
}

/** How much room the blocks of a model need. @param {import("./boxes.js").Boxes} boxes */
export function leastRoom(boxes) {
  const each = Object.entries(boxes.data.like).flatMap(([stack, like]) =>
    [...new Set(like)].map((block) => new Room(boxes, stack, block).needed.least),
  );
  return Math.max(0, ...each);
}
