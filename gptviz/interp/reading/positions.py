"""How positions differ from each other: the vectors, rotations and biases of each kind of position
encoding.

Every number comes from the position object itself, by the method that the forward pass calls: no
formula is written twice.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.labelled_array import Axis, LabelledArray, number_axis
from gptviz.model import IDENTITY, Config, Transformer
from gptviz.model.parts.part import sharing
from gptviz.model.parts.positions import (
    POSITIONS,
    ByDistance,
    PositionEncoding,
    Relative,
    rotary_frequencies,
)

# A browser draws a map of 512 × 512 cells without delay. Of a longer context, every second, third …
# position is left.
MOST_SHOWN = 512
LONGEST = 2_048


def is_fixed(kind: str) -> bool:
    """Whether positions of this kind need no training."""
    return POSITIONS[kind].acts_on != "nothing" and not POSITIONS[kind].is_trained


def has_vectors(kind: str) -> bool:
    """Whether positions of this kind are vectors (see `vectors`). Others that act on scores are
    numbers (see `score_bias`).
    """
    return POSITIONS[kind].acts_on in ("embedding", "query and key") or issubclass(
        POSITIONS[kind], Relative
    )


def shown_positions(config: Config, most: int | None = None) -> range:
    """The positions that are shown, of the first `most` or of all: all of up to 512; of more every
    second, third, … of the first 2,048.
    """
    length = min(config.context_length, most or LONGEST, LONGEST)
    return range(0, length, math.ceil(length / MOST_SHOWN))


def fixed_kinds(config: Config) -> tuple[str, ...]:
    """The kinds without training that a model of these sizes could have. Some kinds pair numbers
    and need an even size.
    """
    return tuple(
        kind for kind in POSITIONS if is_fixed(kind) and _with_positions(config, kind) is not None
    )


def _with_positions(config: Config, kind: str) -> Config | None:
    try:
        return replace(config, positions=kind, context_length=min(config.context_length, LONGEST))
    except ValueError:
        return None


def own_kind(model: Transformer) -> str:
    """The kind of positions that `model` uses; "none" also where they act in attention and the
    model has no block.
    """
    kind = model.config.positions
    if POSITIONS[kind].acts_on == "embedding" or len(model.blocks):
        return kind
    return "none"


def encoding(model: Transformer, kind: str, block: int = 0) -> PositionEncoding:
    """The model's own position object (of `block`, where each block has one), or a fresh one of a
    fixed kind at its sizes. A ValueError if the kind is learned and this model has not learned it,
    or the sizes of the model do not allow it.
    """
    if kind == own_kind(model):
        whose = model if POSITIONS[kind].acts_on == "embedding" else model.blocks[block].attention
        own = cast(PositionEncoding, whose.positions)  # type: ignore[union-attr]
        # What is shown by distance has no order of places; an edit that shuffles them changes which
        # distance counts.
        if isinstance(own, ByDistance):
            return sharing(own, order=None)
        return own
    if is_fixed(kind):
        config = _with_positions(model.config, kind)
    else:
        config = None
    if config is None:
        raise ValueError(f"this model has no {kind} positions to show")
    return POSITIONS[kind](config).to(model.embed.weight.device)


@torch.inference_mode()
def vectors(
    model: Transformer, kind: str, block: int = 0, most: int | None = None
) -> LabelledArray:
    """One vector per position [position, dimension], or per distance for relative positions; only
    of the first `most`, if that is given.

    - learned, sinusoidal: what is added to the embedding, [position, d_model]
    - rotary: the query (or key) whose pairs are all (1, 0), rotated to each position, [position,
      d_head]: first the
      cosines cos(p · θ_i), then the sines
    - relative: what a query of `block` is multiplied with at each distance, all heads joined,
      [distance, n_head · d_head];
      under a causal mask only the distances from 0 up are ever used, and only they are given

    Raises:
        ValueError: the kind has no vectors, or this model cannot show it (see `encoding`).
    """
    if not has_vectors(kind):
        raise ValueError(f"{kind} positions are not vectors")
    part = encoding(model, kind, block)
    at = slice(0, min(model.config.context_length, LONGEST))
    device = model.embed.weight.device
    places = list(shown_positions(model.config, most))
    name = "position"
    if isinstance(part, Relative):
        reach = min(part.reach, (most or LONGEST) - 1)
        first = 0 if model.config.mask == "causal" else -reach
        # [distance, H · d_head]
        joined = part.table.flatten(0, 1).T[part.reach + first : part.reach + reach + 1]
        step = math.ceil(len(joined) / MOST_SHOWN)
        values = joined[::step]
        places = list(range(first, reach + 1, step))
        name = "distance"
    elif part.acts_on == "embedding":
        zero = torch.zeros(1, at.stop, model.config.d_model, device=device)
        values = part.embed(zero, at, IDENTITY)[0, places]  # [position, d_model]
    else:
        half = model.config.head_size // 2
        pairs = (
            torch.tensor([1.0, 0.0], device=device)
            .repeat_interleave(half)
            .expand(1, 1, at.stop, 2 * half)
        )
        values = part.turn(pairs, at)[0, 0, places]  # [position, d_head]
    dimensions = number_axis("dimension", values.shape[1])
    return LabelledArray(
        values.float().cpu().numpy(), (Axis(name, tuple(map(str, places))), dimensions), "value"
    )


def similarity(table: LabelledArray) -> LabelledArray:
    """The cosine between any two rows of `table` [row, dimension]: [row, other row], from -1 to 1;
    NaN where a row is zero.
    """
    values = table.values.astype(np.float64)
    length = np.linalg.norm(values, axis=1, keepdims=True)
    unit = values / np.where(length > 0, length, np.nan)
    cosine = np.clip(unit @ unit.T, -1.0, 1.0).astype(np.float32)
    rows = table.axes[0]
    return LabelledArray(
        cosine, (rows, Axis(f"other {rows.name}", rows.labels)), "cosine similarity"
    )


def spread(square: LabelledArray) -> float:
    """The largest difference between values on one diagonal of `square` [T, T]: 0 where only the
    distance counts.
    """
    size = len(square.values)
    diagonals = (np.diagonal(square.values, offset) for offset in range(1 - size, size))
    return max(
        (float(np.ptp(d[~np.isnan(d)])) for d in diagonals if not np.isnan(d).all()), default=0.0
    )


def nearness(square: LabelledArray) -> tuple[float, float]:
    """The mean of `square` [T, T] over neighbouring places, and over places half the length apart;
    NaN for fewer than 3, and where all such values are.
    """
    values = square.values.astype(np.float64)
    if len(values) < 3:
        return math.nan, math.nan
    near, far = (np.diagonal(values, offset) for offset in (1, len(values) // 2))
    return _mean_known(near), _mean_known(far)


def _mean_known(values: NDArray[np.float64]) -> float:
    """The mean of the values that are not NaN; NaN if all are."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def head_reach(bias: LabelledArray) -> tuple[int | None, ...]:
    """The first distance at which the score of each head in `bias` [head, distance] is 1 or more
    lower; None if none is.
    """
    distances = [int(label) for label in bias.axes[1].labels]
    return tuple(
        next(
            (distance for distance, value in zip(distances, row, strict=True) if value <= -1), None
        )
        for row in bias.values
    )


