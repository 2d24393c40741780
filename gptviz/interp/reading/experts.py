"""Mixtures of experts: which experts the router chooses for each token, and how often each is
chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, LabelledArray, number_axis
from gptviz.model import Config, Transformer

from ..trace import run

SHARED = "shared"


def routing(model: Transformer, ids: Tensor, labels: Sequence[str]) -> LabelledArray:
    """How much each expert counts for each of the tokens `ids` [T], [block, token, expert]: 0 where
    the router did not choose it. Experts have their number; a shared one is last. A ValueError if
    the model has no experts.
    """
    config = model.config
    if not config.experts or not config.n_layer:
        raise ValueError("this model has no experts: its MLPs are whole")
    trace = run(model, ids[None], ["blocks.*.mlp.experts"], logits_at=slice(-1, None))
    weights = torch.stack(
        [trace[f"blocks.{block}.mlp.experts"][0] for block in range(config.n_layer)]
    )
    experts = Axis(
        "expert", (*map(str, range(config.n_expert)), *([SHARED] if config.d_shared else []))
    )
    axes = number_axis("block", config.n_layer), Axis("token", tuple(labels)), experts
    return LabelledArray(weights.float().cpu().numpy(), axes, "weight of the expert")


def load(weights: LabelledArray) -> LabelledArray:
    """The share of tokens that each expert is chosen for [block, expert], of `routing`."""
    block, _, expert = weights.axes
    return LabelledArray(
        (np.asarray(weights.values) != 0).mean(1), (block, expert), "share of the tokens"
    )


def even_load(config: Config) -> float:
    """The share of tokens that each expert would be chosen for if all were chosen alike."""
    return config.n_active / config.n_expert


class Taken(NamedTuple):
    """A token that an expert is chosen for."""

    token: str  #: its name
    times: int  #: how often the expert is chosen for it
    of: int  #: how often it stands in the text
    weight: float  #: the mean weight where it is chosen


def tokens_of_expert(weights: LabelledArray, block: int, expert: int) -> list[Taken]:
    """The tokens that an expert of a block is chosen for, the most frequent first, of `routing`."""
    column = np.asarray(weights.values)[block, :, expert]
    labels = np.array(weights.axes[1].labels, dtype=object)
    tokens = []
    for token in dict.fromkeys(labels.tolist()):
        here = column[labels == token]
        if (count := int((here != 0).sum())) > 0:
            tokens.append(Taken(token, count, len(here), float(here[here != 0].mean())))
    return sorted(tokens, key=lambda token: (-token.times, -token.weight))
