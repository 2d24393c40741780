// A decoder by its config and its weights: a forward pass that keeps keys and values.

import { ACTIVATIONS, dot, linear, NORMS, POSITIONS, RESIDUALS, softmax } from "./parts.js";

/** @typedef {import("./parts.js").Tensor} Tensor @typedef {import("./parts.js").Weights} Weights */
/** @typedef {(name: string, value: Float32Array) => void} Tap sees a value of a pass by its name in gptviz/model/tap.py; the inputs of neurons too */

export class Decoder {
  /** @param {Record<string, any>} config the fields of config.json @param {Record<string, Tensor>} tensors the weights by name */
  constructor(config, tensors) {
    const { d_model, n_head, context_length, vocab_size } = config;
    this.config = config;
    this.tensors = tensors;
    this.blocks = Array.from({ length: config.n_layer }, (_, i) => `blocks.${i}`);
    this.keyHeads = config.n_kv_head ?? n_head;
    this.headSize = config.d_head ?? d_model / n_head;
    this.scale = config.score_scale ?? this.headSize ** -0.5;
    this.vocabSize = vocab_size;
    this.isQkNormed = config.qk_norm === true || config.qk_norm === "shared";
    this.looksBack = config.mask === "causal";
    this.residual = RESIDUALS[config.residual];
    this.positions = POSITIONS[config.positions];
    const room = () => this.blocks.map(() => new Float32Array(context_length * this.keyHeads * this.headSize));
    this.keys = room(); // by block: [context_length, n_kv_head, d_head]
    this.values = room();
    /** @type {number[]} */
    this.ids = []; // those that keys and values are kept of
  }

  /** The weight and bias of a part. @param {string} name @returns {Weights} */
  part(name) {
    return { weight: this.tensors[`${name}.weight`], bias: this.tensors[`${name}.bias`] };
  }

  /** A norm over vectors of `size` numbers. @param {string} name @param {Float32Array} x @param {number} size */
  norm(name, x, size = this.config.d_model) {
    const { norm, eps } = NORMS[this.config.norm];
    return norm(x, size, this.part(name), this.config.norm_eps ?? eps);
  }

  /**
   * Read a text. Past `context_length` tokens the model reads only the last ones. What the text has in common with the one before is
   * not computed again, unless it is to be seen (`whole`).
   *
   * @param {number[]} text the ids of its tokens
   * @param {{ tap?: Tap, whole?: boolean }} [how]
   * @returns {Float32Array} the logits after the last token; of a `whole` text after each
   */
  read(text, { tap = () => {}, whole = false } = {}) {
    const ids = text.slice(-this.config.context_length);
    const differs = ids.findIndex((id, i) => id !== this.ids[i]);
    const kept = whole || !this.looksBack ? 0 : Math.min(differs < 0 ? ids.length : differs, ids.length - 1);
    this.ids = ids;
    return this.head(this.pass(ids.slice(kept), kept, tap, whole));
  }

  /** The stream after all blocks, [T, d_model] of a whole text, else [1, d_model]. @param {number[]} ids @param {number} first the place of the first @param {Tap} tap @param {boolean} whole */
  pass(ids, first, tap, whole) {
    const { config, residual } = this,
      last = this.blocks.length - 1;
    let x = this.embedded(ids, first);
    for (const [i, block] of this.blocks.entries()) {
      tap(`${block}.resid_pre`, x);
      /** @param {string} name @returns {import("./parts.js").Sublayer} */
      const norm = (name) => (y) => this.norm(`${block}.${name}_residual.norm`, y);
      // Nothing reads what the last block makes of the tokens before the last one.
      const queries = whole || i < last ? ids.length : 1;
      x = residual(x, (y) => this.attention(i, y, first, tap, queries), norm("attention"));
      if (config.d_mlp !== 0) {
        tap(`${block}.resid_mid`, x);
        x = residual(x, (y) => this.mlp(block, y, tap), norm("mlp"));
      }
      tap(`${block}.resid_post`, x);
    }
    return whole ? x : x.subarray(-config.d_model);
  }

