// The backward pass: from the loss of a text to its slope along every weight, part by part, in the reverse order of decoder.js.

import { dot, linear, linearBack, NORMS, RESIDUALS_BACK, SLOPES, softmax, softmaxBack } from "./parts.js";

/** @typedef {import("./parts.js").Tensor} Tensor @typedef {import("./parts.js").Weights} Weights */
/** @typedef {import("./decoder.js").Decoder} Decoder @typedef {Record<string, Float32Array>} Seen the values of a whole pass */

export class Gradients {
  /** @param {Decoder} decoder */
  constructor(decoder) {
    this.decoder = decoder;
    const zeros = (/** @type {Tensor} */ { length, shape }) => Object.assign(new Float32Array(length), { shape });
    /** The slope of the loss along each weight, by name. @type {Record<string, Tensor>} */
    this.tensors = Object.fromEntries(Object.entries(decoder.tensors).map(([name, weights]) => [name, zeros(weights)]));
  }

  clear() {
    for (const slopes of Object.values(this.tensors)) slopes.fill(0);
  }

  /** The slopes along the weight and the bias of a part. @param {string} name @returns {Weights} */
  part(name) {
    return { weight: this.tensors[`${name}.weight`], bias: this.tensors[`${name}.bias`] };
  }

  /**
   * Add those of one text, no longer than the context.
   *
   * @param {number[]} ids its tokens @param {number[]} targets the token after each
   * @param {number} share what its loss counts for: the loss is a mean over all tokens of all texts
   * @returns {number} the sum of -log(p) of its targets
   */
  add(ids, targets, share) {
    /** @type {Seen} */
    const seen = {};
    const { decoder } = this,
      { config } = decoder,
      size = decoder.vocabSize,
      logits = decoder.read(ids, { tap: (name, value) => (seen[name] = value), whole: true });
    let loss = 0;
    // The slope along a logit is the probability that it gives, less 1 for the target.
    for (const [t, target] of targets.entries()) {
      softmax(logits, t * size, size);
      loss -= Math.log(logits[t * size + target]);
      logits[t * size + target] -= 1;
    }
    const last = decoder.blocks.at(-1),
      x = last ? seen[`${last}.resid_post`] : decoder.embedded(ids, 0);
    /** @type {Float32Array} */
    let dx = this.head(
      x,
      logits.map((slope) => slope * share),
    );
    for (let i = decoder.blocks.length - 1; i >= 0; i--) dx = this.block(i, seen, dx);
    decoder.positions.embedBack?.(dx, this.part("positions.table"));
    const { weight } = this.part("embed");
    for (const [t, id] of ids.entries())
      for (let i = 0; i < config.d_model; i++) weight[id * config.d_model + i] += dx[t * config.d_model + i];
    return loss;
  }

  /** Through the head to the stream. @param {Float32Array} x @param {Float32Array} dlogits */
  head(x, dlogits) {
    const { decoder } = this,
      { config } = decoder,
      read = config.final_norm ? decoder.norm("head.final_norm", x) : x,
      dx = linearBack(read, decoder.unembed(), dlogits, decoder.unembed(this.tensors));
    return config.final_norm ? this.norm("head.final_norm", x, dx) : dx;
  }

  /** Through a norm over vectors of `size` numbers. @param {string} name @param {Float32Array} x @param {Float32Array} dy @param {number} [size] */
  norm(name, x, dy, size = this.decoder.config.d_model) {
    const { config } = this.decoder,
      { back, eps } = NORMS[config.norm];
    return back(x, size, this.decoder.part(name), config.norm_eps ?? eps, dy, this.part(name));
  }

  /** Through a block to the stream that it read. @param {number} i @param {Seen} seen @param {Float32Array} dblock */
  block(i, seen, dblock) {
    const { decoder } = this,
      name = decoder.blocks[i];
    /** @typedef {import("./parts.js").SublayerBack} Back */
    const through = (
      /** @type {string} */ part,
      /** @type {string} */ before,
      /** @type {Float32Array} */ dout,
      /** @type {Back} */ f,
    ) => {
      const norm = `${name}.${part}_residual.norm`;
      const [x, out] = [seen[`${name}.${before}`], seen[`${name}.${part}.out`]];
      const normed = (/** @type {Float32Array} */ y) => decoder.norm(norm, y);
      const normBack = (/** @type {Float32Array} */ y, /** @type {Float32Array} */ dy) => this.norm(norm, y, dy);
      return RESIDUALS_BACK[decoder.config.residual](x, out, dout, f, normed, normBack);
    };
    const hasMlp = decoder.config.d_mlp !== 0,
      middle = hasMlp ? through("mlp", "resid_mid", dblock, (x, dout) => this.mlp(name, seen, x, dout)) : dblock;
    return through("attention", "resid_pre", middle, (x, dout) => this.attention(i, seen, x, dout));
  }

