"""Models of `transformers` written as llama.cpp's converter writes them, with the `gguf`
library.
"""

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
    "mixtral": gguf.MODEL_ARCH.LLAMA,
    "qwen2_moe": gguf.MODEL_ARCH.QWEN2MOE,
    "qwen3_moe": gguf.MODEL_ARCH.QWEN3MOE,
    "olmoe": gguf.MODEL_ARCH.OLMOE,
    "granitemoe": gguf.MODEL_ARCH.GRANITE_MOE,
}
# The families whose queries and keys the converter turns.
TURNED = ("llama", "mixtral", "granitemoe")
Values = np.ndarray[Any, Any]


def permuted(rows: Values, heads: int) -> Values:
    """As the converter orders the rows of queries and keys of Llama: i and i + d_head / 2 side by
    side.
    """
    return (
        rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
        .swapaxes(1, 2)
        .reshape(rows.shape)
    )


def converted(kind: str, name: str, values: Values, config: Any) -> Values:
    """What the converter makes of one tensor."""
    if kind in TURNED and "q_proj" in name:
        return permuted(values, config.num_attention_heads)
    if kind in TURNED and "k_proj" in name:
        return permuted(values, config.num_key_value_heads)
    if kind == "gemma3_text" and name.endswith("norm.weight"):
        return values + 1
    if kind == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        return values.T
    if kind == "gpt_neox" and "query_key_value" in name:
        heads = config.num_attention_heads
        apart = values.reshape(heads, 3, values.shape[0] // heads // 3, *values.shape[1:])
        return np.concatenate(
            [apart[:, place].reshape(-1, *values.shape[1:]) for place in range(3)]
        )
    return values


def named(
    kind: str, name: str, values: Values, names: Any, config: Any
) -> list[tuple[str, Values]]:
    """What a tensor of `transformers` becomes in the file, by name: gate and up of the experts are
    two there.
    """
    if ".experts." in name:
        block = name.split(".")[2]
        if name.endswith("down_proj"):
            return [(f"blk.{block}.ffn_down_exps.weight", values)]
        gate, up = np.split(values, 2, axis=1)
        return [
            (f"blk.{block}.ffn_gate_exps.weight", gate),
            (f"blk.{block}.ffn_up_exps.weight", up),
        ]
    if name.endswith("router.weight") or (kind == "mixtral" and name.endswith("mlp.gate.weight")):
        return [(f"blk.{name.split('.')[2]}.ffn_gate_inp.weight", values)]
    if name.endswith("shared_expert_gate.weight"):
        values = values[0]
    own = names.get_name(name, try_suffixes=(".weight", ".bias"))
    return [(own, converted(kind, name, values, config))]


def quantised(values: Values, kind: gguf.GGMLQuantizationType) -> tuple[Values, Any]:
    """The values in this type where it can hold them (a matrix with rows that are long enough),
    else as they are.
    """
    size = gguf.GGML_QUANT_SIZES[kind][0]
    if values.ndim >= 2 and values.shape[1] % size == 0:
        return gguf.quantize(np.ascontiguousarray(values), kind), kind
    return np.ascontiguousarray(values), None


def sizes_to(writer: gguf.GGUFWriter, config: Any) -> None:
    """Write the settings of the model."""
    get = config.to_dict().get
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(
        get("intermediate_size") or get("n_inner") or 4 * config.hidden_size
    )
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
    if experts := getattr(config, "num_experts", getattr(config, "num_local_experts", None)):
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
    if get("moe_intermediate_size"):
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if get("shared_expert_intermediate_size"):
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    if get("residual_multiplier"):
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_logit_scale(config.logits_scaling)
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
    instead: Mapping[str, Values] = {},
) -> None:
    """Write a model.

    Args:
        to: the type its matrices are stored in.
        architecture: what the file calls the architecture; its own unless given.
        settings: others of the header, by name: texts, numbers, true or false, lists.
        extra: other tensors.
        instead: by name, what is written in the place of some of its own.
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
        if (tied and name in ("lm_head.weight", "embed_out.weight")) or name.endswith(
            (".attn.bias", ".masked_bias")
        ):
            continue
        for own, values in named(kind, name, tensor.numpy(), names, model.config):
            stored, raw = (
                (instead.get(own, values), None) if "ffn_gate_inp" in own else quantised(values, to)
            )  # routers stay in float32
            writer.add_tensor(own, stored, raw_dtype=raw)
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
