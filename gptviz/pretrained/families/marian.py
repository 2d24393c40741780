"""Marian: an encoder–decoder that translates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from gptviz.model import Config

from .base import Family, Given, ImportRefusedError, Match, linear, norm, same, stacked


class Marian(Family):
    """Marian's translators (Junczys-Dowmunt et al. 2018; OPUS-MT, Tiedemann & Thottingal 2020)."""

    model_type, title, architecture = "marian", "Marian", "MarianMTModel"
    # Both stacks share one embedding, which some files have three times; the tables of positions are computed.
    unused = ("embed_tokens.weight", "embed_positions.weight")
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
                "config.json: share_encoder_decoder_embeddings is false, so that sources and answers have a vocabulary each; of "
                "Marian models gptviz opens those that have one vocabulary for both"
            )
        read = self.read(given)
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
            given.only(name, allowed)
        if read["n_encoder_layer"] < 1:
            raise ImportRefusedError(f"config.json: encoder_layers is {read['n_encoder_layer']}; a Marian model has an encoder")
        return Config(
            **read,
            residual="post-norm",
            final_norm=False,
            positions="sines-first",
            embed_scale=math.sqrt(read["d_model"]) if given.switch("scale_embedding", False) else 1.0,
            tied=True,
            unembed_bias=True,
        )

    def fields(self, config: Config) -> dict[str, Any]:
        padding = config.padding or 0  # there must be one
        return self.written(config) | {
            "is_encoder_decoder": True,
            "decoder_vocab_size": config.vocab_size,
            "decoder_attention_heads": config.n_head,
            "decoder_ffn_dim": config.mlp_size,
            "scale_embedding": config.embed_scale != 1.0,
            "pad_token_id": padding,
            "decoder_start_token_id": padding,
            "forced_eos_token_id": None,
        }

    def matches(self, config: Config) -> Iterator[Match]:
        yield same("embed.weight", "model.shared.weight")
        for stack, n_layer in (("encoder", config.n_encoder_layer), ("decoder", config.n_layer)):
            at = "encoder." if stack == "encoder" else ""
            for index in range(n_layer):
                yield from _block(f"{at}blocks.{index}", f"model.{stack}.layers.{index}", config, crosses=not at)
        yield Match("head.unembed.bias", ("final_logits_bias",), lambda rows: rows[0][0], lambda bias: (bias[None],))


def _block(ours: str, theirs: str, config: Config, *, crosses: bool) -> Iterator[Match]:
    """A block of either stack; that of the decoder `crosses`: it has cross-attention to the encoder."""
    own = f"{theirs}.self_attn"
    qkv = (f"{own}.q_proj", f"{own}.k_proj", f"{own}.v_proj")
    yield from stacked(f"{ours}.attention.qkv", qkv, config, bias=True)
    yield from linear(f"{ours}.attention.output", f"{own}.out_proj", bias=True)
    yield from norm(f"{ours}.attention_residual.norm", f"{own}_layer_norm", bias=True)
    if crosses:
        cross = f"{theirs}.encoder_attn"
        yield from linear(f"{ours}.cross_attention.q", f"{cross}.q_proj", bias=True)
        for kind in ("weight", "bias"):
            yield Match(
                f"{ours}.cross_attention.kv.{kind}",
                (f"{cross}.k_proj.{kind}", f"{cross}.v_proj.{kind}"),
                lambda tensors: torch.cat(list(tensors)),
                lambda tensor: tensor.chunk(2),
            )
        yield from linear(f"{ours}.cross_attention.output", f"{cross}.out_proj", bias=True)
        yield from norm(f"{ours}.cross_residual.norm", f"{cross}_layer_norm", bias=True)
    yield from linear(f"{ours}.mlp.up", f"{theirs}.fc1", bias=True)
    yield from linear(f"{ours}.mlp.down", f"{theirs}.fc2", bias=True)
    yield from norm(f"{ours}.mlp_residual.norm", f"{theirs}.final_layer_norm", bias=True)
