// A run: a small model that learns names, words, lines or a text, in slices of time, with samples and snapshots on its way.

import { safetensors } from "./safetensors.js";
import { tokenizer } from "./tokenizers.js";
import { copied, freshWeights, Random, Training } from "./training.js";
import { softmax } from "./parts.js";

/** @typedef {{ text: string, isList: boolean, sizes: Record<string, any>, steps: number, seed: number }} Asked `sizes`: the fields of a config without its vocabulary, from trained.json */

const RECIPE = {
  ...{ batch_size: 16, optimiser: "adamw", learning_rate: 0.01, schedule: "cosine", warmup: 0.05, final_rate: 0.1 },
  ...{ weight_decay: 0.1, beta1: 0.9, beta2: 0.99, clip: 1, evaluations: 10, snapshots: 3 },
};
const MOST_CHARACTERS = 96; // different ones: rarer ones are left out, so that no model has more than 30,000 parameters
export const LONGEST_TEXT = 1_000_000; // letters
const HELD_OUT = 0.1; // the share of the text that the model is tested with
const MOST_TESTED = 32; // windows of it
const SAMPLES = 6; // lines, of a list
const SAMPLED = 80; // characters, of a text

/** Whether a snapshot is kept after so many steps: the first, then three for every doubling, as in gptviz/train/recipe.py. @param {number} step */
export function keepsSnapshot(step) {
  if (step < 1) return step === 0;
  const nearest = Math.round(RECIPE.snapshots * Math.log2(step));
  return [-1, 0, 1].some((more) => Math.round(2 ** ((nearest + more) / RECIPE.snapshots)) === step);
}

/** The text as the model reads it: of a list the lines in another order, without empty ones, with a line end around each. @param {Asked} asked @param {Random} random */
function cleaned({ text, isList }, random) {
  const whole = text.slice(0, LONGEST_TEXT).replace(/\r\n?/g, "\n");
  if (!isList) return whole;
  const lines = whole.split("\n").flatMap((line) => line.trim() || []);
  for (let i = lines.length - 1; i > 0; i--) {
    const other = random.below(i + 1);
    [lines[i], lines[other]] = [lines[other], lines[i]];
  }
  return `\n${lines.join("\n")}\n`;
}

/** The characters of a text, the most frequent if there are too many, sorted. @param {string} text */
function vocabulary(text) {
  const counts = new Map();
  for (const one of text) counts.set(one, (counts.get(one) ?? 0) + 1);
  const kept = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, MOST_CHARACTERS);
  const point = (/** @type {string} */ one) => Number(one.codePointAt(0));
  return { kept: kept.sort((a, b) => point(a) - point(b)), dropped: counts.size - kept.length };
}

export class Run {
  /** An Error says why a text is too short. @param {Asked} asked */
  constructor(asked) {
    const { isList, sizes, steps, seed } = asked;
    this.random = new Random(seed);
    const text = cleaned(asked, this.random),
      { kept, dropped } = vocabulary(text);
    this.isList = isList;
    this.dropped = dropped;
    this.tokenizer = { kind: "characters", unknown: null, characters: kept };
    this.tokens = tokenizer(this.tokenizer);
    this.config = /** @type {Record<string, any>} */ ({ vocab_size: kept.length, ...sizes });
    const known = new Set(kept),
      ids = this.tokens.encode([...text].filter((one) => known.has(one)).join("")),
      end = Math.floor(ids.length * (1 - HELD_OUT)),
      least = Math.ceil((this.config.context_length + 2) / (1 - HELD_OUT));
    if (ids.length < least + 2)
      throw new Error(
        `the text has ${ids.length} characters, and at least ${least + 2} are needed to learn from: paste a longer one`,
      );
    this.ids = ids.slice(0, end);
    this.heldOut = ids.slice(end);
    this.ends = isList ? [kept.indexOf("\n")] : [];
    this.recipe = { steps, ...RECIPE, seed };
    this.training = new Training(this.config, freshWeights(this.config, this.random), this.recipe);
    this.parameters = Object.values(this.training.decoder.tensors).reduce((sum, one) => sum + one.length, 0);
    /** The loss of the batch before each step. @type {number[]} */
    this.losses = [];
    /** @type {{ step: number, validation: number, seconds: number, training?: number }[]} */
    this.evaluations = [];
    /** @type {{ step: number, texts: string[] }[]} */
    this.samples = [];
    /** The weights by step. @type {Map<number, Record<string, import("./parts.js").Tensor>>} */
    this.snapshots = new Map();
    this.seconds = 0;
    this.isOver = false;
    this.keep();
  }

  get step() {
    return this.training.step;
  }

  /** A window of the text: a context and the token after it. @param {number[]} ids @param {number} at */
  window(ids, at) {
    return ids.slice(at, at + this.config.context_length + 1);
  }

