"""The page “Try it” of a gallery: decoders that the reader's browser computes by itself, with the
views of the app.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from gptviz.model import Config
from gptviz.runs import checkpoints
from gptviz.twin import writing

HERE = Path(__file__).parent
# By the field of a config, the parts that parts.js and decoder.js have.
PARTS = {
    "norm": ("layernorm",),
    "residual": ("none", "plain", "pre-norm", "post-norm"),
    "positions": ("none", "learned", "rotary"),
    "mask": ("causal", "full"),
    "activation": ("relu", "relu2", "gelu"),
    "qk_norm": ("none", "shared"),
}
TOKENIZERS = ("characters", "symbols", "cased words", "bpe")  # the kinds that tokenizers.js reads
# The fields whose every value is computed: sizes, what may be missing, numbers of parts, and what
# matters only in training.
_COMPUTED = {
    *(
        "vocab_size",
        "context_length",
        "d_model",
        "n_layer",
        "n_head",
        "d_head",
        "n_kv_head",
        "d_mlp",
        "norm_eps",
        "norm_gain",
    ),
    *(
        "norm_bias",
        "final_norm",
        "rotary_base",
        "qkv_bias",
        "output_bias",
        "mlp_bias",
        "unembed_bias",
        "tied",
        "score_scale",
    ),
    *(
        "dropout",
        "attention_dropout",
        "rotary_factor",
        "rotary_context",
        "window_pattern",
        "n_expert",
        "n_active",
        "expert_norm",
    ),
}


def computed_values(field: dataclasses.Field[Any]) -> list[Any] | None:
    """The values of a field of a config that the browser's forward pass computes; None for all."""
    if field.name in _COMPUTED:
        return None
    return list(PARTS.get(field.name, (field.default,)))


def missing_feature(folder: Path) -> str:
    """What the browser's forward pass lacks for the model in `folder`, in a few words; empty where
    it has all parts.
    """
    if checkpoints.is_adapter(folder):
        return "an adapter"
    config = checkpoints.read_config(folder)
    for field in dataclasses.fields(Config):
        value = getattr(config, field.name)
        computed = computed_values(field)
        if computed is not None and value not in computed:
            return f"{field.name} {value}"
    tokenizer = checkpoints.read_tokenizer(folder)
    if tokenizer.kind not in TOKENIZERS:
        return f"tokenizer {tokenizer.kind}"
    try:
        writing.tokens(tokenizer)
    except ValueError:  # the twin of a model reads the same byte pairs, and no others
        return "byte pairs other than GPT-2’s"
    return ""