  /** @param {string} block @param {Seen} seen @param {Float32Array} x @param {Float32Array} dy */
  mlp(block, seen, x, dy) {
    const { decoder } = this,
      [up, down] = [`${block}.mlp.up`, `${block}.mlp.down`],
      inputs = seen[`${block}.mlp.inputs`],
      slope = SLOPES[decoder.config.activation];
    const dneurons = linearBack(seen[`${block}.mlp.neurons`], decoder.part(down), dy, this.part(down));
    for (let at = 0; at < inputs.length; at++) dneurons[at] *= slope(inputs[at]);
    return linearBack(x, decoder.part(up), dneurons, this.part(up));
  }

  /** Through attention: its output, the pattern and what it mixes, then queries and keys. @param {number} i @param {Seen} seen @param {Float32Array} x @param {Float32Array} dy */
  attention(i, seen, x, dy) {
    const { decoder } = this,
      { headSize: size, keyHeads, scale } = decoder,
      { n_head } = decoder.config,
      name = `${decoder.blocks[i]}.attention`,
      [qkv, pattern] = [seen[`${name}.qkv`], seen[`${name}.pattern`]],
      row = (n_head + 2 * keyHeads) * size,
      length = qkv.length / row;
    const dz = linearBack(seen[`${name}.z`], decoder.part(`${name}.output`), dy, this.part(`${name}.output`)),
      dqkv = new Float32Array(qkv.length),
      dscores = new Float32Array(length);
    for (let head = 0; head < n_head; head++) {
      const shared = Math.floor((head * keyHeads) / n_head),
        [k, v] = [(n_head + shared) * size, (n_head + keyHeads + shared) * size];
      for (let t = 0; t < length; t++) {
        const at = (head * length + t) * length,
          seenKeys = decoder.looksBack ? t + 1 : length,
          q = t * row + head * size,
          z = (t * n_head + head) * size,
          shares = pattern.subarray(at, at + seenKeys);
        for (let key = 0; key < seenKeys; key++) {
          dscores[key] = dot(dz, z, qkv, key * row + v, size);
          for (let n = 0; n < size; n++) dqkv[key * row + v + n] += shares[key] * dz[z + n];
        }
        softmaxBack(shares, dscores, 0, seenKeys);
        for (let key = 0; key < seenKeys; key++) {
          const slope = scale * dscores[key];
          for (let n = 0; n < size; n++) {
            dqkv[q + n] += slope * qkv[key * row + k + n];
            dqkv[key * row + k + n] += slope * qkv[q + n];
          }
        }
      }
    }
    this.turnedBack(name, x, dqkv, row);
    return linearBack(x, decoder.part(`${name}.qkv`), dqkv, this.part(`${name}.qkv`));
  }

  /** Through positions and norms of queries and keys, in place. @param {string} name @param {Float32Array} x @param {Float32Array} dqkv @param {number} row numbers of a token */
  turnedBack(name, x, dqkv, row) {
    const { headSize: size, keyHeads, positions, config, isQkNormed } = this.decoder,
      end = (config.n_head + keyHeads) * size;
    const plain = isQkNormed ? linear(x, this.decoder.part(`${name}.qkv`)) : dqkv;
    for (let at = 0, p = 0; at < dqkv.length; at += row, p++) {
      for (let head = at; positions.turn && head < at + end; head += size)
        positions.turn(dqkv, head, size, -p, config.rotary_base ?? 10_000);
      if (!isQkNormed) continue;
      const [given, dy] = [plain, dqkv].map((one) => one.subarray(at, at + end));
      dqkv.set(this.norm(`${name}.qk_norm`, given, dy, size), at);
    }
  }
}
