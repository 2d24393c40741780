"""GPT-2 and the families that are similar in positions, norms or biases: GPT-Neo, OPT, BLOOM."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from gptviz.model import Config
from gptviz.model.config import MOST_BLOCKS

from ..given import Given, ImportRefusedError
from .base import Family, Match, layer_types, window_pattern


class GPT2(Family):
    """GPT-2 (Radford et al. 2019)."""

    model_type = "gpt2"
    title = "GPT-2"
    architecture = "GPT2LMHeadModel"
    turned = True
    parts: ClassVar = {
        "embed": "transformer.wte",
        "positions.table": "transformer.wpe",
        "attention_residual.norm": "ln_1",
        "attention.qkv": "attn.c_attn",
        "attention.output": "attn.c_proj",
        "mlp_residual.norm": "ln_2",
        "mlp.up": "mlp.c_fc",
        "mlp.down": "mlp.c_proj",
        "head.final_norm": "transformer.ln_f",
        "head.unembed": "lm_head",
    }
    layers = "transformer.h"
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
        given.allow_only("scale_attn_by_inverse_layer_idx", False)
        given.allow_only("scale_attn_weights", True)
        given.allow_only("add_cross_attention", False)
        read = self.read_config(given)
        return Config(
            **read, d_mlp=given.our_number("d_mlp", "n_inner", needed=False) or 4 * read["d_model"]
        )

    def fields(self, config: Config) -> dict[str, Any]:
        return self.write_config(config) | {
            "n_inner": config.mlp_size,
            "resid_pdrop": config.dropout,
            "embd_pdrop": config.dropout,
            "attn_pdrop": config.attention_dropout,
        }


class GPTNeo(Family):
    """GPT-Neo (Black et al. 2021): scores are not divided by √d_head, and every other block sees
    only a window.
    """

    model_type = "gpt_neo"
    title = "GPT-Neo"
    architecture = "GPTNeoForCausalLM"
    parts: ClassVar = GPT2.parts | {
        "attention.qkv": (
            "attn.attention.q_proj",
            "attn.attention.k_proj",
            "attn.attention.v_proj",
        ),
        "attention.output": "attn.attention.out_proj",
    }
    layers = GPT2.layers
    without_effect: ClassVar = {"attention_layers says it too": "attention_types"}
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
        read = self.read_config(given)
        kinds = given.optional("attention_layers")
        if kinds is None:
            kinds = _kinds(
                given.optional("attention_types") or [[["global", "local"], read["n_layer"] // 2]]
            )
        return Config(
            **read,
            d_mlp=given.our_number("d_mlp", "intermediate_size", needed=False)
            or 4 * read["d_model"],
            window=given.our_number("window", "window_size", 256),
            window_pattern=window_pattern(kinds, "local", "global"),
            score_scale=1.0,
            qkv_bias=False,
        )

    def fields(self, config: Config) -> dict[str, Any]:
        kinds = layer_types(config, "local", "global")
        return self.write_config(config) | {
            "intermediate_size": config.mlp_size,
            "attention_types": [[[kind], 1] for kind in kinds],
            "attention_layers": kinds,
            "window_size": config.window or config.context_length,
        }


def _kinds(types: Any) -> list[Any]:
    """The kind of each block, of groups of kinds and how many times each of them comes."""
    kinds = list[Any]()
    for pair in types if isinstance(types, list) else [types]:
        match pair:
            case [list() as group, int() as times] if 0 <= times * len(group) <= MOST_BLOCKS:
                kinds += group * times
            case _:
                raise ImportRefusedError(
                    f"config.json: attention_types is {types!r:.80}; it must list groups of kinds "
                    "and numbers"
                )
    return kinds


class OPT(Family):
    """OPT (Zhang et al. 2022); its table of positions begins with two rows that are never read."""

    model_type = "opt"
    title = "OPT"
    architecture = "OPTForCausalLM"
    parts: ClassVar = {
        "embed": "model.decoder.embed_tokens",
        "positions.table": "model.decoder.embed_positions",
        "attention_residual.norm": "self_attn_layer_norm",
        "attention.qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "attention.output": "self_attn.out_proj",
        "mlp_residual.norm": "final_layer_norm",
        "mlp.up": "fc1",
        "mlp.down": "fc2",
        "head.final_norm": "model.decoder.final_layer_norm",
        "head.unembed": "lm_head",
    }
    layers = "model.decoder.layers"
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
        read = self.read_config(given)
        given.allow_only("do_layer_norm_before", True)
        given.allow_only("word_embed_proj_dim", read["d_model"])
        given.allow_only("_remove_final_layer_norm", False)
        given.allow_only("layer_norm_elementwise_affine", True)
        bias = given.switch("enable_bias", True)
        return Config(**read, qkv_bias=bias, output_bias=bias, mlp_bias=bias)

    def fields(self, config: Config) -> dict[str, Any]:
        return self.write_config(config) | {
            "word_embed_proj_dim": config.d_model,
            "enable_bias": config.qkv_bias or config.output_bias or config.mlp_bias,
            "dropout": config.dropout,
        }

    def match(self, config: Config, ours: str, theirs: tuple[str, ...]) -> Match:
        if ours != "positions.table.weight":
            return super().match(config, ours, theirs)
        return Match(
            ours,
            theirs,
            lambda tensors: tensors[0][2:],
            lambda tensor: (torch.cat((torch.zeros_like(tensor[:1]).repeat(2, 1), tensor)),),
        )


class Bloom(Family):
    """BLOOM (2022): ALiBi, and a norm after the embedding."""

    model_type = "bloom"
    title = "BLOOM"
    architecture = "BloomForCausalLM"
    by_head = True
    parts: ClassVar = {
        "embed": "transformer.word_embeddings",
        "embed_norm": "transformer.word_embeddings_layernorm",
        "attention_residual.norm": "input_layernorm",
        "attention.qkv": "self_attention.query_key_value",
        "attention.output": "self_attention.dense",
        "mlp_residual.norm": "post_attention_layernorm",
        "mlp.up": "mlp.dense_h_to_4h",
        "mlp.down": "mlp.dense_4h_to_h",
        "head.final_norm": "transformer.ln_f",
        "head.unembed": "lm_head",
    }
    layers = "transformer.h"
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
        given.allow_only("apply_residual_connection_post_layernorm", False)
        # where both names are there, `transformers` takes the older one
        blocks = given.our_number("n_layer", "num_hidden_layers", given.fields.get("n_layer", 2))
        heads = given.our_number("n_head", "num_attention_heads", given.fields.get("n_head", 8))
        read = self.read_config(given.change_fields(n_layer=blocks, n_head=heads))
        return Config(**read, activation="gelu-tanh", positions="alibi", embed_norm=True)