@torch.inference_mode()
def score_bias(
    model: Transformer, kind: str = "alibi", block: int = 0, most: int | None = None
) -> LabelledArray:
    """The numbers that ALiBi, or another kind, adds to a score by the distance of query and key:
    [head, distance], of the first `most` distances or of all. A fixed kind is computed for this
    model's sizes; of a trained kind the weights of `block` are used. A ValueError if the kind does
    not act on scores only by distance, or this model cannot show it (see `encoding`).
    """
    if has_vectors(kind) or POSITIONS[kind].acts_on != "scores":
        raise ValueError(
            f"{kind} positions add no number to a score that depends only on the distance"
        )
    part = encoding(model, kind, block)
    length = min(model.config.context_length, LONGEST)
    heads = model.config.n_head
    last = slice(length - 1, length)
    nothing = torch.zeros(1, heads, 1, length, device=model.embed.weight.device)
    distances = list(shown_positions(model.config, most))
    bias = part.weigh(nothing, nothing, last)[0, :, 0].flip(-1)[:, distances]  # [head, distance]
    axes = (number_axis("head", heads), Axis("distance", tuple(map(str, distances))))
    return LabelledArray(bias.cpu().numpy(), axes, "added to the score")


def period(dimension: int, size: int) -> float:
    """After how many positions the wave in column `dimension` of a sinusoidal table of `size`
    columns repeats.
    """
    return 2 * math.pi * 10_000.0 ** (2 * (dimension // 2) / size)


def turn(model: Transformer, pair: int, block: int = 0) -> float:
    """After how many positions rotary positions have turned a pair of numbers once around; infinite
    for one they do not turn.

    Where the model itself has rotary positions, these are those of `block`.
    """
    if own_kind(model) == "rotary":
        config = model.config.in_block(block)
    else:
        config = model.config
    frequency = float(rotary_frequencies(config)[pair])
    if frequency:
        return 2 * math.pi / frequency
    return math.inf


def differ_by_block(config: Config) -> bool:
    """Whether blocks have positions of their own: learned ones, or turned at another speed in some
    of them.
    """
    kind = POSITIONS[config.positions]
    if kind.acts_on == "query and key" and not kind.is_trained:
        return len({config.in_block(block) for block in range(config.n_layer)}) > 1
    return kind.is_trained and kind.acts_on != "embedding"


def column(table: LabelledArray, index: int) -> LabelledArray:
    """One dimension of a table [position, dimension], over the positions: [position]."""
    return LabelledArray(table.values[:, index], table.axes[:1], table.unit)


def bound(table: LabelledArray) -> float:
    """The largest absolute value of a table, 1 if all are 0: the end of a colour scale that is
    symmetric about zero.
    """
    return float(np.abs(table.values).max()) or 1.0