  /** @param {number[]} ids @param {number} first */
  embedded(ids, first) {
    const { weight } = this.part("embed"),
      size = this.config.d_model;
    const x = new Float32Array(ids.length * size);
    for (const [t, id] of ids.entries()) x.set(weight.subarray(id * size, (id + 1) * size), t * size);
    return this.positions.embed?.(x, first, this.part("positions.table")) ?? x;
  }

  /** The logits that the head gives vectors of the stream. @param {Float32Array} x */
  head(x) {
    return linear(this.config.final_norm ? this.norm("head.final_norm", x) : x, this.unembed());
  }

  /** The weights of the unembedding, or of others of the same names. @param {Record<string, Tensor>} [tensors] @returns {Weights} */
  unembed(tensors = this.tensors) {
    return { weight: tensors[this.config.tied ? "embed.weight" : "head.unembed.weight"], bias: tensors["head.unembed.bias"] };
  }

  /** @param {string} block @param {Float32Array} x @param {Tap} tap */
  mlp(block, x, tap) {
    const inputs = linear(x, this.part(`${block}.mlp.up`)),
      neurons = inputs.map(ACTIVATIONS[this.config.activation]),
      out = linear(neurons, this.part(`${block}.mlp.down`));
    for (const [what, value] of Object.entries({ inputs, neurons, out })) tap(`${block}.mlp.${what}`, value);
    return out;
  }

  /** softmax(mask(q kᵀ · scale)) v per head, then W_O. @param {number} i the block @param {Float32Array} x [T, d_model] @param {number} first @param {Tap} tap @param {number} queries how many of the last tokens ask */
  attention(i, x, first, tap, queries) {
    const { headSize: size, keyHeads, scale } = this,
      [keys, values] = [this.keys[i], this.values[i]],
      { n_head } = this.config,
      name = `blocks.${i}.attention`;
    const qkv = linear(x, this.part(`${name}.qkv`)),
      row = (n_head + 2 * keyHeads) * size,
      length = qkv.length / row,
      before = length - queries,
      total = first + length;
    const q = this.turned(name, qkv, row, first);
    for (let t = 0; t < length; t++) {
      const [k, v] = [t * row + n_head * size, t * row + (n_head + keyHeads) * size];
      keys.set(q.subarray(k, k + keyHeads * size), (first + t) * keyHeads * size);
      values.set(qkv.subarray(v, v + keyHeads * size), (first + t) * keyHeads * size);
    }
    const pattern = new Float32Array(n_head * queries * total),
      z = new Float32Array(queries * n_head * size);
    for (let head = 0; head < n_head; head++) {
      const shared = Math.floor((head * keyHeads) / n_head) * size;
      for (let t = 0; t < queries; t++) {
        const at = (head * queries + t) * total,
          seen = this.looksBack ? first + before + t + 1 : total,
          from = (t * n_head + head) * size;
        for (let key = 0; key < seen; key++) {
          pattern[at + key] = scale * dot(q, (before + t) * row + head * size, keys, key * keyHeads * size + shared, size);
        }
        softmax(pattern, at, seen);
        for (let key = 0; key < seen; key++) {
          const v = key * keyHeads * size + shared,
            share = pattern[at + key];
          for (let n = 0; n < size; n++) z[from + n] += share * values[v + n];
        }
      }
    }
    const out = linear(z, this.part(`${name}.output`));
    for (const [what, value] of Object.entries({ qkv: q, pattern, z, out })) tap(`${name}.${what}`, value);
    return out;
  }

  /** Queries and keys normed and turned, the values as they are. @param {string} name @param {Float32Array} qkv @param {number} row numbers of a token @param {number} first */
  turned(name, qkv, row, first) {
    const { headSize: size, positions, config } = this,
      end = (config.n_head + this.keyHeads) * size;
    const turned = qkv.slice();
    for (let at = 0, p = first; at < qkv.length; at += row, p++) {
      if (this.isQkNormed) turned.set(this.norm(`${name}.qk_norm`, qkv.subarray(at, at + end), size), at);
      if (positions.turn) {
        for (let head = at; head < at + end; head += size) positions.turn(turned, head, size, p, config.rotary_base ?? 10_000);
      }
    }
    return turned;
  }
}
