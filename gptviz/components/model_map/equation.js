// Equations, and the legend of their colours.

import { make } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";

/** The role of a name in an equation, by which it is coloured. */
/** @type {Record<string, string>} */
const NAMED = {
  ...{ q: "query", k: "key", kᵀ: "key", v: "value", z: "value" },
  ...{ scores: "pattern", pattern: "pattern", mask: "pattern", softmax: "pattern" },
  ...{ gate: "mlp", up: "mlp", neurons: "mlp", router: "mlp", weights: "mlp" },
  ...{ logits: "output", shares: "output", pooled: "output", number: "output" },
  ...{ embed: "stream", embed_norm: "stream", positions: "stream", memory: "stream", final_norm: "stream", out: "stream" },
  ...{ resid_pre: "stream", resid_self: "stream", resid_mid: "stream", resid_post: "stream" },
  ...{ gain: "weight", bias: "weight", slope: "weight", R: "weight" },
};
/** @typedef {import("../kit/roles.js").Role} Role */
/** @type {[role: Role, name: string][]} */
const LEGEND = [
  ["query", "query"],
  ["key", "key"],
  ["value", "value"],
  ["pattern", "attention"],
  ["mlp", "MLP"],
  ["stream", "stream"],
  ["output", "output"],
];

/** An equation, its names in their colours. @param {string} equation */
export function coloured(equation) {
  const parts = equation.split(/([A-Za-z_]+ᵀ?)/).map((part) => {
    const role = NAMED[part] ?? (/^[Wb]_/.test(part) ? "weight" : null);
    if (!role) return part;
    const colour = role === "stream" ? "color-mix(in srgb, var(--stream) 75%, var(--st-text-color))" : `var(--${role})`;
    return make("span", "named", part, { style: `--role: ${colour}` });
  });
  return make("span", "equation", parts);
}

/** What the colours mean. @param {import("./pen.js").Pen} pen */
export function legend(pen) {
  /** @param {HTMLElement} sample @param {Role} role @param {number} share @param {string} name */
  const entry = (sample, role, share, name) => {
    Object.assign(sample.style, { background: pen.mix(ROLES[role], share), borderColor: ROLES[role] });
    return make("span", "aligned entry", [sample, name]);
  };
  const entries = LEGEND.map(([role, name]) => entry(make("span", "sample"), role, 0.22, name));
  const learned = pen.isPlain ? "learned" : "learned (how many)";
  entries.push(entry(make("span", "sample learned", pen.isPlain ? "" : "W"), "weight", 0.3, learned));
  const words = ["0\u00a0%", make("span", "scale tints"), "100 %: how likely the model finds a token, or a label"];
  return make("div", "legend", [...entries, make("span", "aligned entry", words)]);
}
