// The parts of a decoder, one small function each, as in gptviz/model/parts. The vectors of T tokens lie one after the other.
// Beside each is the way back: from the slope of the loss along what the part gave (dy) to that along what it was given (dx). The
// slopes along weights are added to those in `slopes`, which has a tensor for each weight.

/** @typedef {Float32Array & { shape: number[] }} Tensor @typedef {{ weight: Tensor, bias?: Tensor }} Weights */

/** x [T, n] → x Wᵀ + b, [T, m], with W [m, n]. @param {Float32Array} x @param {Weights} weights */
export function linear(x, { weight, bias }) {
  const [wide, inner] = weight.shape,
    length = x.length / inner;
  const y = new Float32Array(length * wide);
  // Four rows and two tokens at a time, so that each number that is read is used more than once; what is left over one by one.
  const [rows, tokens] = [wide - (wide % 4), length - (length % 2)];
  for (let row = 0; row < rows; row += 4)
    for (let t = 0; t < tokens; t += 2) block(weight, row * inner, x, t * inner, inner, y, t * wide + row, wide);
  for (let t = 0; t < length; t++)
    for (let row = t < tokens ? rows : 0; row < wide; row++) y[t * wide + row] = dot(weight, row * inner, x, t * inner, inner);
  return bias ? y.map((one, i) => one + bias[i % wide]) : y;
}

/** Back through `linear`: dx = dy W, dW = dyᵀ x, and db is the sum of dy. @param {Float32Array} x @param {Weights} weights @param {Float32Array} dy @param {Weights} slopes */
export function linearBack(x, { weight }, dy, slopes) {
  const [wide, inner] = weight.shape,
    length = x.length / inner,
    dx = new Float32Array(x.length);
  for (let t = 0; t < length; t++) addRows(dx, t * inner, inner, dy, t * wide, 1, wide, weight);
  for (let row = 0; row < wide; row++) addRows(slopes.weight, row * inner, inner, dy, row, wide, length, x);
  if (slopes.bias) for (let at = 0; at < dy.length; at++) slopes.bias[at % wide] += dy[at];
  return dx;
}

/** Add `count` rows of `size` numbers, each times its factor, to y from `to` on; the factors stand `step` apart, from `at` on. @param {Float32Array} y @param {number} to @param {number} size @param {Float32Array} factors @param {number} at @param {number} step @param {number} count @param {Float32Array} rows */
function addRows(y, to, size, factors, at, step, count, rows) {
  let k = 0;
  // Four rows at a time, so that y is read and written less often.
  for (const last = count - (count % 4); k < last; k += 4) {
    const from = at + k * step,
      [a, b, c, d] = [factors[from], factors[from + step], factors[from + 2 * step], factors[from + 3 * step]],
      p = k * size,
      q = p + size,
      r = q + size,
      s = r + size;
    for (let i = 0; i < size; i++) y[to + i] += a * rows[p + i] + b * rows[q + i] + c * rows[r + i] + d * rows[s + i];
  }
  for (; k < count; k++) {
    const factor = factors[at + k * step];
    for (let i = 0, p = k * size; i < size; i++) y[to + i] += factor * rows[p + i];
  }
}

/** The products of four rows of W, from p on, with two vectors of x, from u on: to y from `to` on. @param {Float32Array} W @param {number} p @param {Float32Array} x @param {number} u @param {number} size @param {Float32Array} y @param {number} to @param {number} wide */
function block(W, p, x, u, size, y, to, wide) {
  const q = p + size,
    r = q + size,
    s = r + size,
    v = u + size;
  let pu = 0,
    qu = 0,
    ru = 0,
    su = 0,
    pv = 0,
    qv = 0,
    rv = 0,
    sv = 0;
  for (let i = 0; i < size; i++) {
    const one = x[u + i],
      other = x[v + i];
    pu += W[p + i] * one;
    qu += W[q + i] * one;
    ru += W[r + i] * one;
    su += W[s + i] * one;
    pv += W[p + i] * other;
    qv += W[q + i] * other;
    rv += W[r + i] * other;
    sv += W[s + i] * other;
  }
  y[to] = pu;
  y[to + 1] = qu;
  y[to + 2] = ru;
  y[to + 3] = su;
  y[to + wide] = pv;
  y[to + wide + 1] = qv;
  y[to + wide + 2] = rv;
  y[to + wide + 3] = sv;
}

