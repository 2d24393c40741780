// The weights that a decoder has, by its config: names and shapes, as gptviz/model/builder.py lays them out.

/** The shape of every weight by its name, in the order of the model's parts. @param {Record<string, any>} config @returns {Record<string, number[]>} */
export function shapesOf(config) {
  const { vocab_size, context_length, d_model, n_layer, n_head } = config,
    keyHeads = config.n_kv_head ?? n_head,
    size = config.d_head ?? d_model / n_head,
    neurons = config.d_mlp ?? 4 * d_model;
  /** @type {Record<string, number[]>} */
  const shapes = { "embed.weight": [vocab_size, d_model] };
  const linear = (/** @type {string} */ name, /** @type {number[]} */ shape, /** @type {boolean} */ hasBias) => {
    shapes[`${name}.weight`] = shape;
    if (hasBias) shapes[`${name}.bias`] = shape.slice(0, 1);
  };
  const norm = (/** @type {string} */ name, width = d_model) => {
    if (config.norm_gain) linear(name, [width], config.norm_bias);
  };
  const isNormed = ["pre-norm", "post-norm"].includes(config.residual);
  if (config.positions === "learned") shapes["positions.table.weight"] = [context_length, d_model];
  for (let i = 0; i < n_layer; i++) {
    const block = `blocks.${i}`;
    linear(`${block}.attention.output`, [d_model, n_head * size], config.output_bias);
    if (config.qk_norm === true || config.qk_norm === "shared") norm(`${block}.attention.qk_norm`, size);
    linear(`${block}.attention.qkv`, [(n_head + 2 * keyHeads) * size, d_model], config.qkv_bias);
    if (isNormed) norm(`${block}.attention_residual.norm`);
    if (!neurons) continue;
    linear(`${block}.mlp.up`, [neurons, d_model], config.mlp_bias);
    linear(`${block}.mlp.down`, [d_model, neurons], config.mlp_bias);
    if (isNormed) norm(`${block}.mlp_residual.norm`);
  }
  if (config.final_norm) norm("head.final_norm");
  if (!config.tied) shapes["head.unembed.weight"] = [vocab_size, d_model];
  if (config.unembed_bias) shapes["head.unembed.bias"] = [vocab_size];
  return shapes;
}
