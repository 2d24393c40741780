"""The anatomy of a model, only from its config: every step from token ids to logits as a box, and
what flows between them.

A box has a description and an equation, the values of a pass that are its output (named as in
`model.tap.GLOSSARY`), its weights, and the lines of the project that compute it. `values` gives any
of its tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gptviz.interp.trace import Trace
from gptviz.model import Config, Transformer

from .boxes import Anatomy, Arrow, Box, BoxTensor, SourceLines
from .whole import Whole

__all__ = ["Anatomy", "Arrow", "Box", "BoxTensor", "SourceLines", "anatomy", "values"]


def anatomy(config: Config, tokens: int, source: int = 1) -> Anatomy:
    """The anatomy of a model whose decoder reads so many tokens, and an encoder a source of so
    many; no memory is allocated.
    """
    return Whole(config, tokens, source).draw_all()


@torch.inference_mode()
def values(model: Transformer, trace: Trace, piece: BoxTensor) -> Tensor:
    """The tensor `piece.shape` that a piece stands for, in a model and a pass of it over one
    text.
    """
    if piece.kind == "activation":
        value = trace[piece.name]
        if value.ndim == len(piece.shape):
            return value
        return value[0]
    if piece.kind == "fixed":
        return model.get_buffer(piece.name)
    weight = model.get_parameter(piece.name)
    if piece.rows is None:
        return weight
    return weight[slice(*piece.rows)]
