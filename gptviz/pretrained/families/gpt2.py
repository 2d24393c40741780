"""GPT-2 and the families that are similar in positions, norms or biases: GPT-Neo, OPT, BLOOM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from gptviz.model import Config
from gptviz.model.config import MOST_BLOCKS

from .base import (
    Family,
    Given,
    ImportRefusedError,
    Match,
    by_head,
    ends,
    layer_types,
    linear,
    norm,
    same,
    stacked,
    window_pattern,
)


class GPT2(Family):
    """GPT-2 (Radford et al. 2019)."""

    model_type, title = "gpt2", "GPT-2"
    architecture = "GPT2LMHeadModel"
    table: ClassVar = {
        "vocab_size": ("vocab_size", 50_257),
        "context_length": ("n_positions", 1_024),
        "d_model": ("n_embd", 768),
        "n_layer": ("n_layer", 12),
        "n_head": ("n_head", 12),
        "norm_eps": ("layer_norm_epsilon", 1e-5),
        "activation": ("activation_function", "gelu_new"),
        "tied": ("tie_word_embeddings", True),
    }

    def config(self, given: Given) -> Config:
        given.only("scale_attn_by_inverse_layer_idx", False)
        given.only("scale_attn_weights", True)
        given.only("add_cross_attention", False)
        read = self.read(given)
        return Config(**read, d_mlp=given.ours("d_mlp", "n_inner", needed=False) or 4 * read["d_model"])

    def fields(self, config: Config) -> dict[str, Any]:
        return self.written(config) | {
            "n_inner": config.mlp_size,
            "resid_pdrop": config.dropout,
            "embd_pdrop": config.dropout,
            "attn_pdrop": config.attention_dropout,
        }

    def matches(self, config: Config) -> Iterator[Match]:
        yield from ends(config, "transformer.wte", "transformer.ln_f")
        yield same("positions.table.weight", "transformer.wpe.weight")
        for index in range(config.n_layer):
            ours, theirs = f"blocks.{index}", f"transformer.h.{index}"
            yield from norm(f"{ours}.attention_residual.norm", f"{theirs}.ln_1", bias=True)
            yield from linear(f"{ours}.attention.qkv", f"{theirs}.attn.c_attn", bias=True, turned=True)
            yield from linear(f"{ours}.attention.output", f"{theirs}.attn.c_proj", bias=True, turned=True)
            yield from norm(f"{ours}.mlp_residual.norm", f"{theirs}.ln_2", bias=True)
            yield from linear(f"{ours}.mlp.up", f"{theirs}.mlp.c_fc", bias=True, turned=True)
            yield from linear(f"{ours}.mlp.down", f"{theirs}.mlp.c_proj", bias=True, turned=True)


class GPTNeo(Family):
    """GPT-Neo (Black et al. 2021): scores are not divided by √d_head, and every other block sees only a window."""

    model_type, title = "gpt_neo", "GPT-Neo"
    architecture = "GPTNeoForCausalLM"
    table: ClassVar = {
        "vocab_size": ("vocab_size", 50_257),
        "context_length": ("max_position_embeddings", 2_048),
        "d_model": ("hidden_size", 2_048),
        "n_layer": ("num_layers", 24),
        "n_head": ("num_heads", 16),
        "norm_eps": ("layer_norm_epsilon", 1e-5),
        "activation": ("activation_function", "gelu_new"),
        "tied": ("tie_word_embeddings", True),
    }

    def config(self, given: Given) -> Config:
        read = self.read(given)
        kinds = given.optional("attention_layers")
        if kinds is None:
            kinds = _kinds(given.optional("attention_types") or [[["global", "local"], read["n_layer"] // 2]])
        return Config(
            **read,
            d_mlp=given.ours("d_mlp", "intermediate_size", needed=False) or 4 * read["d_model"],
            window=given.ours("window", "window_size", 256),
            window_pattern=window_pattern(kinds, "local", "global"),
            score_scale=1.0,
            qkv_bias=False,
        )

    def fields(self, config: Config) -> dict[str, Any]:
        kinds = layer_types(config, "local", "global")
        return self.written(config) | {
            "intermediate_size": config.mlp_size,
            "attention_types": [[[kind], 1] for kind in kinds],
            "attention_layers": kinds,
            "window_size": config.window or config.context_length,
        }

    def matches(self, config: Config) -> Iterator[Match]:
        yield from ends(config, "transformer.wte", "transformer.ln_f")
        yield same("positions.table.weight", "transformer.wpe.weight")
        for index in range(config.n_layer):
            ours, theirs = f"blocks.{index}", f"transformer.h.{index}"
            attention = f"{theirs}.attn.attention"
            qkv = (f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj")
            yield from norm(f"{ours}.attention_residual.norm", f"{theirs}.ln_1", bias=True)
            yield from stacked(f"{ours}.attention.qkv", qkv, config, bias=False)
            yield from linear(f"{ours}.attention.output", f"{attention}.out_proj", bias=True)
            yield from norm(f"{ours}.mlp_residual.norm", f"{theirs}.ln_2", bias=True)
            yield from linear(f"{ours}.mlp.up", f"{theirs}.mlp.c_fc", bias=True)
            yield from linear(f"{ours}.mlp.down", f"{theirs}.mlp.c_proj", bias=True)


def _kinds(types: Any) -> list[Any]:
    """The kind of each block, of groups of kinds and how many times each of them comes."""
    kinds = list[Any]()
    for pair in types if isinstance(types, list) else [types]:
        match pair:
            case [list() as group, int() as times] if 0 <= times * len(group) <= MOST_BLOCKS:
                kinds += group * times
            case _:
                raise ImportRefusedError(
                    f"config.json: attention_types is {types!r:.80}; it must list groups of kinds and numbers"
                )
    return kinds


class OPT(Family):
    """OPT (Zhang et al. 2022); its table of positions begins with two rows that are never read."""

    model_type, title = "opt", "OPT"
    architecture = "OPTForCausalLM"
    table: ClassVar = {
        "vocab_size": ("vocab_size", 50_272),
        "context_length": ("max_position_embeddings", 2_048),
        "d_model": ("hidden_size", 768),
        "n_layer": ("num_hidden_layers", 12),
        "n_head": ("num_attention_heads", 12),
        "d_mlp": ("ffn_dim", 3_072),
        "activation": ("activation_function", "relu"),
        "tied": ("tie_word_embeddings", True),
    }

    def config(self, given: Given) -> Config:
        read = self.read(given)
        given.only("do_layer_norm_before", True)
        given.only("word_embed_proj_dim", read["d_model"])
        given.only("_remove_final_layer_norm", False)
        given.only("layer_norm_elementwise_affine", True)
        bias = given.switch("enable_bias", True)
        return Config(**read, qkv_bias=bias, output_bias=bias, mlp_bias=bias)

    def fields(self, config: Config) -> dict[str, Any]:
        return self.written(config) | {
            "word_embed_proj_dim": config.d_model,
            "enable_bias": config.qkv_bias or config.output_bias or config.mlp_bias,
            "dropout": config.dropout,
        }

    def matches(self, config: Config) -> Iterator[Match]:
        yield from ends(config, "model.decoder.embed_tokens", "model.decoder.final_layer_norm")
        yield Match(
            "positions.table.weight",
            ("model.decoder.embed_positions.weight",),
            lambda theirs: theirs[0][2:],
            lambda ours: (torch.cat((torch.zeros_like(ours[:1]).repeat(2, 1), ours)),),
        )
        bias = config.qkv_bias
        for index in range(config.n_layer):
            ours, theirs = f"blocks.{index}", f"model.decoder.layers.{index}"
            attention = f"{theirs}.self_attn"
            qkv = (f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj")
            yield from norm(f"{ours}.attention_residual.norm", f"{theirs}.self_attn_layer_norm", bias=True)
            yield from stacked(f"{ours}.attention.qkv", qkv, config, bias=bias)
            yield from linear(f"{ours}.attention.output", f"{attention}.out_proj", bias=bias)
            yield from norm(f"{ours}.mlp_residual.norm", f"{theirs}.final_layer_norm", bias=True)
            yield from linear(f"{ours}.mlp.up", f"{theirs}.fc1", bias=bias)
            yield from linear(f"{ours}.mlp.down", f"{theirs}.fc2", bias=bias)


class Bloom(Family):
    """BLOOM (2022): ALiBi, and a norm after the embedding."""

    model_type, title = "bloom", "BLOOM"
    architecture = "BloomForCausalLM"
    table: ClassVar = {
        "vocab_size": ("vocab_size", 250_880),
        "context_length": ("seq_length", 2_048),
        "d_model": ("hidden_size", 64),
        "n_layer": ("n_layer", None),
        "n_head": ("n_head", None),
        "norm_eps": ("layer_norm_epsilon", 1e-5),
        "tied": ("tie_word_embeddings", True),
    }

    def config(self, given: Given) -> Config:
        given.only("apply_residual_connection_post_layernorm", False)
        older = given.ours("n_layer", "num_hidden_layers", 2), given.ours("n_head", "num_attention_heads", 8)
        read = self.read(given.changed(dict(zip(("n_layer", "n_head"), older, strict=True))))
        return Config(**read, activation="gelu-tanh", positions="alibi", embed_norm=True)

    def fields(self, config: Config) -> dict[str, Any]:
        return self.written(config)

    def matches(self, config: Config) -> Iterator[Match]:
        yield from ends(config, "transformer.word_embeddings", "transformer.ln_f")
        yield from norm("embed_norm", "transformer.word_embeddings_layernorm", bias=True)
        for index in range(config.n_layer):
            ours, theirs = f"blocks.{index}", f"transformer.h.{index}"
            attention = f"{theirs}.self_attention"
            yield from norm(f"{ours}.attention_residual.norm", f"{theirs}.input_layernorm", bias=True)
            yield from by_head(f"{ours}.attention.qkv", f"{attention}.query_key_value", config, bias=True)
            yield from linear(f"{ours}.attention.output", f"{attention}.dense", bias=True)
            yield from norm(f"{ours}.mlp_residual.norm", f"{theirs}.post_attention_layernorm", bias=True)
            yield from linear(f"{ours}.mlp.up", f"{theirs}.mlp.dense_h_to_4h", bias=True)
            yield from linear(f"{ours}.mlp.down", f"{theirs}.mlp.dense_4h_to_h", bias=True)
