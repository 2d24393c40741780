// The words and numbers of the ledger: of the whole distribution, and of one token on its way through all stages.

import { chip } from "../kit/chips.js";
import { make } from "../kit/elements.js";
import { brief, count, percent, shortened } from "../kit/text.js";
import { DRAWS } from "./draws.js";
import { sumOf } from "./lanes.js";
import { entropy } from "./stages.js";

export const LONGEST_NAME = 14; // characters of a token in a line

/** @param {number} token @param {import("./sampling_ledger.js").Ledger} ledger */
export function nameOf(token, { header }) {
  return chip(shortened(header.labels[token], LONGEST_NAME));
}

/** Why a token is not drawn. @param {string} cut as `Stages.cut` names it */
export function cutInWords(cut) {
  return cut === "unused" ? "an unused token, never drawn" : `cut by ${cut}`;
}

/** How unsure the model is, and how it found the token that really stands there. @param {import("./sampling_ledger.js").Ledger} ledger */
export function factsOf(ledger) {
  const { stages, header, seeds } = ledger;
  const both = [stages.before, ...(seeds ? [stages.after] : [])];
  /** What sampling makes of a value, where it changes it. @param {string[]} values */
  const change = (values) => [...new Set(values)].join(" → ");
  const entropies = both.map(entropy);
  /** @param {(nats: number) => number} say */
  const said = (say) => change(entropies.map((nats) => brief(say(nats))));
  /** @param {string} help @param {string} name @param {(string | Node)[]} values */
  const fact = (help, name, ...values) => make("span", "cut fact", [make("b", "", name), " ", ...values], { title: help });
  /** @param {number} token */
  const chances = (token) => {
    const shares = change(both.map((all) => percent(all[token])));
    return `${shares}, rank ${count(stages.rank[token] + 1)}`;
  };
  const unsure = "How unsure the model is: −Σ p ln p in nats, divided by ln 2 in bits.";
  const among = "A choice among this many equally likely tokens would be as hard: e to the power of the entropy.";
  const rank = "Rank: its place among all tokens, the likeliest being 1.";
  const unused = stages.size - stages.used;
  const standForNothing = "They stand for no text: the embedding has more rows than the tokenizer has tokens. They come last.";
  return [
    fact(unsure, "Entropy", `${said((nats) => nats / Math.LN2)} bits (${said((nats) => nats)} nats)`),
    fact(among, "Perplexity", said(Math.exp)),
    header.true === null
      ? fact(rank, header.trueName, "unknown")
      : fact(rank, `▲ ${header.trueName}`, nameOf(header.true, ledger), ` ${chances(header.true)}`),
    ...(unused && seeds ? [fact(standForNothing, "Never drawn", `${count(unused)} unused`)] : []),
  ];
}

/** A token through all stages in numbers. @param {number | undefined} token @param {import("./sampling_ledger.js").Ledger} ledger */
export function readingOf(token, ledger) {
  if (token === undefined) return ["No token of the vocabulary contains this."];
  const { stages, header, observed, list } = ledger;
  const parts = [`token ${count(token)}`, `z ${brief(stages.logits[token])}`, `softmax ${percent(stages.before[token])}`];
  if (ledger.seeds) parts.push(...stepsOf(token, ledger));
  if (observed) parts.push(`◆ ${percent(observed[token] / DRAWS)}`);
  const end = list.touched === token && header.takes ? " · tap again to take it" : "";
  return [nameOf(token, ledger), ` ${parts.join(" → ")}${end}`];
}

/** The steps of sampling, for one token. @param {number} token @param {import("./sampling_ledger.js").Ledger} ledger */
function stepsOf(token, ledger) {
  const {
    stages,
    chosen: { temperature },
  } = ledger;
  const rank = stages.rank[token],
    cut = ledger.cut(token);
  const steps = [temperature ? `÷ ${temperature}: ${percent(stages.hot[token])}` : "temperature 0", `rank ${count(rank + 1)}`];
  if (cut) return [...(cut === "unused" ? [] : steps), cutInWords(cut)];
  const chance = `÷ ${sumOf(stages.sumKept)}: ${percent(stages.after[token])}`;
  const interval = `${stages.start(token).toFixed(3)} to ${stages.ends[token].toFixed(3)} of the draw`;
  return [...steps, `sum ${stages.reached[rank].toFixed(3)}`, chance, interval];
}
