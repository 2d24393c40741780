// The payload of the tree, as `packed` of __init__.py makes it, without parts: all nodes and steps are in it.

import { pack, shaped } from "../kit/pack.js";

const BY_HAND = "chosen by hand";

/**
 * A token of the tree; `drawn` says how, "" for one that was chosen by hand.
 *
 * @typedef {{ id: number, parent: number, token: number, position: number, logprob: number, draw_logprob: number, total: number,
 *   drawn: string, candidates: Candidate[] }} Node
 * @typedef {{ token: number, probability: number, drawn_with: number, cut?: string }} Candidate
 * @typedef {{ after: number, start: number, keys: number, weights: number[] }} Step its attention [n_layer, n_head, keys]
 */

/**
 * @param {{ nodes: Node[], most: number, ghosts: Candidate[], steps: Step[] | null, heads: [number, number] }} tree `most` candidates of a
 *   node, `steps` null while it grows
 * @param {string[]} names of all tokens
 * @param {Record<string, unknown>} look the other fields of the header
 */
export function payload({ nodes, most, ghosts, steps, heads }, names, look) {
  const how = [...new Set([BY_HAND, ...nodes.map(({ drawn }) => drawn || BY_HAND)])];
  const used = [...nodes, ...nodes.flatMap((node) => node.candidates), ...ghosts].map(({ token }) => token);
  const ints = (/** @type {number[]} */ numbers) => shaped(Int32Array.from(numbers));
  const column = (/** @type {"logprob" | "draw_logprob" | "total"} */ key) =>
    shaped(Float64Array.from(nodes, (node) => node[key]));
  const candidates = nodes.flatMap((node) => Array.from({ length: most }, (_, i) => node.candidates[i]));
  let offset = 0;
  const header = {
    ...look,
    heads,
    declared: { attended: { names: [], pairs: [...heads, 1], usual: null } },
    cut: ghosts.map(({ cut }) => cut),
    how,
    draws: 1,
    labels: Object.fromEntries(used.map((token) => [token, names[token]])),
  };
  return pack(header, {
    node: ints(nodes.map(({ id }) => id)),
    parent: ints(nodes.map(({ parent }) => parent)),
    token: ints(nodes.map(({ token }) => token)),
    position: ints(nodes.map(({ position }) => position)),
    logprob: column("logprob"),
    draw_logprob: column("draw_logprob"),
    total: column("total"),
    how: ints(nodes.map(({ drawn }) => how.indexOf(drawn || BY_HAND))),
    candidates: shaped(
      Int32Array.from(candidates, (one) => one?.token ?? -1),
      nodes.length,
      most,
    ),
    candidate_p: shaped(
      Float32Array.from(candidates.flatMap((one) => [one?.probability ?? 0, one?.drawn_with ?? 0])),
      nodes.length,
      most,
      2,
    ),
    ghost: ints(ghosts.map(({ token }) => token)),
    ghost_p: shaped(Float64Array.from(ghosts.flatMap((one) => [one.probability, one.drawn_with])), ghosts.length, 2),
    ...(steps && {
      place: shaped(
        Int32Array.from(
          steps.flatMap(({ after, start, keys, weights }) => [after, start, keys, (offset += weights.length) - weights.length]),
        ),
        ...[steps.length, 4],
      ),
      attention: shaped(Float32Array.from(steps.flatMap(({ weights }) => weights))),
    }),
  });
}
