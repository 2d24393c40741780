"""What fewer bits do to a model: the error of every matrix, its outliers, and how far each guess
moves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray, as_json
from gptviz.machine import progress
from gptviz.machine.memory import FLOAT32
from gptviz.model import Config, Transformer, parameter_count
from gptviz.model.builder import parameter_shapes
from gptviz.model.quantising import Quantiser, matrices

from ..reading.next_token import logits_after

# A number of a matrix is an outlier if it is farther from 0 than this many times the root mean
# square of the matrix.
OUTLIER = 6.0
# How many numbers of a matrix are compared at a time, and how many logits: a large vocabulary has
# many at each place.
AT_ONCE = 2**22
MOST_LOGITS = 2**22
_IN_BLOCK = re.compile(r"(encoder\.)?blocks\.([0-9]+)\.(.+)\.weight")


@dataclass(frozen=True)
class MatrixError:
    """How far a matrix of one model is from that of another one."""

    name: str  #: of the matrix
    rows: int  #: its outputs
    width: int  #: its inputs
    #: the length of the difference beside that of the matrix, ‖Ŵ − W‖ / ‖W‖ (Frobenius); NaN where
    #: the matrix is 0 and the other is not
    relative: float
    largest: float  #: the largest difference of a single number
    spread: float  #: the root mean square of the matrix, √(mean w²)
    farthest: float  #: its number that is farthest from 0, in multiples of `spread`
    outliers: float  #: the share of its numbers beyond `OUTLIER` times `spread`
    bytes: int | None = None  #: that the other one takes, if that is known


@torch.no_grad()
def errors(
    whole: Transformer, other: Transformer, kept: Mapping[str, Quantiser] | None = None
) -> list[MatrixError]:
    """For each matrix, how far `other` is from `whole`, a model with the same matrices by name;
    with `kept`, how matrices are kept in few bits, only for these. A ValueError if the two models
    do not have the same matrices.
    """
    first = matrices(whole)
    second = matrices(other)
    if {name: matrix.shape for name, matrix in first.items()} != {
        name: matrix.shape for name, matrix in second.items()
    }:
        raise ValueError(
            "the two models do not have the same matrices: there is nothing to compare number by "
            "number"
        )
    names = list(first if kept is None else kept)
    each_error = (
        _error(name, first[name], second[name], None if kept is None else kept[name])
        for name in names
    )
    return list(progress.report_each(each_error, len(names), "matrix"))


def _error(name: str, own: Tensor, other: Tensor, kept: Quantiser | None) -> MatrixError:
    rows, width = own.shape
    parts = max(1, AT_ONCE // width)

    def pairs() -> zip[tuple[Tensor, Tensor]]:
        return zip(own.split(parts), other.split(parts), strict=True)

    squares = 0.0
    moved = 0.0
    largest = 0.0
    farthest = 0.0
    for a, b in pairs():
        a, difference = a.double(), b.double() - a.double()
        squares = squares + float(a.square().sum())
        moved = moved + float(difference.square().sum())
        largest = max(largest, float(difference.abs().max()))
        farthest = max(farthest, float(a.abs().max()))
    spread = math.sqrt(squares / own.numel())
    if spread:
        beyond = (
            sum(int((a.double().abs() > OUTLIER * spread).sum()) for a, _ in pairs()) / own.numel()
        )
    else:
        beyond = 0.0
    if squares:
        relative = math.sqrt(moved / squares)
    elif moved:
        relative = math.nan
    else:
        relative = 0.0
    size = None if kept is None else kept.size(rows, width)
    return MatrixError(
        name,
        rows,
        width,
        relative,
        largest,
        spread,
        farthest / spread if spread else 0.0,
        beyond,
        size,
    )


def by_block(errors: Sequence[MatrixError]) -> LabelledArray | None:
    """The relative errors as a table [block, matrix]; its last column is that of all these matrices
    of a block together. NaN where a block has no such matrix; None if no matrix stands in a block.
    """
    cells: dict[str, dict[str, MatrixError]] = {}
    for error in errors:
        if (place := _IN_BLOCK.fullmatch(error.name)) is not None:
            cells.setdefault(f"{'encoder ' if place[1] else ''}{place[2]}", {})[place[3]] = error
    if not cells:
        return None
    columns = tuple(dict.fromkeys(name for row in cells.values() for name in row))
    values = np.full((len(cells), len(columns) + 1), np.nan)
    for row, own in enumerate(cells.values()):
        for name, error in own.items():
            values[row, columns.index(name)] = error.relative
        weighed = [
            (error.relative, error.rows * error.width * error.spread**2) for error in own.values()
        ]
        squares = sum(square for _, square in weighed)
        values[row, -1] = (
            math.sqrt(sum(each**2 * square for each, square in weighed) / squares)
            if squares
            else math.nan
        )
    axes = Axis("block", tuple(cells)), Axis("matrix", (*columns, "all of the block"))
    return LabelledArray(values, axes, "relative error ‖Ŵ − W‖ / ‖W‖")


@torch.inference_mode()
def divergences(whole: Transformer, other: Transformer, ids: Sequence[int]) -> Float64Array:
    """How far the guess after each of the last tokens moves between two decoders of one vocabulary,
    in nats: the Kullback–Leibler divergence Σ p · ln(p / q), where p is what `whole` guesses and q
    what `other` does: [places], of all places, or, with a large vocabulary, of as many at the end
    as have `MOST_LOGITS` logits.
    """
    first = max(0, len(ids) - max(1, MOST_LOGITS // whole.config.vocab_size))
    before, after = (
        torch.as_tensor(logits_after(model, ids, slice(first, len(ids)))).double().log_softmax(-1)
        for model in (whole, other)
    )  # [places, vocab_size]
    # A token that is impossible before adds nothing.
    terms = torch.where(before > -torch.inf, before.exp() * (before - after), 0.0)
    values: Float64Array = terms.sum(-1).numpy()
    return values


@dataclass(frozen=True)
class Weight:
    """What the weights of a model take, in bytes. All that is not kept in few bits is counted in
    float32.
    """

    float32: int  #: of the model, with 4 bytes for each number
    kept: int  #: with fewer bits
    #: of a number that is kept in few bits, its share of the scales included; NaN without such
    #: numbers
    bits: float


def weight(config: Config, kept: Mapping[str, Quantiser]) -> Weight:
    """What a model of this config takes whose matrices are `kept` in few bits, by name. No weights
    are read.
    """
    shapes = parameter_shapes(config)
    numbers = sum(math.prod(shapes[name]) for name in kept)
    size = sum(each.size(shapes[name][0], shapes[name][1]) for name, each in kept.items())
    whole = FLOAT32 * parameter_count(config)
    return Weight(
        whole, whole - FLOAT32 * numbers + size, 8 * size / numbers if numbers else math.nan
    )


@dataclass(frozen=True)
class FewerBits:
    """What fewer bits do to a model."""

    edits: tuple[str, ...]  #: how its weights are kept, as texts
    weight: Weight  #: what they take
    #: those that are kept in few bits, the one that loses most first
    matrices: tuple[MatrixError, ...]
    text: str = ""  #: what the loss is over: "the prompt", "held-out data", or empty
    #: before and after, in nats, or None if there is no text
    loss: tuple[float, float] | None = None
    #: [places], how far each guess of the prompt moves, in nats, or None without a prompt
    divergence: Float64Array | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "edits": list(self.edits),
            "bytes": {"float32": self.weight.float32, "kept": self.weight.kept},
            "bits": self.weight.bits,
            "text": self.text or None,
            "loss": self.loss and dict(zip(("before", "after"), self.loss, strict=True)),
            "divergence": as_json(self.divergence),
            "matrices": as_json(self.matrices),
        }


def most_first(errors: Sequence[MatrixError]) -> tuple[MatrixError, ...]:
    """The same, those that lose most first; one without a relative error before all others."""
    return tuple(
        sorted(
            errors, key=lambda error: -math.inf if math.isnan(error.relative) else -error.relative
        )
    )
