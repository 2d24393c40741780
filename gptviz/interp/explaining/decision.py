"""Decisions: what each word of a text adds to the logit of a label, or is worth to it, and which
single word decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gptviz.interp.reading.classification import Classified, Judged, logits_of
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.model import Transformer

BIAS = "(bias)"


@dataclass(frozen=True)
class Decision:
    """A logit, or the difference of two, as a sum over the tokens: `bias + shares.sum() =
    total`.
    """

    label: int  #: the label whose logit it is
    against: int | None  #: the label whose logit is subtracted, or None if nothing is
    bias: float  #: the part that no token adds
    shares: Float64Array  #: [T], what each token adds
    #: the logit or the difference as the model computed it, not as the sum of the shares
    total: float

    @property
    def sum(self) -> float:
        """The bias and all shares, added up."""
        return self.bias + float(self.shares.sum())

    def labelled(self, words: Sequence[str]) -> LabelledArray:
        """The bias, then what each of the `words` adds: [1 + T], in units of logits."""
        return LabelledArray(
            np.concatenate([[self.bias], self.shares]), (Axis("word", (BIAS, *words)),), "logit"
        )


def decision(classified: Classified, label: int, against: int | None = None) -> Decision:
    """The parts that add to the logit of `label`, or to its difference from the logit of another
    label.

    Only differences decide: a softmax stays the same when all logits grow by one number.
    """
    bias = _label_logits(classified.bias, label, against)
    shares = _label_logits(classified.shares, label, against)
    return Decision(
        label, against, float(bias), shares, float(_label_logits(classified.logits, label, against))
    )


@dataclass(frozen=True)
class Worth:
    """The amount that a logit, or the difference of two, loses when the text is read without one of
    its tokens.

    It can be measured for every head. What tokens are worth does not add up to the logit: two
    tokens that say the same are worth little each, since the other one is still there.
    """

    label: int  #: the label whose logit it is
    against: int | None  #: the label whose logit is subtracted, or None if nothing is
    #: [tokens left out], what is lost without each of them; negative where the logit grows
    of_tokens: Float64Array
    total: float  #: the logit or the difference for the whole text

    def labelled(self, words: Sequence[str]) -> LabelledArray:
        """The worth of each of the `words`, in units of logits."""
        return LabelledArray(self.of_tokens, (Axis("word", tuple(words)),), "logit")


def token_worth(
    judged: Judged, without: Float64Array, label: int, against: int | None = None
) -> Worth:
    """The worth of each token to the logit of `label`, or to its difference from the logit of the
    label `against`; `without` are the logits without each token, [tokens left out, n_label], from
    `left_out`.
    """
    total = float(_label_logits(judged.logits, label, against))
    return Worth(label, against, total - _label_logits(without, label, against), total)


def _label_logits(logits: Float64Array, label: int, against: int | None) -> Float64Array:
    """The column of a label in `logits` [..., n_label], less that of another one."""
    of_label: Float64Array = logits[..., label]
    if against is None:
        return of_label
    return of_label - logits[..., against]


def runner_up(judged: Judged, label: int) -> int:
    """The likeliest of the other labels."""
    return int(np.where(np.arange(len(judged.logits)) == label, -np.inf, judged.logits).argmax())


def left_out(model: Transformer, ids: Tensor, places: Sequence[int] | None = None) -> Float64Array:
    """The logit of every label for the text `ids` [T] without the token at each of the `places` in
    turn, by default each of them: [places, n_label]. A ValueError if the model is not a classifier,
    or the text has fewer than two tokens, so that nothing would be left.
    """
    if len(ids) < 2:
        raise ValueError("a text of a single token has nothing left without it")
    if places is None:
        gone = torch.arange(len(ids))
    else:
        gone = torch.tensor(places, dtype=torch.long)
    others = torch.arange(len(ids) - 1).expand(len(gone), -1)
    # of ids [places, T - 1]
    return logits_of(model, ids[(others + (others >= gone[:, None])).to(ids.device)])


def decisive_token(probabilities: Float64Array, without: Float64Array) -> tuple[int, int]:
    """The token without which the likeliest label is least likely, and the likeliest label without
    that token, from the probabilities of the whole text [n_label], and of the text without each of
    its tokens [T, n_label].
    """
    label = int(probabilities.argmax())
    token = int(without[:, label].argmin())
    return token, int(without[token].argmax())
