"""The architectures of the seeds and of the shipped models, by name. Totals are at the sizes given here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .config import Config

_POST_NORM: dict[str, Any] = {
    "residual": "post-norm",
    "final_norm": False,
    "activation": "relu",
    "qkv_bias": False,
    "unembed_bias": True,
    "dropout": 0.1,
}

PRESETS: dict[str, Config] = {
    # The best use of a laptop's minutes: pre-norm without gains or biases, rotary positions, normalised queries and keys.
    "shakespeare": Config(
        vocab_size=65,
        context_length=256,
        d_model=128,
        n_layer=4,
        n_head=4,
        norm_gain=False,
        norm_bias=False,
        positions="rotary",
        activation="relu2",
        qkv_bias=False,
        output_bias=False,
        mlp_bias=False,
        tied=True,
        qk_norm=True,
        dropout=0.05,
    ),
    # 44,487 parameters: "Generative transformer from first principles in Julia" (L. Sinai, 2024).
    "generator": Config(vocab_size=71, context_length=64, d_model=32, n_layer=3, n_head=4, **_POST_NORM),
    # 309,185 parameters: "Understanding Transformer Architecture by Building GPT" (J. Ge, 2023).
    "ladder": Config(vocab_size=65, context_length=32, d_model=64, n_layer=6, n_head=8, **_POST_NORM),
    # Zero blocks: the first rung of the ladder.
    "bigram": Config(
        vocab_size=65, context_length=8, d_model=64, n_layer=0, positions="none", final_norm=False, unembed_bias=True
    ),
    # 29,953 parameters: the package README of the generator's author.
    "transformerslite-generator": Config(vocab_size=65, context_length=16, d_model=32, n_layer=2, n_head=4, **_POST_NORM),
    # GPT-2's pre-norm decoder at a size for two cores, over tokens learned from the corpus (H. Chang, 2024).
    "bpe": Config(vocab_size=2_000, context_length=128, d_model=256, n_layer=2, n_head=4, tied=True, dropout=0.1),
    # 124,439,808 parameters: GPT-2 small (Radford et al. 2019).
    "gpt2": Config(
        vocab_size=50_257,
        context_length=1_024,
        d_model=768,
        n_layer=12,
        n_head=12,
        activation="gelu-tanh",
        tied=True,
        dropout=0.1,
    ),
}


def preset(name: str, **changes: Any) -> Config:
    """The preset `name`, with the fields of `changes` in place of its own.

    `d_head` and `d_mlp` follow a changed `d_model` or `n_head` unless they are given too.

    Raises:
        ValueError: no preset of that name, or an impossible change.
    """
    if name not in PRESETS:
        raise ValueError(f"no preset named {name!r}; there are {', '.join(PRESETS)}")
    derived: dict[str, Any] = {"d_head": None, "d_mlp": None} if {"d_model", "n_head"} & set(changes) else {}
    return replace(PRESETS[name], **derived | changes)
