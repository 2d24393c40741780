"""Families with attention and MLP side by side: GPT-NeoX (Pythia), GPT-J, Phi."""

from __future__ import annotations

from typing import Any, ClassVar

from gptviz.model import Config

from ..given import Given
from .base import Family, rotary, rotary_fields, turned_share


class GPTNeoX(Family):
    """GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023): rotary positions on a quarter
    of each head.
    """

    model_type = "gpt_neox"
    title = "GPT-NeoX"
    architecture = "GPTNeoXForCausalLM"
    by_head = True
    parts: ClassVar = {
        "embed": "gpt_neox.embed_in",
        "attention_residual.norm": "input_layernorm",
        "attention.qkv": "attention.query_key_value",
        "attention.output": "attention.dense",
        "mlp_residual.norm": "post_attention_layernorm",
        "mlp.up": "mlp.dense_h_to_4h",
        "mlp.down": "mlp.dense_4h_to_h",
        "head.final_norm": "gpt_neox.final_layer_norm",
        "head.unembed": "embed_out",
    }
    layers = "gpt_neox.layers"
    table: ClassVar = {
        "vocab_size": ("vocab_size", 50_432),
        "context_length": ("max_position_embeddings", 2_048),
        "d_model": ("hidden_size", 6_144),
        "n_layer": ("num_hidden_layers", 44),
        "n_head": ("num_attention_heads", 64),
        "d_mlp": ("intermediate_size", 24_576),
        "norm_eps": ("layer_norm_eps", 1e-5),
        "activation": ("hidden_act", "gelu"),
        "tied": ("tie_word_embeddings", False),
    }

    def config(self, given: Given) -> Config:
        bias = given.switch("attention_bias", True)
        return Config(
            **self.read_config(given),
            residual="parallel" if given.switch("use_parallel_residual", True) else "pre-norm",
            positions="rotary",
            qkv_bias=bias,
            output_bias=bias,
            **rotary(given, share=0.25, outside=("rotary_emb_base", "rotary_pct")),
        )

    def fields(self, config: Config) -> dict[str, Any]:
        turning = rotary_fields(config)
        return self.write_config(config) | {
            "use_parallel_residual": config.residual == "parallel",
            "attention_bias": config.qkv_bias or config.output_bias,
            "rotary_emb_base": turning["rope_theta"],
            "rotary_pct": turned_share(config),
            "rope_scaling": turning["rope_scaling"],
        }


class GPTJ(Family):
    """GPT-J (Wang & Komatsuzaki 2021): one norm for attention and MLP, rotary positions turn
    neighbouring numbers.
    """

    model_type = "gptj"
    title = "GPT-J"
    architecture = "GPTJForCausalLM"
    neighbours = True
    parts: ClassVar = {
        "embed": "transformer.wte",
        "attention_residual.norm": "ln_1",
        "attention.qkv": ("attn.q_proj", "attn.k_proj", "attn.v_proj"),
        "attention.output": "attn.out_proj",
        "mlp.up": "mlp.fc_in",
        "mlp.down": "mlp.fc_out",
        "head.final_norm": "transformer.ln_f",
        "head.unembed": "lm_head",
    }
    layers = "transformer.h"
    table: ClassVar = {
        "vocab_size": ("vocab_size", 50_400),
        "context_length": ("n_positions", 2_048),
        "d_model": ("n_embd", 4_096),
        "n_layer": ("n_layer", 28),
        "n_head": ("n_head", 16),
        "norm_eps": ("layer_norm_epsilon", 1e-5),
        "activation": ("activation_function", "gelu_new"),
        "tied": ("tie_word_embeddings", False),
    }

    def config(self, given: Given) -> Config:
        read = self.read_config(given)
        # its unembedding has a bias, which a tied one has not
        given.allow_only("tie_word_embeddings", False)
        return Config(
            **read,
            d_mlp=given.our_number("d_mlp", "n_inner", needed=False) or 4 * read["d_model"],
            residual="parallel-one-norm",
            positions="rotary",
            rotary_fraction=given.whole_number("rotary_dim", 64)
            / max(1, read["d_model"] // read["n_head"]),
            qkv_bias=False,
            output_bias=False,
            unembed_bias=True,
        )

    def fields(self, config: Config) -> dict[str, Any]:
        return self.write_config(config) | {
            "n_inner": config.mlp_size,
            "rotary_dim": round(turned_share(config) * config.head_size),
            "tie_word_embeddings": False,
        }


class Phi(Family):
    """Phi 1 to 2 (Li et al. 2023): one norm for attention and MLP, rotary positions on a part of
    each head.
    """

    model_type = "phi"
    title = "Phi"
    architecture = "PhiForCausalLM"
    parts: ClassVar = {
        "embed": "model.embed_tokens",
        "attention_residual.norm": "input_layernorm",
        "attention.qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "attention.output": "self_attn.dense",
        "mlp.up": "mlp.fc1",
        "mlp.down": "mlp.fc2",
        "head.final_norm": "model.final_layernorm",
        "head.unembed": "lm_head",
    }
    table: ClassVar = {
        "vocab_size": ("vocab_size", 51_200),
        "context_length": ("max_position_embeddings", 2_048),
        "d_model": ("hidden_size", 2_048),
        "n_layer": ("num_hidden_layers", 24),
        "n_head": ("num_attention_heads", 32),
        "d_mlp": ("intermediate_size", 8_192),
        "norm_eps": ("layer_norm_eps", 1e-5),
        "activation": ("hidden_act", "gelu_new"),
    }

    def config(self, given: Given) -> Config:
        given.allow_only("qk_layernorm", False)
        given.allow_only("tie_word_embeddings", False)
        read = self.read_config(given)
        keys = given.our_number("n_kv_head", "num_key_value_heads", needed=False)
        return Config(
            **read,
            n_kv_head=None if keys in (None, read["n_head"]) else keys,
            residual="parallel-one-norm",
            positions="rotary",
            unembed_bias=True,
            **rotary(given, share=0.5),
        )

    def fields(self, config: Config) -> dict[str, Any]:
        return self.write_config(config) | {
            "num_key_value_heads": config.key_heads,
            "tie_word_embeddings": False,
            "partial_rotary_factor": turned_share(config),
            **rotary_fields(config),
        }
