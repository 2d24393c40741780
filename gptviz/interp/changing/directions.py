"""Directions in the residual stream: found between two lists of texts, kept by name, and added to
the stream as an edit.

A direction has a vector for each block that it acts in, one spread long: the standard deviation of
the texts along it. Between two lists that are well apart, twice the vector leads from the one to
the other.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

import numpy as np
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.model import Config, Transformer
from gptviz.model.edited import Replacement
from gptviz.model.kinds import MODEL_KINDS
from gptviz.runs import fitted
from gptviz.settings.kinds import HowFound

from ..held_out import split_lists
from ..trace import run
from ..units.unit import Unit, unit
from .edit import (
    MOST_NUMBER,
    ZERO,
    Acts,
    StreamEdit,
    Values,
    Words,
    read_number,
    round_number,
    take_away,
)

# Of each list, the share of the texts at its end that the direction is tested on.
HELD_OUT = 0.25
DIRECTION: Final = "direction"
_PREFIX: Final = "direction."


@dataclass(frozen=True)
class Direction:
    """A direction that is kept."""

    #: what edits call it: the name that it was given and a digest of all that it was found by, such
    #: as "number-1f0c2a9b"
    name: str
    #: by block, [d_model], what strength 1 adds to the stream after it
    vectors: Mapping[int, Tensor]
    #: [block], after every block the share of held-out texts that lie on the right side of the
    #: middle; NaN if none were held out
    separation: Float64Array

    @property
    def separated(self) -> float:
        """The mean separation of the blocks that it acts in."""
        return float(np.mean([self.separation[block] for block in self.vectors]))

    def __mul__(self, strength: float) -> DirectionEdit:
        """The edit that adds it `strength` times to the stream."""
        return DirectionEdit(Unit(DIRECTION, called=self.name), round_number(strength), self)

    def edit(self, strength: float) -> str:
        """The text of this edit."""
        return (self * strength).text

    def labelled(self) -> LabelledArray:
        """The separation [line, block], beside that of a coin."""
        blocks = tuple(f"block {block}" for block in range(len(self.separation)))
        axes = Axis("what", ("held-out texts", "a coin")), Axis("block", blocks)
        return LabelledArray(
            np.stack([self.separation, np.full(len(blocks), 0.5)]), axes, "share on the right side"
        )


def contrast(
    toward: Tensor,
    away: Tensor,
    how: HowFound = "means",
    texts: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None,
) -> tuple[Tensor, Tensor]:
    """The direction between two lists of vectors [texts, block, d_model] after every block, one
    spread long [block, d_model], and its separation [block]. It is the difference of the means; or
    the first principal component, that of the differences of pairs where both lists have as many
    texts, else that of all texts around the middle of both means. It is found on the first three
    quarters of each list, and its separation is that of the others: see `held_out.split_lists`.

    Args:
        texts: what the vectors of each list are of. Vectors of equal texts stand on the same side;
            by default no two are of equal ones.

    Raises:
        ValueError: a list is empty, vectors are not all numbers, or both lists have the same mean.
    """
    lists = toward, away
    if not len(toward) or not len(away):
        raise ValueError("a direction needs a text on each side")
    if texts is None:
        texts = range(len(toward)), range(-len(away), 0)
    parts = split_lists(*texts, HELD_OUT)
    fitted, held = (
        [each[part[side]] for each, part in zip(lists, parts, strict=True)] for side in (0, 1)
    )
    means = [each.mean(0) for each in fitted]  # [block, d_model]
    middle = (means[0] + means[1]) / 2
    along = means[0] - means[1]
    if not along.isfinite().all() or not along.norm(dim=-1).all():
        raise ValueError(
            "both lists of texts end in the same place of the stream: there is no direction "
            "between them"
        )
    if how == "component":
        are_pairs = len(toward) == len(away)
        # [texts, block, d_model]
        if are_pairs:
            spanned = fitted[0] - fitted[1]
        else:
            spanned = torch.cat(fitted) - middle
        first = torch.linalg.svd(spanned.transpose(0, 1), full_matrices=False).Vh[:, 0]
        along = first * (first * along).sum(-1, keepdim=True).sign()
    along = along / along.norm(dim=-1, keepdim=True)
    spread = ((torch.cat(fitted) - middle) * along).sum(-1).std(0, correction=0)  # [block]
    right = [
        sign * ((each - middle) * along).sum(-1) > 0
        for each, sign in zip(held, (1, -1), strict=True)
    ]
    return along * spread[:, None], torch.cat(right).double().mean(0)


def stream_at_ends(model: Transformer, rows: Sequence[Tensor]) -> Tensor:
    """The stream of a decoder after every block at the last token of each row [T]: [rows, block,
    d_model]. A ValueError if the model is no decoder, or has no blocks.
    """
    if model.config.kind != "decoder" or not model.config.n_layer:
        raise ValueError(
            f"this model is {MODEL_KINDS[model.config.kind].with_article}: directions are found in "
            "the stream of decoders that have blocks"
        )
    taps = [f"blocks.{block}.resid_post" for block in range(model.config.n_layer)]
    traces = (run(model, row[None], taps, logits_at=slice(-1, None), last=1) for row in rows)
    ends_of_texts = [
        torch.stack([trace[tap][0, -1] for tap in taps])
        for trace in progress.report_each(traces, len(rows), "text")
    ]
    return torch.stack(ends_of_texts)


def keep(direction: Direction) -> None:
    """Keep a direction, so that its name is an edit. A ValueError if its vectors are 0 or no
    numbers, an OSError if it cannot be written.
    """
    for block, vector in direction.vectors.items():
        if not vector.isfinite().all() or not vector.any():
            raise ValueError(
                f"the vector of block {block} is no direction: its numbers are all 0, or not all "
                "numbers"
            )
    tensors = {f"{_PREFIX}{block}": vector for block, vector in direction.vectors.items()}
    fitted.keep(direction.name, tensors | {"separation": torch.from_numpy(direction.separation)})


def find_direction(name: str) -> Direction | None:
    """The direction that is kept under this name, or None."""
    tensors = fitted.kept_tensors(name)
    if "separation" not in tensors or not all(
        key == "separation" or key.removeprefix(_PREFIX).isdecimal() for key in tensors
    ):
        return None
    separation = tensors.pop("separation").double().numpy()
    return Direction(
        name,
        dict(sorted((int(key.removeprefix(_PREFIX)), each) for key, each in tensors.items())),
        separation,
    )


def open_direction(named: str | Direction, config: Config) -> Direction:
    """The direction of this name, or one that is open, for a model of this config; a ValueError if
    it is no name, is not kept here, or does not fit.
    """
    if isinstance(named, str):
        # not a path, which a link may have made up
        direction = find_direction(unit(_PREFIX + named, config).called)
    else:
        direction = named
    if direction is None:
        raise ValueError(
            f"there is no direction {named} on this machine: find it again under Residual stream, "
            "Steering, or read its file "
            "with gptviz steer --direction FILE"
        )
    require_fit(direction, config)
    return direction


def require_fit(direction: Direction, config: Config) -> None:
    """Refuse, with a ValueError, a direction that is not of a model of this config."""
    size = len(next(iter(direction.vectors.values())))
    last = max(direction.vectors)
    if size != config.d_model or last >= config.n_layer:
        raise ValueError(
            f"the direction {direction.name} is that of another model: it has {size:,} numbers, "
            f"and acts up to block {last}"
        )


class DirectionEdit(StreamEdit):
    """A direction that is added to the stream, or taken out of it:
    `direction.number-1f0c2a9b=2`.
    """

    becomes: ClassVar[Words] = {ZERO: " is taken out of the stream"}
    set_to = " is added to the stream, {:g} times its spread"

    @classmethod
    def act(cls, edits: Sequence[Self], values: Values) -> Acts:
        """As `Edit.act`."""
        for one in edits:
            direction = open_direction(one.opened or one.unit.called, values.model.config)
            for block, vector in direction.vectors.items():
                yield f"blocks.{block}.resid_post", one.add_vector(vector)

    def add_vector(self, vector: Tensor) -> Replacement:
        """The stream [B, T, d_model] with the `vector` added as often as the edit says, or without
        its part along the vector.
        """
        if self.to == ZERO:
            return take_away(vector, 1)
        to = self.number
        return lambda value, seen: value + to * vector.to(value) if to else value


def turned_round(text: str) -> str:
    """The edit that takes a direction away as often as this one adds it; of another edit the same
    one.
    """
    name, _, to = text.partition("=")
    number = read_number(to, MOST_NUMBER)
    if number and name.startswith(_PREFIX):
        return f"{name}={-number:g}"
    return text