/** The product of two vectors of `size` numbers. @param {Float32Array} a @param {number} i @param {Float32Array} b @param {number} j @param {number} size */
export function dot(a, i, b, j, size) {
  let [even, odd] = [0, 0];
  for (const last = i + size - 1; i < last; i += 2, j += 2) {
    even += a[i] * b[j];
    odd += a[i + 1] * b[j + 1];
  }
  return size % 2 ? even + odd + a[i] * b[j] : even + odd;
}

/** The sum of the last vectors of x with those of y. @param {Float32Array} x @param {Float32Array} y */
export const sum = (x, y) => y.map((one, i) => one + x[x.length - y.length + i]);

/**
 * Each vector of `size` numbers minus its mean, by its standard deviation, times a gain, plus a bias.
 *
 * @param {Float32Array} x @param {number} size @param {Partial<Weights>} weights @param {number} eps
 */
function layerNorm(x, size, { weight, bias }, eps) {
  const y = new Float32Array(x.length);
  for (let at = 0; at < x.length; at += size) {
    let [mean, square] = [0, 0];
    for (let i = 0; i < size; i++) mean += x[at + i] / size;
    for (let i = 0; i < size; i++) square += (x[at + i] - mean) ** 2 / size;
    const scale = 1 / Math.sqrt(square + eps);
    for (let i = 0; i < size; i++) y[at + i] = (x[at + i] - mean) * scale * (weight?.[i] ?? 1) + (bias?.[i] ?? 0);
  }
  return y;
}

/**
 * Back through `layerNorm`: with n = (x - mean) · scale and g = dy · gain, dx = scale · (g - mean(g) - n · mean(g · n)).
 *
 * @param {Float32Array} x @param {number} size @param {Partial<Weights>} weights @param {number} eps @param {Float32Array} dy @param {Partial<Weights>} slopes
 */
function layerNormBack(x, size, { weight }, eps, dy, slopes) {
  const dx = new Float32Array(x.length),
    normed = layerNorm(x, size, {}, eps);
  for (let at = 0; at < x.length; at += size) {
    let [mean, square, flat, along] = [0, 0, 0, 0];
    for (let i = 0; i < size; i++) mean += x[at + i] / size;
    for (let i = 0; i < size; i++) {
      const slope = (dy[at + i] * (weight?.[i] ?? 1)) / size;
      square += (x[at + i] - mean) ** 2 / size;
      flat += slope;
      along += slope * normed[at + i];
      if (slopes.weight) slopes.weight[i] += dy[at + i] * normed[at + i];
      if (slopes.bias) slopes.bias[i] += dy[at + i];
    }
    const scale = 1 / Math.sqrt(square + eps);
    for (let i = 0; i < size; i++) dx[at + i] = scale * (dy[at + i] * (weight?.[i] ?? 1) - flat - normed[at + i] * along);
  }
  return dx;
}

/** By the name of the norm in a config: the norm, the way back, and its usual ε. @type {Record<string, { norm: typeof layerNorm, back: typeof layerNormBack, eps: number }>} */
export const NORMS = { layernorm: { norm: layerNorm, back: layerNormBack, eps: 1e-5 } };

/** The error function: its series, of which no term is negative. @param {number} x */
function erf(x) {
  if (Math.abs(x) > 5.5) return Math.sign(x);
  let [term, total] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17; n++) total += term *= (2 * x * x) / (2 * n + 1);
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
}

