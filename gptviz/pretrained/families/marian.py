"""Marian: an encoder–decoder that translates."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gptviz.model import Config

from ..given import Given, ImportRefusedError
from .base import Family, Match


class Marian(Family):
    """Marian's translators (Junczys-Dowmunt et al. 2018; OPUS-MT, Tiedemann & Thottingal 2020)."""

    model_type = "marian"
    title = "Marian"
    architecture = "MarianMTModel"
    # Both stacks share one embedding, which some files have three times; the tables of positions
    # are computed.
    unused = ("embed_tokens.weight", "embed_positions.weight")
    parts: ClassVar = {
        "embed": "model.shared",
        "attention.qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "attention.output": "self_attn.out_proj",
        "attention_residual.norm": "self_attn_layer_norm",
        "cross_attention.q": "encoder_attn.q_proj",
        "cross_attention.kv": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
        "cross_attention.output": "encoder_attn.out_proj",
        "cross_residual.norm": "encoder_attn_layer_norm",
        "mlp.up": "fc1",
        "mlp.down": "fc2",
        "mlp_residual.norm": "final_layer_norm",
        "head.unembed": "final_logits",
    }
    layers = "model.{}.layers"
    table: ClassVar = {
        "vocab_size": ("vocab_size", 58_101),
        "context_length": ("max_position_embeddings", 1_024),
        "d_model": ("d_model", 1_024),
        "n_layer": ("decoder_layers", 12),
        "n_encoder_layer": ("encoder_layers", 12),
        "n_head": ("encoder_attention_heads", 16),
        "d_mlp": ("encoder_ffn_dim", 4_096),
        "activation": ("activation_function", "gelu"),
        "padding": ("pad_token_id", 58_100),
    }

    def config(self, given: Given) -> Config:
        self.require_architecture(given, "translates")
        if not given.switch("share_encoder_decoder_embeddings", True):
            raise ImportRefusedError(
                "config.json: share_encoder_decoder_embeddings is false, so that sources and "
                "answers have a vocabulary each; of "
                "Marian models gptviz opens those that have one vocabulary for both"
            )
        read = self.read_config(given)
        for name, allowed in {
            "decoder_attention_heads": read["n_head"],
            "decoder_ffn_dim": read["d_mlp"],
            "decoder_vocab_size": read["vocab_size"],
            "decoder_start_token_id": read["padding"],
            "tie_word_embeddings": True,
            "static_position_embeddings": True,
            "normalize_before": False,
            "normalize_embedding": False,
            "add_final_layer_norm": False,
        }.items():
            given.allow_only(name, allowed)
        if read["n_encoder_layer"] < 1:
            raise ImportRefusedError(
                f"config.json: encoder_layers is {read['n_encoder_layer']}; a Marian model has an "
                "encoder"
            )
        return Config(
            **read,
            residual="post-norm",
            final_norm=False,
            positions="sines-first",
            embed_scale=math.sqrt(read["d_model"])
            if given.switch("scale_embedding", False)
            else 1.0,
            tied=True,
            unembed_bias=True,
        )

    def fields(self, config: Config) -> dict[str, Any]:
        padding = config.padding or 0  # there must be one
        return self.write_config(config) | {
            "is_encoder_decoder": True,
            "decoder_vocab_size": config.vocab_size,
            "decoder_attention_heads": config.n_head,
            "decoder_ffn_dim": config.mlp_size,
            "scale_embedding": config.embed_scale != 1.0,
            "pad_token_id": padding,
            "decoder_start_token_id": padding,
            "forced_eos_token_id": None,
        }

    def match(self, config: Config, ours: str, theirs: tuple[str, ...]) -> Match:
        if ours != "head.unembed.bias":
            return super().match(config, ours, theirs)
        return Match(
            ours, ("final_logits_bias",), lambda tensors: tensors[0][0], lambda bias: (bias[None],)
        )
