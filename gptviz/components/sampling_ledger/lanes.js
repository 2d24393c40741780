// The lanes of the ledger: what each is called and means, what it shows of a token, and what stands above it.

import { logarithmic } from "../kit/colour.js";
import { make } from "../kit/elements.js";
import { brief, count, percent } from "../kit/text.js";
import { Slider } from "./choices.js";

// Of each lane: title, what it means, and the choice whose slider steers it.
/** @typedef {[from: number, to: number, number: string]} Lane */

/** @type {Record<string, [title: string, meaning: string, choice?: string]>} */
export const LANES = {
  token: ["token", "Every token of the vocabulary is one line."],
  logit: ["logit", "What the model computes: a score z for every token, the larger the likelier. Bars: smallest to largest."],
  before: ["model says", "Softmax: e to the power of z, divided by the sum over all tokens. What the model itself expects."],
  hot: ["÷ temperature", "z ÷ temperature, then softmax. Below 1 the likely become likelier; 0 leaves one.", "temperature"],
  "top-k": ["top-k", "Only the k likeliest tokens stay; their probabilities are scaled up to sum to 1.", "top_k"],
  "top-p": [
    "top-p",
    "Probabilities are added up from the likeliest token down; when the sum has reached p, all later tokens are cut.",
    "top_p",
  ],
  after: [
    "drawn from",
    "The probabilities that were kept, divided by their sum, so that they add up to 100 % again: the chances of the draw.",
  ],
};

/** How long the bar of a probability is, 0 … 1. @param {number} probability @param {import("./sampling_ledger.js").Ledger} ledger */
export function lengthOf(probability, { chosen }) {
  return chosen.log ? Math.max(0, logarithmic(probability)) : probability;
}

/** A token in each lane: where its bar begins and ends, 0 … 1, and its number. @param {number} token @param {import("./sampling_ledger.js").Ledger} ledger */
export function lanesOf(token, ledger) {
  const { stages } = ledger;
  const rank = stages.rank[token],
    cut = ledger.cut(token);
  /** @param {number} probability @returns {Lane} */
  const upTo = (probability) => [0, lengthOf(probability, ledger), percent(probability)];
  const z = stages.logits[token],
    range = stages.highest - ledger.lowest; // from the least finite logit to the largest
  /** @type {Record<string, Lane>} */
  const lanes = {
    logit: [0, Number.isFinite(z) && range > 0 ? (z - ledger.lowest) / range : 0, brief(z)],
    before: upTo(stages.before[token]),
  };
  if (!ledger.seeds) return lanes;
  lanes.hot = upTo(stages.hot[token]);
  const ofTopK = lengthOf(Math.min(1, stages.hot[token] / stages.sumOfTopK), ledger);
  /** @type {Lane} */
  const gone = [0, 0, ""];
  if (cut === "unused") {
    lanes["top-k"] = [0, 0, "unused"];
    lanes["top-p"] = lanes.after = gone;
    return lanes;
  }
  lanes["top-k"] = [0, ofTopK, cut === "top-k" ? "cut" : count(rank + 1)];
  const sum = cut === "top-p" ? "cut" : stages.reached[rank].toFixed(3);
  lanes["top-p"] = cut === "top-k" ? gone : [rank ? stages.reached[rank - 1] : 0, stages.reached[rank], sum];
  lanes.after = cut ? gone : upTo(stages.after[token]);
  return lanes;
}

/** A sum of probabilities; a tiny one is not written as 0. @param {number} probability */
export function sumOf(probability) {
  return probability < 0.001 ? brief(probability) : probability.toFixed(3);
}

/** The head of the lanes: of each its title, the slider that steers it and the sum it leaves. */
export class Heads {
  constructor() {
    /** @type {Slider[]} */
    this.sliders = [];
    this.titles = make("div", "lanes small titles");
    this.sums = make("div", "lanes faint tiny sums");
    /** @type {Record<string, HTMLElement>} */
    this.cells = {};
    for (const [lane, [title, help, key]] of Object.entries(LANES)) {
      const name = make("span", "", title);
      const cell = make("div", `title ${lane}`, [name], { title: help });
      if (key) {
        const slider = new Slider(key, help);
        name.append(" ", slider.value);
        cell.append(slider.range);
        this.sliders.push(slider);
      }
      this.titles.append(cell);
      this.cells[lane] = make("span", `cut sum ${lane}`, "", { "data-title": title.replace("temperature", "T") });
    }
    this.sums.append(...Object.values(this.cells));
  }

  /** Say what a click on a line does, where it does something. @param {boolean} takes */
  prepare(takes) {
    /** @type {HTMLElement} */ (this.titles.firstElementChild).title =
      LANES.token[1] + (takes ? " A click adds it to the text." : "");
  }

  /** Above each lane stands its formula, or the sum that was kept. @param {import("./sampling_ledger.js").Ledger} ledger */
  render({ chosen, stages, seeds }) {
    /** @param {number} sum */
    const divided = (sum) => `kept ${sumOf(sum)}, so ÷ ${sumOf(sum)}`;
    const reached = `${stages.reached[stages.kept - 1].toFixed(3)} reached after ${count(stages.kept)}`;
    const all = !seeds || stages.left === stages.size;
    const texts = {
      token: all ? `all ${count(stages.size)}` : `${count(stages.left)} of ${count(stages.size)} left`,
      logit: "z",
      before: "softmax(z)",
      hot: chosen.temperature ? `softmax(z ÷ ${chosen.temperature})` : "only the likeliest",
      "top-k": chosen.top_k ? divided(stages.sumOfTopK) : "none cut",
      "top-p": chosen.top_p === 1 ? "none cut" : reached,
      after: divided(stages.sumKept),
    };
    for (const [lane, text] of Object.entries(texts)) this.cells[lane].textContent = text;
  }
}
