"""The page “Try it” of a gallery: decoders that the reader's browser computes by itself, with the
views of the app.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from gptviz.model import Config
from gptviz.runs import checkpoints

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


def missing_feature(folder: Path) -> str:
    """What the browser's forward pass lacks for the model in `folder`, in a few words; empty where
    it has all parts.
    """
    if checkpoints.is_adapter(folder):
        return "an adapter"
    config = checkpoints.read_config(folder)
    for field in dataclasses.fields(Config):
        value = getattr(config, field.name)
        if value not in PARTS.get(field.name, (field.default,)) and field.name not in _COMPUTED:
            return f"{field.name} {value}"
    return ""
