// Every head over one text, from one pass: gptviz/interp/reading/attention.py and overview.py say how all of it is defined.

import { pooled } from "../../components/kit/heatmap.js";
import { shaped } from "../../components/kit/pack.js";
import { dot } from "./parts.js";

/** @typedef {import("./decoder.js").Decoder} Decoder @typedef {import("./lens.js").Seen} Seen */

const CELLS_ACROSS = 264;
const SMALLEST_SIDE = 16;
const NOTHING = 1e-6;

/** @param {Decoder} decoder with blocks @param {number[]} ids those that a whole pass read @param {Seen} seen */
export function heads(decoder, ids, seen) {
  const { blocks, headSize: size, config, scale, keyHeads } = decoder,
    { n_head } = config,
    length = ids.length;
  const patterns = blocks.map((block) => seen[`${block}.attention.pattern`]);
  const of = (/** @type {number} */ first, /** @type {number} */ shared) =>
    each(blocks.length, n_head, length, size, (i, head, t, at) => {
      const row = (n_head + 2 * keyHeads) * size;
      return seen[`${blocks[i]}.attention.qkv`][t * row + (first + Math.floor(head / shared)) * size + at];
    });
  const sharing = n_head / keyHeads,
    v = of(n_head + keyHeads, sharing),
    norms = config.residual === "post-norm";
  const moved = blocks.map((block, i) => movedBy(decoder, block, v.subarray(i * n_head * length * size), length, norms));
  return {
    ...{ n_head, size, length, patterns, scale, sharing, triangle: decoder.looksBack && length > 1 },
    ...{ q: of(0, 1), k: of(n_head, sharing), moved: Float32Array.from(moved.flatMap((one) => [...one])) },
    rollout: rollout(patterns, n_head, length),
    scaled: norms ? Float32Array.from(blocks.flatMap((block) => scales(decoder, block, seen))) : null,
    ...overview(patterns, n_head, ids, decoder.looksBack),
  };
}

/** Numbers [a, b, c, d], each computed from its place. @param {number} a @param {number} b @param {number} c @param {number} d @param {(i: number, j: number, k: number, l: number) => number} number */
function each(a, b, c, d, number) {
  const all = new Float32Array(a * b * c * d);
  for (let i = 0, at = 0; i < a; i++)
    for (let j = 0; j < b; j++) for (let k = 0; k < c; k++) for (let l = 0; l < d; l++) all[at++] = number(i, j, k, l);
  return all;
}

/** ‖v W_O‖ [n_head, key], of what is linear in the norm behind it. @param {Decoder} decoder @param {string} block @param {Float32Array} v [n_head, key, size] @param {number} length @param {boolean} norms */
function movedBy(decoder, block, v, length, norms) {
  const { headSize: size, config } = decoder,
    { weight } = decoder.part(`${block}.attention.output`),
    gain = decoder.part(`${block}.attention_residual.norm`).weight,
    [wide, across] = weight.shape;
  return each(1, config.n_head, length, 1, (_, head, key) => {
    const written = new Float32Array(wide);
    for (let row = 0; row < wide; row++)
      written[row] = dot(weight, row * across + head * size, v, (head * length + key) * size, size);
    const mean = norms ? written.reduce((sum, one) => sum + one, 0) / wide : 0;
    return Math.hypot(...written.map((one, i) => (one - mean) * (norms ? (gain?.[i] ?? 1) : 1)));
  });
}

/** What the norm behind attention multiplies each vector by. @param {Decoder} decoder @param {string} block @param {Seen} seen */
function scales({ config: { d_model, norm_eps } }, block, seen) {
  const [x, out] = [seen[`${block}.resid_pre`], seen[`${block}.attention.out`]];
  return Array.from({ length: x.length / d_model }, (_, t) => {
    const sum = x.subarray(t * d_model, (t + 1) * d_model).map((one, i) => one + out[t * d_model + i]);
    const mean = sum.reduce((a, b) => a + b, 0) / d_model;
    return 1 / Math.sqrt(sum.reduce((a, b) => a + (b - mean) ** 2, 0) / d_model + (norm_eps ?? 1e-5));
  });
}

