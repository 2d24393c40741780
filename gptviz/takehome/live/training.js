// A step of training, as in gptviz/train: the gradients of a batch, clipped, and AdamW.

import { Decoder } from "./decoder.js";
import { Gradients } from "./gradients.js";
import { shapedAs, sizeOf } from "./safetensors.js";
import { shapesOf } from "./shapes.js";

/** @typedef {import("./parts.js").Tensor} Tensor */
/** @typedef {{ steps: number, batch_size: number, learning_rate: number, warmup: number, final_rate: number, weight_decay: number, beta1: number, beta2: number, clip: number, seed?: number }} Recipe the fields of gptviz/train/recipe.py; its schedule is a cosine */

const EPS = 1e-8; // AdamW's
const CLIPPED = 1e-6; // is added to the norm of gradients that are clipped, as torch does

/** Random numbers that a seed decides: mulberry32, and two of them for one of a normal distribution (Box and Muller). */
export class Random {
  /** @param {number} seed */
  constructor(seed) {
    this.state = seed;
  }

  /** A number in [0, 1). */
  uniform() {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number below `end`. @param {number} end */
  below(end) {
    return Math.floor(this.uniform() * end);
  }

  normal() {
    return Math.sqrt(-2 * Math.log(1 - this.uniform())) * Math.cos(2 * Math.PI * this.uniform());
  }
}

/** Fresh weights: matrices from N(0, 0.02²), those into the stream smaller, gains 1, biases 0. @param {Record<string, any>} config @param {Random} random @returns {Record<string, Tensor>} */
export function freshWeights(config, random) {
  const intoStream = (2 * Math.max(config.n_layer, 1)) ** -0.5;
  const fresh = Object.entries(shapesOf(config)).map(([name, shape]) => {
    const numbers = new Float32Array(sizeOf(shape)).fill(Number(name.endsWith("norm.weight"))),
      scale = 0.02 * (/attention\.output|\.down/.test(name) ? intoStream : 1);
    return [name, shapedAs(shape.length > 1 ? numbers.map(() => scale * random.normal()) : numbers, shape)];
  });
  return Object.fromEntries(fresh);
}

/** A copy of tensors. @param {Record<string, Tensor>} tensors @returns {Record<string, Tensor>} */
export const copied = (tensors) =>
  Object.fromEntries(Object.entries(tensors).map(([name, one]) => [name, shapedAs(one.slice(), one.shape)]));

export class Training {
  /** @param {Record<string, any>} config @param {Record<string, Tensor>} tensors the weights, which are changed in place @param {Recipe} recipe */
  constructor(config, tensors, recipe) {
    this.decoder = new Decoder(config, tensors);
    this.gradients = new Gradients(this.decoder);
    this.recipe = recipe;
    this.step = 0;
    /** AdamW's running means of each gradient and of its square. */
    this.means = copied(this.gradients.tensors);
    this.squares = copied(this.gradients.tensors);
  }

  /** The learning rate of the next step. */
  get rate() {
    const { steps, learning_rate, warmup, final_rate } = this.recipe,
      progress = this.step / steps;
    if (progress < warmup) return (learning_rate * progress) / warmup;
    const left = (1 + Math.cos((Math.PI * (progress - warmup)) / (1 - warmup))) / 2;
    return learning_rate * (final_rate + (1 - final_rate) * left);
  }

  /** Take a step. @param {number[][]} rows of tokens: all but the last predict all but the first @returns {number} the loss of the batch before it, in nats per token */
  advance(rows) {
    this.gradients.clear();
    const counted = rows.reduce((sum, row) => sum + row.length - 1, 0);
    const loss = rows.reduce((sum, row) => sum + this.gradients.add(row.slice(0, -1), row.slice(1), 1 / counted), 0);
    this.adamW();
    return loss / counted;
  }

  /** Change the weights by the gradients. */
  adamW() {
    const { beta1, beta2, weight_decay, clip } = this.recipe,
      { rate, gradients, decoder } = this,
      [biased, biasedSquare] = [1 - beta1 ** (this.step + 1), Math.sqrt(1 - beta2 ** (this.step + 1))];
    let square = 0;
    for (const one of Object.values(gradients.tensors)) for (let i = 0; i < one.length; i++) square += one[i] ** 2;
    const shorter = clip ? Math.min(1, clip / (Math.sqrt(square) + CLIPPED)) : 1;
    for (const [name, weights] of Object.entries(decoder.tensors)) {
      const [slopes, means, squares] = [gradients.tensors[name], this.means[name], this.squares[name]],
        kept = weights.shape.length > 1 ? 1 - rate * weight_decay : 1; // biases and gains do not decay
      for (let i = 0; i < weights.length; i++) {
        const slope = shorter * slopes[i];
        means[i] += (1 - beta1) * (slope - means[i]);
        squares[i] = beta2 * squares[i] + (1 - beta2) * slope * slope;
        const step = means[i] / biased / (Math.sqrt(squares[i]) / biasedSquare + EPS);
        weights[i] = kept * weights[i] - rate * step;
      }
    }
    decoder.ids = []; // the keys and values that it keeps are of other weights now
    this.step += 1;
  }

  /** The loss on texts, in nats per token; nothing is changed. @param {number[][]} rows as those of a step */
  evaluate(rows) {
    const { decoder } = this;
    let [loss, counted] = [0, 0];
    for (const row of rows) {
      const logits = decoder.read(row.slice(0, -1), { whole: true });
      for (const [t, target] of row.slice(1).entries()) {
        loss -= logProbability(logits.subarray(t * decoder.vocabSize, (t + 1) * decoder.vocabSize), target);
        counted += 1;
      }
    }
    return loss / counted;
  }
}

/** @param {Float32Array} logits @param {number} target */
function logProbability(logits, target) {
  const most = logits.reduce((a, b) => Math.max(a, b));
  return logits[target] - most - Math.log(logits.reduce((sum, one) => sum + Math.exp(one - most), 0));
}
