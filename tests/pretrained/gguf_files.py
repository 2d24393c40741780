"""Models of `transformers` written as llama.cpp's converter writes them, with the `gguf` library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

# What config.json calls a family → what GGUF calls it.
ARCHITECTURES = {
    "llama": gguf.MODEL_ARCH.LLAMA,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "gpt2": gguf.MODEL_ARCH.GPT2,
    "gpt_neox": gguf.MODEL_ARCH.GPTNEOX,
    "gemma3_text": gguf.MODEL_ARCH.GEMMA3,
}
Values = np.ndarray[Any, Any]


def permuted(rows: Values, heads: int) -> Values:
    """As the converter orders the rows of queries and keys of Llama: i and i + d_head / 2 side by side."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def converted(kind: str, name: str, values: Values, config: Any) -> Values:
    """What the converter makes of one tensor."""
    if kind == "llama" and "q_proj" in name:
        return permuted(values, config.num_attention_heads)
    if kind == "llama" and "k_proj" in name:
        return permuted(values, config.num_key_value_heads)
    if kind == "gemma3_text" and name.endswith("norm.weight"):
        return values + 1
    if kind == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        return values.T
    if kind == "gpt_neox" and "query_key_value" in name:
        heads = config.num_attention_heads
        apart = values.reshape(heads, 3, values.shape[0] // heads // 3, *values.shape[1:])
        return np.concatenate([apart[:, place].reshape(-1, *values.shape[1:]) for place in range(3)])
    return values


def quantised(values: Values, kind: gguf.GGMLQuantizationType) -> tuple[Values, Any]:
    """The values in this type where it can hold them (a matrix with rows that are long enough), else as they are."""
    size = gguf.GGML_QUANT_SIZES[kind][0]
    if values.ndim == 2 and values.shape[1] % size == 0:
        return gguf.quantize(np.ascontiguousarray(values), kind), kind
    return np.ascontiguousarray(values), None


def sizes_to(writer: gguf.GGUFWriter, config: Any) -> None:
    """Write the settings of the model."""
    get = config.to_dict().get
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(get("intermediate_size") or get("n_inner") or 4 * config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    if get("num_key_value_heads"):
        writer.add_head_count_kv(config.num_key_value_heads)
    if get("head_dim"):
        writer.add_key_length(config.head_dim)
    if get("rms_norm_eps"):
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if get("layer_norm_eps") or get("layer_norm_epsilon"):
        writer.add_layer_norm_eps(get("layer_norm_eps") or get("layer_norm_epsilon"))
    if get("sliding_window"):
        writer.add_sliding_window(config.sliding_window)
    if get("use_parallel_residual") is not None:
        writer.add_parallel_residual(config.use_parallel_residual)
    turning = get("rope_parameters") or {}
    turning = turning.get("full_attention", turning)
    if turning:
        size = get("head_dim") or config.hidden_size // config.num_attention_heads
        writer.add_rope_freq_base(turning["rope_theta"])
        writer.add_rope_dimension_count(int(size * turning.get("partial_rotary_factor", 1.0)))
    if turning.get("rope_type") == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(turning["factor"])


def saved(
    model: Any,
    path: Path,
    *,
    to: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    architecture: str | None = None,
    settings: Mapping[str, Any] = {},
    extra: Mapping[str, Values] = {},
) -> None:
    """Write a model.

    Args:
        to: the type its matrices are stored in.
        architecture: what the file calls the architecture; its own unless given.
        settings: others of the header, by name: texts, numbers, true or false, lists.
        extra: other tensors.
    """
    kind = model.config.model_type
    known = ARCHITECTURES[kind]
    writer = gguf.GGUFWriter(path, architecture or gguf.MODEL_ARCH_NAMES[known])
    sizes_to(writer, model.config)
    for name, value in settings.items():
        add_setting(writer, name, value)
    names = gguf.get_tensor_name_map(known, model.config.num_hidden_layers)
    tied = model.config.tie_word_embeddings
    for name, tensor in model.state_dict().items():
        if (tied and name in ("lm_head.weight", "embed_out.weight")) or name.endswith((".attn.bias", ".masked_bias")):
            continue
        stored, raw = quantised(converted(kind, name, tensor.numpy(), model.config), to)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), stored, raw_dtype=raw)
    for name, values in extra.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_setting(writer: gguf.GGUFWriter, name: str, value: Any) -> None:
    """Write one setting, with the type that its value has."""
    if isinstance(value, list):
        writer.add_array(name, value)
    elif isinstance(value, bool):
        writer.add_bool(name, value)
    elif isinstance(value, int):
        writer.add_uint32(name, value)
    elif isinstance(value, float):
        writer.add_float32(name, value)
    else:
        writer.add_string(name, value)
