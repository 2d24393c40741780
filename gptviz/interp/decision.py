"""Decisions: what each word of a text adds to the logit of a label, and which single word decides."""

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
    """A logit, or the difference of two, as a sum over the tokens: `bias + shares.sum() = total`.

    Attributes:
        label: the label whose logit it is.
        against: the label whose logit is subtracted; None where nothing is.
        bias: the part that no token adds.
        shares: [T], what each token adds.
        total: the logit or the difference as the model computed it, not as the sum of the shares.
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
        """The bias, then what each of the `words` adds: [1 + T], in units of logits."""
        return LabelledArray(np.concatenate([[self.bias], self.shares]), (Axis("word", (BIAS, *words)),), "logit")


def decision(classified: Classified, label: int, against: int | None = None) -> Decision:
    """What adds to the logit of `label`, or to its difference from the logit of another label.

    Only differences decide: a softmax stays the same when all logits grow by one number.
    """
    columns = np.stack([classified.logits, classified.bias, *classified.shares])  # [2 + T, n_label]
    values = columns[:, label] if against is None else columns[:, label] - columns[:, against]
    return Decision(label, against, float(values[1]), values[2:], float(values[0]))


def runner_up(classified: Classified, label: int) -> int:
    """The likeliest of the other labels."""
    return int(np.where(np.arange(len(classified.logits)) == label, -np.inf, classified.logits).argmax())


def left_out(model: Transformer, ids: Tensor) -> Numbers:
    """The probability of every label for the text `ids` [T] without each of its tokens in turn: [T, n_label].

    Raises:
        ValueError: the model is not a classifier, or the text has fewer than two tokens, so that nothing would be left.
    """
    if len(ids) < 2:
        raise ValueError("a text of a single token has nothing left without it")
    others = ~torch.eye(len(ids), dtype=torch.bool, device=ids.device)  # [T, T]
    return probabilities(model, ids.expand(len(ids), -1)[others].view(len(ids), -1))


def decisive_token(probabilities: Numbers, without: Numbers) -> tuple[int, int]:
    """The token without which the likeliest label is least likely, and the likeliest label without that token.

    Args:
        probabilities: [n_label], for the whole text.
        without: [T, n_label], for the text without each of its tokens: see `left_out`.
    """
    label = int(probabilities.argmax())
    token = int(without[:, label].argmin())
    return token, int(without[token].argmax())
