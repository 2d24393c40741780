"""Decisions: why a classifier prefers one label to another, word by word, and on which word that hangs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gptviz.interp.classification import Classified, Numbers, probabilities
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Transformer

BIAS = "(bias)"


@dataclass(frozen=True)
class Decision:
    """Why a logit is what it is, or how far it lies above another one: `bias + shares.sum() = total`.

    Attributes:
        label: whose logit it is.
        against: the label it is held against; None where the logit stands alone.
        bias: what is left where no word says anything.
        shares: [T], what each token adds.
        total: the logit, or the difference of the two, as the model gave it; not computed from the shares.
    """

    label: int
    against: int | None
    bias: float
    shares: Numbers
    total: float

    @property
    def sum(self) -> float:
        """The bias and all shares, added up."""
        return self.bias + float(self.shares.sum())

    def labelled(self, words: Sequence[str]) -> LabelledArray:
        """The bias and what each of `words` adds to it [1 + T], in units of logits."""
        return LabelledArray(np.concatenate([[self.bias], self.shares]), (Axis("word", (BIAS, *words)),), "logit")


def decision(found: Classified, label: int, against: int | None = None) -> Decision:
    """What speaks for `label`, or for it and against another one. Only differences of logits decide: see `softmax`."""
    columns = np.stack([found.logits, found.bias, *found.shares])  # [2 + T, n_label]
    values = columns[:, label] if against is None else columns[:, label] - columns[:, against]
    return Decision(label, against, float(values[1]), values[2:], float(values[0]))


def runner_up(found: Classified, label: int) -> int:
    """The likeliest of the other labels."""
    return int(np.where(np.arange(len(found.logits)) == label, -np.inf, found.logits).argmax())


def left_out(model: Transformer, ids: Tensor) -> Numbers:
    """The probability of every label for the text `ids` [T] without each of its tokens in turn: [T, n_label].

    Raises:
        ValueError: the model is no classifier, or there are not two tokens, so that nothing would be left.
    """
    if len(ids) < 2:
        raise ValueError("a text of a single token has nothing left without it")
    others = ~torch.eye(len(ids), dtype=torch.bool, device=ids.device)  # [T, T]
    return probabilities(model, ids.expand(len(ids), -1)[others].view(len(ids), -1))


def turning(probabilities: Numbers, without: Numbers) -> tuple[int, int]:
    """The token on which the label hangs most, and the likeliest label without it.

    Args:
        probabilities: [n_label], of the whole text.
        without: [T, n_label], without each token: see `left_out`.
    """
    label = int(probabilities.argmax())
    token = int(without[:, label].argmin())
    return token, int(without[token].argmax())
