"""Small models whose every weight counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from gptviz.model import Config, Transformer, build
from gptviz.model.parts.activations import ACTIVATIONS
from gptviz.model.parts.mlps import MLPS
from gptviz.model.parts.norms import NORMS
from gptviz.model.parts.positions import POSITIONS
from gptviz.model.parts.qk_norms import QK_NORMS
from gptviz.model.parts.residuals import RESIDUALS
from gptviz.text import BPETokenizer

VOCAB = 11
CONTEXT = 8
TinyModel = Callable[..., Path]
# Fields of models whose blocks read no more than what the block before left in the stream.
NO_SHORTCUTS = {"smear": 0, "mix_embedding": False, "backout": False, "value_gate": 0}


def tiny(**changes: Any) -> Config:
    """A config small enough for loops in Python, no two of its sizes equal."""
    sizes = {
        "vocab_size": VOCAB,
        "context_length": CONTEXT,
        "d_model": 12,
        "n_layer": 2,
        "n_head": 3,
        "d_mlp": 20,
    }
    return Config(**sizes | changes)


@torch.no_grad()
def scrambled(config: Config, seed: int = 0, std: float = 0.3) -> Transformer:
    """A model in evaluation mode whose biases and gains are random too: a part that is mixed up or
    left out shows.
    """
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
    flags = ("norm_gain", "norm_bias", "final_norm", "qkv_bias", "output_bias", "mlp_bias")
    mask = fixed.get("mask") or draw(st.sampled_from(["causal", "full"]))
    drawn = {
        **{flag: draw(st.booleans()) for flag in flags},
        "tied": tied,
        "unembed_bias": draw(st.booleans()),
        "residual": draw(st.sampled_from(["none", "norm-only", "plain", "post-norm", "pre-norm"])),
        "qk_norm": draw(st.sampled_from(["none", "shared"])),
        "norm": draw(st.sampled_from(sorted(NORMS))),
        "positions": draw(st.sampled_from(sorted(POSITIONS))),
        "mask": mask,
        "activation": draw(st.sampled_from(sorted(ACTIVATIONS))),
        "n_layer": draw(st.integers(0, 2)),
        "d_head": draw(st.sampled_from([None, 2, 6])),
        "d_mlp": draw(st.sampled_from([0, 20, None])),
        "dropout": draw(st.sampled_from([0.0, 0.5])),
    }
    return tiny(**drawn | fixed)


@st.composite
def families(draw: st.DrawFn, **fixed: Any) -> Config:
    """`configs`, with the axes in which other people's models differ too."""
    config = draw(configs(**fixed))
    crosses = config.n_encoder_layer > 0
    drawn = {
        "residual": draw(
            st.sampled_from(
                sorted(name for name, kind in RESIDUALS.items() if not (crosses and kind.parallel))
            )
        ),
        "qk_norm": draw(
            st.sampled_from(
                sorted(name for name, kind in QK_NORMS.items() if kind.crosses or not crosses)
            )
        ),
        "rotary_base": draw(st.sampled_from([10_000.0, 100.0])),
        "rotary_fraction": draw(st.sampled_from([1.0, 0.5])),
        "rotary_scaling": draw(st.sampled_from(["none", "linear", "llama3"])),
        "rotary_factor": draw(st.sampled_from([1.0, 4.0])),
        "rotary_context": 20,
        "embed_norm": draw(st.booleans()),
        "window": draw(st.sampled_from([None, 1, 3])) if config.mask == "causal" else None,
        "window_pattern": draw(st.sampled_from(["w", "fw"])),
        "window_rotary_base": draw(st.sampled_from([None, 500.0])),
        "norm_eps": draw(st.sampled_from([None, 0.1])),
        "n_kv_head": draw(st.sampled_from([None, 1])),
        "mlp": draw(st.sampled_from(sorted(MLPS))),
        "embed_scale": draw(st.sampled_from([1.0, 3.0])),
        "score_scale": draw(st.sampled_from([None, 1.0])),
        "score_cap": draw(st.sampled_from([None, 2.0])),
        "logit_cap": draw(st.sampled_from([None, 5.0])),
    }
    if not crosses:
        drawn |= {name: draw(st.sampled_from([0, 3])) for name in ("smear", "value_gate")}
        in_rows = not RESIDUALS[str(drawn["residual"])].parallel
        drawn |= {name: in_rows and draw(st.booleans()) for name in ("mix_embedding", "backout")}
    return replace(
        config, **drawn | {name: value for name, value in fixed.items() if name in drawn}
    )


def byte_letters(tokenizer: BPETokenizer) -> list[str]:
    """The tokens of a vocabulary of bytes, as a tokenizer.json writes them."""
    vocabulary = tokenizer._backend.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)
