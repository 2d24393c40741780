// A prompt as a model reads it, and what the views are given of that.

import { payload as ofHeads } from "../../components/attention_explorer/payload.js";
import { payload as ofLens } from "../../components/lens_grid/payload.js";
import { SEEDS } from "../../components/sampling_ledger/choices.js";
import { payload as ofLogits } from "../../components/sampling_ledger/payload.js";
import { payload as ofTokens } from "../../components/token_strip/payload.js";
import { uniform } from "./draws.js";
import { heads } from "./heads.js";
import { lens } from "./lens.js";
import { softmax } from "./parts.js";

const MOST_IN_CELL = 20;

/** @typedef {import("./decoder.js").Decoder} Decoder @typedef {import("./tokenizers.js").Tokenizer} Tokenizer */

export class Reading {
  /** @param {string} model its name @param {Decoder} decoder @param {Tokenizer} tokenizer @param {string} prompt @param {number[]} text its tokens, at least one @param {number | null} step of the snapshot that is read, null for the model itself */
  constructor(model, decoder, tokenizer, prompt, text = tokenizer.encode(prompt), step = null) {
    this.model = model;
    this.step = step;
    this.decoder = decoder;
    this.tokenizer = tokenizer;
    this.prompt = prompt;
    this.text = text;
    this.lacking = [...new Set(tokenizer.lacking(prompt))];
    this.ids = this.text.slice(-decoder.config.context_length); // those that the model reads
    /** @type {import("./lens.js").Seen} */
    this.seen = {};
    this.logits = decoder.read(this.ids, { tap: (name, value) => (this.seen[name] = value), whole: true });
    this.labels = this.ids.map((id) => tokenizer.labels[id]);
    this.of = `${model}${step === null ? "" : ` ${step}`}\n${prompt}`;
  }

  get opened() {
    const step = this.step === null ? "" : `, step=${this.step}`;
    return `import gptviz\n\nlm = gptviz.load(${JSON.stringify(this.model)}${step})\n`;
  }

  /** The prompt up to `position`, and a token. @param {number} position @param {number} token */
  with(position, token) {
    const { texts } = this.tokenizer,
      rest = this.ids.length - 1 - position;
    if (!rest) return this.prompt + texts[token];
    const kept = [...this.text.slice(0, -rest), token].map((id) => texts[id]).join("");
    return this.tokenizer.spaced ? kept.slice(1) : kept;
  }

  /** The logits after the token at `position`. @param {number} position */
  after(position) {
    const size = this.decoder.vocabSize;
    return this.logits.slice(position * size, (position + 1) * size);
  }

  /** The likeliest token after the one at `position`, and its probability. @param {number} position */
  likeliest(position) {
    const shares = softmax(this.after(position)),
      most = shares.indexOf(Math.max(...shares));
    return { before: this.labels[position], label: this.tokenizer.labels[most], probability: shares[most] };
  }

  /** The tokens, each with the probability that the ones before it gave it. @param {number} selected */
  tokens(selected) {
    const tokens = this.ids.map((id, i) => ({ label: this.labels[i], probability: i ? softmax(this.after(i - 1))[id] : null }));
    return ofTokens(tokens, { generation: numberOf(this.of), selected, spaced: this.tokenizer.spaced });
  }

  /** The next token after the one at `position`. @param {number} position */
  ledger(position) {
    const before = this.text.length - this.ids.length + position + 1,
      isLast = position === this.ids.length - 1;
    const numbers = Float64Array.from({ length: SEEDS }, (_, seed) => uniform(seed, before));
    const begin = `import torch\n\n${this.opened}ids = lm.seen(lm.encode(${JSON.stringify(this.prompt)}))
from gptviz.generate.sampling import Sampling, draw, ledger, uniform
logits = lm.model(ids[None])[0, ${position}:${position + 1}]  # [1, vocab_size]
sampling = `;
    const end = `\nstages = ledger(logits, sampling)\ntoken = draw(stages.after, uniform(sampling.seed, ${before}))  # [1]`;
    return ofLogits(
      { logits: this.after(position), labels: this.tokenizer.labels, numbers },
      {
        vocabulary: this.model,
        generation: numberOf(`${this.of}\n${position}`),
        title: `${this.model}, the token after position ${position}`,
        code: [begin, end],
        true: isLast ? null : this.ids[position + 1],
        takes: true,
        note: isLast || (before === position + 1 && this.decoder.looksBack) ? ", as on Generate with this seed" : "",
        prompt: this.labels
          .slice(0, position + 1)
          .join("")
          .replaceAll("␣", " "),
      },
    );
  }

  lens() {
    const code = `${this.opened}result = lm.lens(${JSON.stringify(this.prompt)}, top=${MOST_IN_CELL})
result.top, result.probability  # [layer, position, k]: the likeliest tokens
result.entropy, result.rank, result.true_probability  # [layer, position]`;
    const { of, model, tokenizer } = this;
    return ofLens(lens(this.decoder, this.ids, this.seen, MOST_IN_CELL), tokenizer.labels, {
      of,
      model,
      code,
      spaced: tokenizer.spaced,
    });
  }

  /** Of a model with blocks. */
  attention() {
    const { of, model, labels, tokenizer } = this,
      { pool, ...found } = heads(this.decoder, this.ids, this.seen);
    const code = `${this.opened}from gptviz.interp.reading.attention import read
reading = read(lm.model, lm.seen(lm.encode(${JSON.stringify(this.prompt)})).tolist())`;
    const axes = { queries: labels, keys: labels, alone: true, reads: "query (reads)", isRead: "key (is read)" };
    const rest = { spaced: tokenizer.spaced, pooling: pool, hidden: [], code, asked: null, number: 0, edited: null };
    return ofHeads(found, { of, model, ...axes, ...rest });
  }
}

/** A number that tells texts apart. @param {string} text */
export function numberOf(text) {
  let number = 0;
  for (const letter of text) number = (31 * number + (letter.codePointAt(0) ?? 0)) % 2 ** 45;
  return number;
}