  /** Take steps for about so many milliseconds. @param {number} milliseconds */
  advance(milliseconds) {
    const begun = performance.now();
    const { steps, batch_size } = this.recipe;
    while (!this.isOver && performance.now() < begun + milliseconds) {
      const places = this.ids.length - this.config.context_length,
        rows = Array.from({ length: batch_size }, () => this.window(this.ids, this.random.below(places)));
      this.losses.push(this.training.advance(rows));
      this.isOver = this.step >= steps;
      if (keepsSnapshot(this.step) || this.isOver) this.keep();
    }
    this.seconds += (performance.now() - begun) / 1000;
  }

  /** End it here: what was learned is kept. */
  stop() {
    if (!this.isOver && !this.snapshots.has(this.step)) this.keep();
    this.isOver = true;
  }

  /** Keep a snapshot, test the model on what is held out, and let it write. */
  keep() {
    this.snapshots.set(this.step, copied(this.training.decoder.tensors));
    const length = this.config.context_length,
      places = Math.max(1, Math.ceil((this.heldOut.length - 1) / length)),
      every = Math.ceil(places / MOST_TESTED);
    const rows = [];
    for (let i = 0; i < places; i += every) rows.push(this.window(this.heldOut, i * length));
    const validation = this.training.evaluate(rows),
      recent = this.losses.slice(-10),
      training = recent.length ? { training: recent.reduce((a, b) => a + b) / recent.length } : {};
    this.evaluations.push({ step: this.step, validation, seconds: this.seconds, ...training });
    this.samples.push({ step: this.step, texts: Array.from({ length: this.isList ? SAMPLES : 1 }, () => this.written()) });
  }

  /** A line that the model writes, of a text some characters. */
  written() {
    const { decoder } = this.training,
      [end] = this.ends,
      random = new Random(this.random.below(2 ** 31)),
      text = [end ?? this.ids[0]];
    const most = this.isList ? this.config.context_length : SAMPLED;
    while (text.length <= most) {
      const shares = softmax(decoder.read(text)),
        drawn = random.uniform();
      let [token, sum] = [0, shares[0]];
      while (sum < drawn && token < shares.length - 1) sum += shares[++token];
      if (token === end) break;
      text.push(token);
    }
    return text
      .slice(Number(this.isList))
      .map((id) => this.tokens.texts[id])
      .join("");
  }

  /** A first prompt, of what it was not trained on. */
  get prompt() {
    const text = this.heldOut.map((id) => this.tokens.texts[id]).join("");
    return this.isList
      ? `\n${text.split("\n").find((line, i) => i && line) ?? ""}`
      : text.slice(0, this.config.context_length - 1);
  }

  /** How far it is, for the page. */
  get report() {
    const { step, losses, evaluations, samples, seconds, isOver, parameters, dropped } = this;
    return {
      step,
      steps: this.recipe.steps,
      losses,
      evaluations,
      samples,
      seconds,
      isOver,
      parameters,
      dropped,
      size: this.config,
    };
  }

  /** The files of a checkpoint. @param {string} version of gptviz */
  files(version) {
    const last = this.evaluations[this.evaluations.length - 1];
    const card = {
      command: "trained on the page “Try it” of a gallery, in a browser",
      ...{ recipe: this.recipe, steps: this.step, seconds: this.seconds, end_tokens: this.ends },
      ...{ validation_loss: last.validation, losses: this.evaluations, store: "float32", version },
      notes: ["It was trained in a browser. The text that it learned from is not kept with it."],
    };
    const weights = [...this.snapshots].map(([step, tensors]) => {
      return [`snapshots/${String(step).padStart(8, "0")}.safetensors`, safetensors(tensors)];
    });
    /** @type {Record<string, Uint8Array | string>} */
    const files = {
      "config.json": JSON.stringify({ format: 1, config: this.config }, null, 1),
      "tokenizer.json": JSON.stringify(this.tokenizer),
      "card.json": JSON.stringify(card, null, 1),
      "model.safetensors": safetensors(this.training.decoder.tensors),
    };
    return { ...files, ...Object.fromEntries(weights) };
  }

  /** The plain twin: its Python, written by gptviz for this size with names in the place of what differs, and its numbers. @param {string} name @param {string} source */
  twin(name, source) {
    const known = { NAME_OF_MODEL: name, NUMBER_OF_PARAMETERS: this.parameters.toLocaleString("en-US") };
    const values = {
      ...known,
      ID_OF_UNKNOWN: String(Math.max(0, this.tokens.texts.indexOf(" "))),
      ID_OF_END: String(this.ends[0]),
    };
    const rows = (/** @type {import("./parts.js").Tensor} */ one) => {
      const numbers = Array.from(one, (number) => Number(number.toPrecision(9))),
        [first, width] = one.shape;
      return width ? Array.from({ length: first }, (_, row) => numbers.slice(row * width, (row + 1) * width)) : numbers;
    };
    const weights = Object.entries(this.training.decoder.tensors).map(([part, one]) => [part, rows(one)]);
    return {
      [`${name}/${name}.py`]: Object.entries(values).reduce((text, [key, value]) => text.replaceAll(key, value), source),
      [`${name}/${name}.json`]: JSON.stringify({ tokens: this.tokens.texts, weights: Object.fromEntries(weights) }),
    };
  }
}
