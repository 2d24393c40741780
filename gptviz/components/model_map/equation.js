// Equations, and the legend of their colours.

import { PALEST, STRONGEST } from "../kit/chips.js";
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
/** @type {[role: string, name: string][]} */
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
  const line = make("span", "equation");
  for (const part of equation.split(/([A-Za-z_]+ᵀ?)/)) {
    const role = NAMED[part] ?? (/^[Wb]_/.test(part) ? "weight" : null);
    line.append(role ? make("span", `named ${role}`, part) : part);
  }
  return line;
}

/** What the colours mean. @param {import("./pen.js").Pen} pen */
export function legend(pen) {
  const list = make("div", "legend");
  /** @param {HTMLElement} sample @param {string} role @param {number} share @param {string} name */
  const add = (sample, role, share, name) => {
    sample.style.background = pen.mix(ROLES[/** @type {import("../kit/roles.js").Role} */ (role)], share);
    sample.style.borderColor = ROLES[/** @type {import("../kit/roles.js").Role} */ (role)];
    const entry = make("span", "entry");
    entry.append(sample, name);
    list.append(entry);
  };
  for (const [role, name] of LEGEND) add(make("span", "sample"), role, 0.22, name);
  const learned = pen.isPlain ? "learned" : "learned (how many)";
  add(make("span", "sample learned", pen.isPlain ? "" : "W"), "weight", 0.3, learned);
  const scale = make("span", "scale"),
    [pale, strong] = [PALEST, STRONGEST].map((share) => pen.mix(ROLES.output, share / 100));
  scale.style.background = `linear-gradient(to right, ${pale}, ${strong})`;
  const likely = make("span", "entry");
  likely.append("0\u00a0%", scale, "100 %: how likely the model finds a token, or a label");
  list.append(likely);
  return list;
}
