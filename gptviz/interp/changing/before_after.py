"""The change of a guess by an edit: the probabilities before and after, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.model import Transformer
from gptviz.model.precision import exact_twin

from ..reading.next_token import probabilities
from .ablation import NOT_COUNTED, summed_loss
from .edit import Inputs


class Guess(NamedTuple):
    """Probabilities after a text, of all tokens or labels [n]; and the mean loss over what counts
    in it, in nats, NaN without.
    """

    probabilities: Float64Array
    loss: float


@torch.inference_mode()
def guess(model: Transformer, reading: Inputs) -> Float64Array:
    """The probabilities [vocab_size] of the token after the last one that is read, or [n_label] of
    a classifier's labels.
    """
    return probabilities(
        model(reading.ids, reading.source, logits_at=slice(-1, None)).flatten(0, -2)[-1]
    )


@torch.inference_mode()
def guess_and_loss(model: Transformer, reading: Inputs, targets: Tensor) -> Guess:
    """What `guess` gives after one text, and its mean cross-entropy by the `targets` [1, T] (or
    `NOT_COUNTED`), from one pass.
    """
    total, last = summed_loss(model, reading, targets)
    count = int((targets != NOT_COUNTED).sum())
    return Guess(probabilities(last), total / count if count else float("nan"))


@torch.inference_mode()
def rounding(model: Transformer, reading: Inputs) -> tuple[Change, float]:
    """What it changes that products of this model are rounded to 2 bytes a number or less
    (`gptviz.model.precision.rounds`): the guess after a text without and with it, and the largest
    difference of a logit.
    """
    exact, rounded = (
        each(reading.ids, reading.source, logits_at=slice(-1, None)).flatten(0, -2)[-1]
        for each in (exact_twin(model), model)
    )
    return Change(probabilities(exact), probabilities(rounded)), float(
        (rounded - exact).abs().max()
    )


@dataclass(frozen=True)
class Change:
    """A guess before and after an edit."""

    before: Float64Array  #: [n], the probabilities before
    after: Float64Array  #: [n], those after

    @property
    def divergence(self) -> float:
        """How far the guess has moved, in nats: the Kullback–Leibler divergence Σ before ·
        ln(before / after), 0 for the same.
        """
        seen = self.before > 0
        with np.errstate(divide="ignore"):
            return float(
                np.sum(self.before[seen] * (np.log(self.before[seen]) - np.log(self.after[seen])))
            )

    def likeliest_tokens(self, most: int) -> list[int]:
        """The `most` tokens or labels that are likeliest before or after, the likeliest before the
        edit first.
        """
        top = np.argsort(-np.maximum(self.before, self.after), kind="stable")[:most]
        return sorted(top.tolist(), key=lambda answer: -self.before[answer])

    def table(
        self, ids: Sequence[int], labels: Sequence[str], name: str = "token"
    ) -> LabelledArray:
        """The probabilities of these tokens or labels: [when, token], when being "before" and
        "after".
        """
        values = np.stack((self.before[list(ids)], self.after[list(ids)]))
        return LabelledArray(
            values, (Axis("when", ("before", "after")), Axis(name, tuple(labels))), "probability"
        )
