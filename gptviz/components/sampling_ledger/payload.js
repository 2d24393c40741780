// The payload of the ledger, as `payload` of __init__.py packs it.

import { bytesOf, pack, shaped } from "../kit/pack.js";
import { ORDERS, SEEDS } from "./choices.js";

const TOKENS = Object.keys(ORDERS);

/**
 * @param {object} of
 * @param {Float32Array} of.logits [vocab_size]
 * @param {string[]} of.labels
 * @param {Float64Array} of.numbers [seeds]
 * @param {Record<string, unknown>} header `vocabulary`, `generation`, `title`, `code`, `true`, `takes`, `note` and `prompt`
 */
export function payload({ logits, labels, numbers }, header) {
  const declared = {
    temperature: { real: [0, 2], usual: 1 },
    top_k: { whole: [0, Math.max(labels.length, 100)], usual: 0 },
    top_p: { real: [0.05, 1], usual: 1 },
    seed: { whole: [0, SEEDS - 1], usual: 0 },
    tokens: { names: TOKENS, usual: TOKENS[0] },
    log: { switch: true, usual: false },
  };
  const usual = { trueName: "Really next:", used: labels.length, declared, asked: {}, number: 0 };
  return pack({ ...header, ...usual }, { logits: shaped(logits), numbers: shaped(numbers), labels: bytesOf(labels) });
}
