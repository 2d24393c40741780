// The payload of the grid, as `payload` of __init__.py packs it.

import { pack, shaped } from "../kit/pack.js";
import { COLOURS } from "./cells.js";

/**
 * The guesses after every layer: see `Lens` in gptviz/interp/reading/lens.py.
 *
 * @typedef {object} Lens
 * @property {{ name: string, title: string, short: string }[]} layers
 * @property {number[]} ids
 * @property {Int32Array & { shape: number[] }} top [layer, T, k]
 * @property {Float32Array} probability [layer, T, k]
 * @property {Float32Array} entropy [layer, T]
 * @property {Int32Array} rank [layer, T]
 * @property {Float32Array} really [layer, T]
 * @property {Float32Array} final [layer, T]
 */

/** @param {Lens} lens @param {string[]} labels of all tokens @param {Record<string, unknown>} header `of`, `model`, `code` and `spaced` */
export function payload({ layers, ids, top, probability, entropy, rank, really, final }, labels, header) {
  const tokens = [...new Set(top)].sort((a, b) => a - b),
    places = new Map(tokens.map((token, place) => [token, place]));
  const names = layers.map(({ name }) => name),
    [rows, length] = top.shape;
  const declared = {
    layer: { names, usual: names.at(-1) },
    position: { whole: [0, length - 1], usual: length - 1 },
    colour: { names: Object.keys(COLOURS), usual: Object.keys(COLOURS)[0] },
    words: { switch: true, usual: false },
  };
  const texts = {
    tokens: ids.map((id) => labels[id]),
    true: ids.map((_, i) => labels[ids[i + 1]] ?? null),
    names: tokens.map((id) => labels[id]),
  };
  const about = { layers, first: 0, ...texts, vocabSize: labels.length, declared, asked: null, number: 0 };
  return pack(
    { ...header, ...about },
    {
      top: shaped(
        top.map((token) => places.get(token) ?? 0),
        ...top.shape,
      ),
      probability: shaped(probability, ...top.shape),
      entropy: shaped(entropy, rows, length),
      rank: shaped(rank, rows, length),
      really: shaped(really, rows, length),
      final: shaped(final, rows, length),
    },
  );
}