/** @type {Record<string, (x: number) => number>} */
export const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  relu2: (x) => Math.max(0, x) ** 2,
  gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
};

/** The slope of each activation at x. @type {Record<string, (x: number) => number>} */
export const SLOPES = {
  relu: (x) => Number(x > 0),
  relu2: (x) => 2 * Math.max(0, x),
  gelu: (x) => (1 + erf(x / Math.SQRT2)) / 2 + (x * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI),
};

/** @typedef {(x: Float32Array) => Float32Array} Sublayer @type {Record<string, (x: Float32Array, f: Sublayer, norm: Sublayer) => Float32Array>} */
export const RESIDUALS = {
  none: (x, f) => f(x),
  plain: (x, f) => sum(x, f(x)),
  "pre-norm": (x, f, norm) => sum(x, f(norm(x))),
  "post-norm": (x, f, norm) => norm(sum(x, f(x))),
};

/**
 * Back through a residual: x came in, and the sublayer f added `out`; f and norm take what they were given and dy.
 *
 * @typedef {(x: Float32Array, dy: Float32Array) => Float32Array} SublayerBack
 * @type {Record<string, (x: Float32Array, out: Float32Array, dy: Float32Array, f: SublayerBack, norm: Sublayer, normBack: SublayerBack) => Float32Array>}
 */
export const RESIDUALS_BACK = {
  none: (x, _, dy, f) => f(x, dy),
  plain: (x, _, dy, f) => sum(dy, f(x, dy)),
  "pre-norm": (x, _, dy, f, norm, normBack) => sum(dy, normBack(x, f(norm(x), dy))),
  "post-norm"(x, out, dy, f, _, normBack) {
    const added = normBack(sum(x, out), dy);
    return sum(added, f(x, added));
  },
};

/**
 * What positions change: the vectors that come in, or a query or key of `size` numbers, in place; `p` is the place in the text.
 *
 * @typedef {object} Positions
 * @property {(x: Float32Array, first: number, table: Weights) => Float32Array} [embed]
 * @property {(dy: Float32Array, table: Weights) => void} [embedBack] of a text from its beginning; dx is dy
 * @property {(vectors: Float32Array, at: number, size: number, p: number, base: number) => void} [turn]
 */

/** @type {Record<string, Positions>} */
export const POSITIONS = {
  none: {},
  learned: {
    embed: (x, first, { weight }) => sum(weight.subarray(first * weight.shape[1], first * weight.shape[1] + x.length), x),
    embedBack(dy, { weight }) {
      for (let i = 0; i < dy.length; i++) weight[i] += dy[i];
    },
  },
  // The way back turns by as much the other way: by -p.
  rotary: {
    turn(vectors, at, size, p, base) {
      for (let i = at, half = size / 2; i < at + half; i++) {
        const angle = p * base ** ((at - i) / half),
          [cos, sin] = [Math.cos(angle), Math.sin(angle)],
          [a, b] = [vectors[i], vectors[i + half]];
        vectors[i] = a * cos - b * sin;
        vectors[i + half] = b * cos + a * sin;
      }
    },
  },
};

/** Numbers to shares that sum to 1, in place, of those from `at` on. @param {Float32Array} x @param {number} at @param {number} size */
export function softmax(x, at = 0, size = x.length) {
  let [most, total] = [-Infinity, 0];
  for (let i = at; i < at + size; i++) most = Math.max(most, x[i]);
  for (let i = at; i < at + size; i++) total += Math.exp(x[i] - most);
  for (let i = at; i < at + size; i++) x[i] = Math.exp(x[i] - most) / total;
  return x;
}

/** Back through `softmax`, which gave y: dx = y · (dy - Σ y · dy), in place of dy. @param {Float32Array} y @param {Float32Array} dy @param {number} at @param {number} size */
export function softmaxBack(y, dy, at, size) {
  const mean = dot(y, at, dy, at, size);
  for (let i = at; i < at + size; i++) dy[i] = y[i] * (dy[i] - mean);
}