/** For each block [query, key]: the mean of its heads and the identity, half each, times those before. @param {Float32Array[]} patterns @param {number} n_head @param {number} length */
function rollout(patterns, n_head, length) {
  /** @type {Float32Array[]} */
  const all = [];
  for (const pattern of patterns) {
    const before = all.at(-1);
    const step = new Float32Array(length ** 2).map((_, at) => {
      let sum = 0;
      for (let head = 0; head < n_head; head++) sum += pattern[head * length ** 2 + at];
      return sum / n_head / 2 + Number(at % (length + 1) === 0) / 2;
    });
    const through =
      before &&
      each(1, 1, length, length, (_, __, query, key) => {
        let sum = 0;
        for (let i = 0; i < length; i++) sum += step[query * length + i] * before[i * length + key];
        return sum;
      });
    all.push(through ?? step);
  }
  return all;
}

/** Small pictures of all heads, and where each looks on average. @param {Float32Array[]} patterns @param {number} n_head @param {number[]} ids @param {boolean} looksBack */
function overview(patterns, n_head, ids, looksBack) {
  const length = ids.length,
    n_block = patterns.length,
    pool = Math.ceil(length / Math.max(SMALLEST_SIDE, Math.floor(CELLS_ACROSS / Math.max(n_block, n_head)))),
    side = Math.ceil(length / pool);
  const isSeen = (/** @type {number} */ query, /** @type {number} */ key) => !looksBack || key <= query;
  const at = (/** @type {number} */ i, /** @type {number} */ head, /** @type {number} */ query, /** @type {number} */ key) =>
    patterns[i][(head * length + query) * length + key];
  /** The mean over the queries from `first` on that `number` gives no undefined for. @param {(i: number, head: number, query: number) => number | undefined} number */
  const mean = (number, first = 1) =>
    each(n_block, n_head, 1, 1, (i, head) => {
      const found = ids.flatMap((_, query) => (query < first ? [] : (number(i, head, query) ?? [])));
      return found.reduce((sum, one) => sum + one, 0) / found.length;
    });
  const row = (/** @type {number} */ i, /** @type {number} */ head, /** @type {number} */ query) =>
    patterns[i].subarray((head * length + query) * length, (head * length + query + 1) * length);
  const small = (/** @type {(i: number, head: number, query: number, key: number) => number} */ value) => {
    const cell = (
      /** @type {number} */ i,
      /** @type {number} */ head,
      /** @type {number} */ down,
      /** @type {number} */ across,
    ) => pooled((query, key) => value(i, head, query, key), length, length, pool)(down, across);
    return shaped(each(n_block, n_head, side, side, cell), n_block, n_head, side, side);
  };
  const thumbnails = small((i, head, query, key) => (isSeen(query, key) ? at(i, head, query, key) : NaN));
  if (length < 2) return { pool, thumbnails, without_first: null, facts: {} };
  const left = patterns.map((_, i) =>
    each(1, n_head, length, 1, (_1, head, query) =>
      row(i, head, query)
        .subarray(1)
        .reduce((a, b) => a + b, 0),
    ),
  );
  const rest = small((i, head, query, key) => {
    const others = left[i][head * length + query];
    return key > 0 && isSeen(query, key) && others > NOTHING ? at(i, head, query, key) / others : NaN;
  });
  const followers = ids.map((id, query) => ids.flatMap((_, key) => (key > 0 && key < query && ids[key - 1] === id ? [key] : [])));
  const entropy = mean((i, head, query) => -row(i, head, query).reduce((sum, p) => sum + (p > 0 ? p * Math.log(p) : 0), 0));
  const facts = {
    previous: mean((i, head, query) => at(i, head, query, query - 1)),
    first: mean((i, head, query) => at(i, head, query, 0)),
    itself: mean((i, head, query) => at(i, head, query, query)),
    spread: entropy.map(Math.exp),
    ...(followers.some((keys) => keys.length) && {
      followed: mean((i, head, query) => {
        const keys = followers[query];
        return keys.length ? keys.reduce((sum, key) => sum + at(i, head, query, key), 0) : undefined;
      }, 0),
    }),
  };
  return { pool, thumbnails, without_first: length > 2 ? rest : null, facts };
}
