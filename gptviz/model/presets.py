"""The architectures of published experiments and of the shipped models, by name. Totals are at the
sizes given here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gptviz.settings.known_names import name_known

from .config import Config

_POST_NORM: dict[str, Any] = {
    "residual": "post-norm",
    "final_norm": False,
    "activation": "relu",
    "qkv_bias": False,
    "unembed_bias": True,
    "dropout": 0.1,
}

_LADDER = Config(vocab_size=65, context_length=32, d_model=64, n_layer=6, n_head=8, **_POST_NORM)
# The rungs from the bigram to the ladder's GPT: each has what the one before it lacks.
_WITH_NORM = replace(_LADDER, n_layer=1)
_WITH_MLP = replace(_WITH_NORM, residual="plain")
_WITH_RESIDUAL = replace(_WITH_MLP, d_mlp=0)
_WITH_DROPOUT = replace(_WITH_RESIDUAL, residual="none")
_WITH_HEADS = replace(_WITH_DROPOUT, dropout=0.0)
_WITH_ATTENTION = replace(_WITH_HEADS, n_head=1, d_head=64)
_WITH_POSITIONS = replace(_WITH_ATTENTION, n_layer=0)
RUNGS = {
    "a bigram (each token guesses the next by itself)": replace(_WITH_POSITIONS, positions="none"),
    "+ positions": _WITH_POSITIONS,
    "+ one attention head": _WITH_ATTENTION,
    "+ eight heads": _WITH_HEADS,
    "+ dropout": _WITH_DROPOUT,
    "+ residual connections": _WITH_RESIDUAL,
    "+ an MLP": _WITH_MLP,
    "+ layer norms": _WITH_NORM,
    "+ six blocks (a GPT)": _LADDER,
}

# An encoder as "Attention Is All You Need" has it, and both its stacks.
_ENCODER: dict[str, Any] = {
    "residual": "post-norm",
    "final_norm": False,
    "positions": "sinusoidal",
    "activation": "relu",
    "dropout": 0.1,
}
_CLASSIFIER = Config(
    vocab_size=7_455,
    context_length=50,
    d_model=32,
    n_layer=1,
    n_head=4,
    mask="full",
    head="flatten",
    n_label=5,
    **_ENCODER,
)

# The size of the best model of a laptop's minutes.
_LAPTOP: dict[str, Any] = {
    "vocab_size": 65,
    "context_length": 256,
    "d_model": 192,
    "n_layer": 6,
    "n_head": 6,
    "positions": "rotary",
    "dropout": 0.2,
}
_NO_BIASES: dict[str, Any] = {"qkv_bias": False, "output_bias": False, "mlp_bias": False}

# A small pre-norm decoder for tasks with known answers.
_TASK = Config(vocab_size=100, context_length=15, d_model=64, n_layer=2, n_head=4)

PRESETS: dict[str, Config] = {
    # The best use of a laptop's minutes: pre-norm, rotary positions, normalised queries and keys
    # (benchmarks/ablation.md).
    "shakespeare": Config(**_LAPTOP, activation="relu2", tied=True, qk_norm="shared"),
    # The same size as two families of models that others publish have it: Llama (Touvron et al.
    # 2023; grouped key heads as in Llama 2), and GPT-NeoX (Black et al. 2022). Dropout, which
    # neither has, is that of the model they are compared with.
    "llama-tiny": Config(
        **_LAPTOP | _NO_BIASES,
        n_kv_head=2,
        d_mlp=600,
        norm="rmsnorm",
        mlp="gated",
        activation="silu",
        tied=True,
    ),
    "neox-tiny": Config(**_LAPTOP, residual="parallel", rotary_fraction=0.25),
    # 44,487 parameters: "Generative transformer from first principles in Julia" (L. Sinai, 2024).
    "generator": Config(
        vocab_size=71, context_length=64, d_model=32, n_layer=3, n_head=4, **_POST_NORM
    ),
    # 309,185 parameters: "Understanding Transformer Architecture by Building GPT" (J. Ge, 2023).
    "ladder": _LADDER,
    **{f"ladder-{number}": rung for number, rung in enumerate(RUNGS.values())},
    # The seed's bigram, with its short context.
    "bigram": Config(
        vocab_size=65,
        context_length=8,
        d_model=64,
        n_layer=0,
        positions="none",
        final_norm=False,
        unembed_bias=True,
    ),
    # 29,953 parameters: the package README of the generator's author.
    "transformerslite-generator": Config(
        vocab_size=65, context_length=16, d_model=32, n_layer=2, n_head=4, **_POST_NORM
    ),
    # 251,552 parameters: "Building a transformer in Julia" (L. Sinai, 2022).
    "classifier": _CLASSIFIER,
    # 57,282 parameters: the package README of the same author.
    "transformerslite-classifier": replace(
        _CLASSIFIER, vocab_size=1_000, context_length=10, n_layer=2, n_label=3, qkv_bias=False
    ),
    # An encoder and a decoder of some minutes on one core ("Transformers – How and Why They Work",
    # T. Wheeler, 2024).
    "seq2seq": Config(
        vocab_size=49,
        context_length=64,
        d_model=40,
        d_mlp=80,
        n_layer=2,
        n_encoder_layer=2,
        n_head=4,
        **_ENCODER,
    ),
    # 63,082,496 parameters: the base model of "Attention Is All You Need" (Vaswani et al. 2017,
    # table 3: 65 million).
    "vaswani": Config(
        vocab_size=37_000,
        context_length=512,
        d_model=512,
        n_layer=6,
        n_encoder_layer=6,
        n_head=8,
        tied=True,
        **_ENCODER,
    ),
    # GPT-2's pre-norm decoder at a size for two cores, over tokens learned from the corpus (H.
    # Chang, 2024).
    "bpe": Config(
        vocab_size=2_000,
        context_length=128,
        d_model=256,
        n_layer=2,
        n_head=4,
        tied=True,
        dropout=0.1,
    ),
    # Tasks with known answers (reversal: H. Chang, 2024).
    "reversal": replace(_TASK, n_layer=4),
    "reversal-no-positions": replace(_TASK, n_layer=4, positions="none"),
    "addition": replace(_TASK, vocab_size=12, context_length=11),
    "copy": replace(_TASK, vocab_size=32, context_length=31),
    # Two blocks with only attention: the least that an induction head takes (Elhage et al. 2021).
    "induction": replace(_TASK, vocab_size=64, context_length=64, d_mlp=0),
    # As in Nanda et al. 2023, but narrower: the snapshots of its training are shipped.
    "modular": replace(
        _TASK,
        vocab_size=61,
        context_length=4,
        d_model=48,
        d_head=12,
        d_mlp=192,
        n_layer=1,
        activation="relu",
    ),
    # Small enough to read head by head; the widths leave room for some twenty snapshots in 4 MB.
    "sentences": replace(_TASK, vocab_size=145, context_length=26, n_layer=3, d_mlp=32, tied=True),
    # A sentence has eight words: two blocks of two heads, so that a neuron and a head can be looked
    # at one by one.
    "jobs": replace(
        _TASK, vocab_size=22, context_length=7, d_model=32, n_head=2, d_mlp=32, tied=True
    ),
    # Two heads and no MLP: a norm that lets a 0 in the stream be a 0, and little else to read.
    "quotes": replace(
        _TASK,
        vocab_size=44,
        context_length=11,
        d_model=16,
        d_head=4,
        n_layer=1,
        n_head=2,
        d_mlp=0,
        norm="rmsnorm",
    ),
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
    """The preset `name` with the `changes` (see `change_config`); a ValueError where there is none,
    or a change is impossible.
    """
    if name not in PRESETS:
        raise ValueError(f"no preset named {name!r}{name_known(name, PRESETS)}")
    return change_config(PRESETS[name], **changes)


def change_config(config: Config, **changes: Any) -> Config:
    """`config` with its fields replaced by those of `changes`.

    `d_head` and `d_mlp` follow a changed `d_model` or `n_head` unless they are given too. A model
    without an MLP stays so.
    """
    if unknown := sorted(set(changes) - set(config.to_dict())):
        raise ValueError(
            f"unknown config field {unknown[0]!r:.80}{name_known(unknown[0], config.to_dict())}"
        )
    derived: dict[str, Any] = {"d_head": None} if {"d_model", "n_head"} & set(changes) else {}
    if "d_model" in changes and config.d_mlp:
        derived["d_mlp"] = None
    return replace(config, **derived | changes)
