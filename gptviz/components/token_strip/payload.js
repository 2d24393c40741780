// The payload of the strip, as `payload` of __init__.py packs it.

import { bytesOf, pack } from "../kit/pack.js";

/** Four significant digits. @param {number | null} p */
const brief = (p) => (p === null ? null : Number(p.toPrecision(4)));

/** @param {{ label: string, probability: number | null }[]} tokens @param {Record<string, unknown>} settings those that are not usual */
export function payload(tokens, settings) {
  const listed = tokens.map(({ label, probability }) => [label, brief(probability), [], "", 0, 0, "", ""]);
  const usual = {
    colour: "#CC3311",
    selected: null,
    picks: true,
    label: "Tokens",
    legend: "probability",
    height: null,
    kinds: {},
  };
  return pack({ ...usual, ...settings }, { tokens: bytesOf(listed) });
}
