"""Small models whose every weight counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from gptviz.model import Config, Transformer, build
from gptviz.model.activations import ACTIVATIONS
from gptviz.model.norms import NORMS
from gptviz.model.positions import POSITIONS
from gptviz.model.residuals import RESIDUALS

VOCAB, CONTEXT = 11, 8
TinyModel = Callable[..., Path]


def tiny(**changes: Any) -> Config:
    """A config small enough for loops in Python, no two of its sizes equal."""
    sizes = {"vocab_size": VOCAB, "context_length": CONTEXT, "d_model": 12, "n_layer": 2, "n_head": 3, "d_mlp": 20}
    return Config(**sizes | changes)


@torch.no_grad()
def scrambled(config: Config, seed: int = 0, std: float = 0.3) -> Transformer:
    """A model in evaluation mode whose biases and gains are random too: a part that is mixed up or left out shows."""
    model = build(config, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        gain = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        parameter.normal_(gain, std, generator=generator)
    return model.eval()


def some_ids(length: int = CONTEXT, batch: int = 2, vocab: int = VOCAB, seed: int = 0) -> Tensor:
    """Random token ids [batch, length]."""
    return torch.randint(vocab, (batch, length), generator=torch.Generator().manual_seed(seed))


@st.composite
def configs(draw: st.DrawFn, **fixed: Any) -> Config:
    """Any combination of the axes of variation, at tiny sizes; `fixed` fields stay as given."""
    tied = draw(st.booleans())
    flags = ("norm_gain", "norm_bias", "final_norm", "qkv_bias", "output_bias", "mlp_bias", "qk_norm")
    drawn = {
        **{flag: draw(st.booleans()) for flag in flags},
        "tied": tied,
        "unembed_bias": False if tied else draw(st.booleans()),
        "residual": draw(st.sampled_from(sorted(RESIDUALS))),
        "norm": draw(st.sampled_from(sorted(NORMS))),
        "positions": draw(st.sampled_from(sorted(POSITIONS))),
        "mask": draw(st.sampled_from(["causal", "full"])),
        "activation": draw(st.sampled_from(sorted(ACTIVATIONS))),
        "n_layer": draw(st.integers(0, 2)),
        "d_head": draw(st.sampled_from([None, 2, 6])),
        "d_mlp": draw(st.sampled_from([0, 20, None])),
        "dropout": draw(st.sampled_from([0.0, 0.5])),
    }
    return tiny(**drawn | fixed)
