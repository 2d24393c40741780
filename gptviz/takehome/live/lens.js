// What the model would guess if it stopped after a layer: gptviz/interp/reading/lens.py says how it is defined.

import { shaped } from "../../components/kit/pack.js";

/** @typedef {import("./decoder.js").Decoder} Decoder @typedef {Record<string, Float32Array>} Seen the values of a pass by name */

/** The rows, each with the stream there. @param {Decoder} decoder @param {number[]} ids @param {Seen} seen */
function layersOf(decoder, ids, seen) {
  const parts = Object.entries({ attention: "attention", ...(decoder.config.d_mlp !== 0 && { mlp: "MLP" }) });
  const embedding = { name: "embed", title: "the embedding", short: "embedding" };
  const rows = decoder.blocks.flatMap((of, block) =>
    parts.map(([part, title], i) => ({
      layer: { name: `${of}.${part}`, title: `the ${title} of block ${block}`, short: `${title} ${block}` },
      stream: seen[`${of}.${i + 1 < parts.length ? "resid_mid" : "resid_post"}`],
    })),
  );
  return [{ layer: embedding, stream: seen["blocks.0.resid_pre"] ?? decoder.embedded(ids, 0) }, ...rows];
}

/** @param {Decoder} decoder @param {number[]} ids those that a whole pass read @param {Seen} seen @param {number} most */
export function lens(decoder, ids, seen, most) {
  const rows = layersOf(decoder, ids, seen),
    size = decoder.vocabSize,
    count = Math.min(most, size),
    cells = rows.length * ids.length;
  const top = shaped(new Int32Array(cells * count), rows.length, ids.length, count),
    probability = new Float32Array(cells * count);
  const [entropy, final, really] = [new Float32Array(cells), new Float32Array(cells), new Float32Array(cells).fill(NaN)],
    rank = new Int32Array(cells);
  const last = decoder.head(rows[rows.length - 1].stream),
    guesses = ids.map((_, t) =>
      last.subarray(t * size, (t + 1) * size).reduce((best, z, i, all) => (z > all[best] ? i : best), 0),
    );
  for (const [row, { stream }] of rows.entries()) {
    const every = decoder.head(stream);
    for (let t = 0; t < ids.length; t++) {
      const cell = row * ids.length + t,
        logits = every.subarray(t * size, (t + 1) * size);
      const best = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a]),
        shares = logits.map((z) => Math.exp(z - logits[best[0]])),
        whole = shares.reduce((sum, one) => sum + one, 0);
      for (let i = 0; i < count; i++) {
        top[cell * count + i] = best[i];
        probability[cell * count + i] = shares[best[i]] / whole;
      }
      final[cell] = shares[guesses[t]] / whole;
      entropy[cell] = Math.log(whole) - shares.reduce((sum, one, i) => sum + one * (logits[i] - logits[best[0]]), 0) / whole;
      if (t + 1 === ids.length) continue;
      really[cell] = shares[ids[t + 1]] / whole;
      rank[cell] = 1 + logits.reduce((above, z) => above + Number(z > logits[ids[t + 1]]), 0);
    }
  }
  return { layers: rows.map(({ layer }) => layer), ids, top, probability, entropy, rank, really, final };
}
