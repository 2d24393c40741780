"""Heads and neurons found by a token: which add to its logit, by what only their weights say.

What lies between a head or a neuron and the end is left out, as in `neurons.promoted` and
`head_weights.copying`: norms count by what is linear in them, and what the logits of all tokens
gain alike is taken away.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gptviz.model import Transformer
from gptviz.model.parts.heads import Unembed
from gptviz.model.parts.norms import Norm

from ..explaining.through_norms import read_through, written_through
from .head_weights import ROWS, matrices
from .neurons import columns
from .unit import Unit


class WritesFor(NamedTuple):
    """A head or a neuron that adds to the logit of a token."""

    unit: Unit  #: which it is
    #: what it adds: a neuron by an activation of 1, a head where it reads the embedding of the
    #: token `reads`
    value: float
    reads: int | None = None  #: the token by which the head adds most; None of a neuron


@torch.inference_mode()
def neurons_for(model: Transformer, token: int, most: int = 8) -> list[WritesFor]:
    """The neurons of all blocks that add most to the logit of a token, the largest first; a
    ValueError for a classifier.
    """
    wanted = _direction(model, token)
    writers = list[WritesFor]()
    for block in range(model.config.n_layer if model.config.mlp_size else 0):
        values, at = (wanted @ columns(model, block)).topk(min(most, model.config.mlp_size))
        writers += [
            WritesFor(Unit("mlp", block, i), value)
            for value, i in zip(values.tolist(), at.tolist(), strict=True)
        ]
    return sorted(writers, key=lambda writer: -writer.value)[:most]


@torch.inference_mode()
def heads_for(model: Transformer, token: int, most: int = 8) -> list[WritesFor]:
    """The heads of all blocks that add most to the logit of a token, each by the token that makes
    it add most, the largest first. A ValueError if the model does not guess tokens.
    """
    wanted = _direction(model, token)
    embed = model.embed.weight
    writers = list[WritesFor]()
    for block in range(model.config.n_layer):
        of = matrices(model, block)
        through = ((wanted @ of.output)[:, None] @ of.value)[:, 0]  # [H, d_model]
        parts = [
            through @ written_through(model.embed_norm, rows.float().T)
            for rows in embed.split(ROWS)
        ]
        values, reads = torch.cat(parts, 1).max(1)  # [H]
        of_heads = zip(values.tolist(), reads.tolist(), strict=True)
        writers += [
            WritesFor(Unit("attention", block, head), *both) for head, both in enumerate(of_heads)
        ]
    return sorted(writers, key=lambda writer: -writer.value)[:most]


def _direction(model: Transformer, token: int) -> Tensor:
    """What each number of the stream adds to the logit of a token beyond what it adds to those of
    all, [d_model].
    """
    if not isinstance(model.head, Unembed):
        raise ValueError("this model has no unembedding: nothing in it writes for a token")
    final = model.head.final_norm
    unembed = model.head.unembed.weight
    assert final is None or isinstance(final, Norm)
    return read_through(final, (unembed[token].float() - unembed.float().mean(0))[None])[0]
