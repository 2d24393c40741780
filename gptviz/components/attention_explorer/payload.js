// The payload of the explorer, as `payload` of __init__.py packs it: for the self-attention of all blocks, in single precision.

import { pack, shaped } from "../kit/pack.js";

/** @typedef {Record<string, any>} Heads all heads over one text: see `Heads` in __init__.py, and `heads` in gptviz/takehome/live/heads.js */

/** @param {Heads} heads @param {Record<string, any>} header */
export function payload(heads, header) {
  const { patterns, n_head, size, length, triangle, facts, thumbnails, scaled, without_first } = heads,
    n_block = patterns.length,
    cells = triangle ? (length * (length + 1)) / 2 : length * length;
  const squares = (/** @type {Float32Array[]} */ blocks, /** @type {number} */ each) =>
    joined(
      blocks.flatMap((block) =>
        Array.from({ length: each }, (_, i) => square(block.subarray(i * length ** 2), length, triangle)),
      ),
    );
  const arrays = {
    pattern: shaped(squares(patterns, n_head), n_block, n_head, cells),
    q: shaped(heads.q, n_block, n_head, length, size),
    k: shaped(heads.k, n_block, n_head, length, size),
    thumbnails,
    ...Object.fromEntries(Object.entries(facts).map(([name, values]) => [`fact ${name}`, shaped(values, n_block, n_head)])),
    moved: shaped(heads.moved, n_block, n_head, length),
    rollout: shaped(squares(heads.rollout, 1), n_block, cells),
    ...(scaled && { scaled: shaped(scaled, n_block, length) }),
    ...(without_first && { "without first": shaped(without_first, ...thumbnails.shape) }),
  };
  const sizes = { n_block, n_head, first: 0, count: n_block, triangle, half: false };
  const arithmetic = { scale: heads.scale, cap: null, sharing: heads.sharing, windows: [], facts: Object.keys(facts) };
  return pack({ ...header, declared: declared(heads, header.start ?? {}), ...sizes, ...arithmetic }, arrays);
}

/** The numbers of a square that are sent: row after row, of a triangle up to the diagonal. @param {Float32Array} values @param {number} length @param {boolean} triangle */
function square(values, length, triangle) {
  if (!triangle) return values.subarray(0, length ** 2);
  return joined(Array.from({ length }, (_, row) => values.subarray(row * length, row * length + row + 1)));
}

/** @param {Float32Array[]} parts */
function joined(parts) {
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The choices that the address may hold, as `address` declares them. @param {Heads} heads @param {Record<string, any>} start */
function declared({ patterns, n_head, length, without_first, facts }, start) {
  const n_block = patterns.length,
    nearest = { block: Math.min(start.block ?? 0, n_block - 1), head: Math.min(start.head ?? 0, n_head - 1) };
  /** @type {Record<string, any>} */
  const usual = { heads: "one", show: "pattern", direction: "out", log: false, ...start, ...nearest };
  const rules = {
    block: { whole: [0, n_block - 1] },
    head: { whole: [0, n_head - 1] },
    heads: { names: ["one", "mean", "all"], pairs: [n_block, n_head, n_block * n_head] },
    show: { names: ["pattern", ...(without_first ? ["rest"] : []), "value", "rollout"] },
    direction: { names: ["out", "in"] },
    query: { whole: [0, length - 1] },
    key: { whole: [0, length - 1] },
    sort: { names: Object.keys(facts) },
    least: { whole: [0, 9_999] },
    log: { switch: true },
  };
  return Object.fromEntries(Object.entries(rules).map(([key, rule]) => [key, { ...rule, usual: usual[key] ?? null }]));
}
