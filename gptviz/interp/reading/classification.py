"""Classification: what a classifier decides, what each token adds to the decision, and where it is
wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gptviz.interp.trace import run
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.model import Transformer
from gptviz.model.kinds import MODEL_KINDS
from gptviz.model.parts.heads import HEADS

from .next_token import probabilities

_AT_A_TIME = 8_192  # tokens


@dataclass(frozen=True)
class Judged:
    """The result of a classifier for one text."""

    logits: Float64Array  #: [n_label]
    probabilities: Float64Array  #: [n_label], their softmax

    @property
    def label(self) -> int:
        """The likeliest label; of equally likely ones the first."""
        return int(self.logits.argmax())


@dataclass(frozen=True)
class Classified(Judged):
    """The result of a classifier for one text, as an exact sum over its tokens: `logits =
    shares.sum(0) + bias`.
    """

    shares: Float64Array  #: [T, n_label], what each token adds to the logit of each label
    bias: Float64Array  #: [n_label], the logits without what the tokens add

    def labelled(self, tokens: Sequence[str], names: Sequence[str]) -> LabelledArray:
        """The shares [token, label] of the tokens shown as `tokens`, in units of logits."""
        return LabelledArray(
            self.shares, (Axis("token", tuple(tokens)), Axis("label", tuple(names))), "logit"
        )


def has_shares(model: Transformer) -> bool:
    """Whether the logits of a classifier are a sum over the tokens, so that `classify` can say what
    each of them adds.
    """
    return HEADS[model.config.head].has_shares


def judge(model: Transformer, ids: Tensor) -> Judged:
    """The labels that a classifier gives the text `ids` [T] without padding; a ValueError if there
    is no token, or too many.
    """
    _check(model)
    if not len(ids):
        raise ValueError("there is no token to classify")
    logits = run(model, ids[None], ["logits"])["logits"][0].double()
    return Judged(_numbers(logits), _numbers(logits.softmax(-1)))


def classify(model: Transformer, ids: Tensor) -> Classified:
    """The labels that `model` gives the text `ids` [T], which has no padding, and what each token
    adds to them. A ValueError as in `judge`, or if the logits are no sum over the tokens (see
    `has_shares`).
    """
    _check(model)
    if not has_shares(model):
        raise ValueError(
            f"what a token adds cannot be told: under a {model.config.head} head the logits are "
            "no sum over the tokens; "
            "`gptviz.interp.explaining.decision.left_out` reads the text without each of them "
            "instead"
        )
    if not len(ids):
        raise ValueError("there is no token to classify")
    trace = run(model, ids[None], ["shares", "logits"])
    logits = trace["logits"][0].double()
    bias = model.head.get_parameter("label.bias").detach()
    return Classified(
        _numbers(logits), _numbers(logits.softmax(-1)), _numbers(trace["shares"][0]), _numbers(bias)
    )


def label_probabilities(model: Transformer, ids: Tensor) -> Float64Array:
    """The probability of each label for many texts, [N, n_label]; arguments and errors as in
    `logits_of`.
    """
    return probabilities(logits_of(model, ids))


@torch.inference_mode()
def logits_of(model: Transformer, ids: Tensor) -> Float64Array:
    """The logit of each label for many texts `ids` [N, T], [N, n_label]; shorter texts are filled
    up with padding. A ValueError if the model is not a classifier, or the texts are longer than its
    context.
    """
    _check(model)
    rows = max(1, _AT_A_TIME // max(1, ids.shape[1]))
    batches = [np.empty((0, model.config.n_label))]
    for start in range(0, len(ids), rows):
        some = ids[start : start + rows].to(model.embed.weight.device)
        with progress.part(start, len(ids), len(some), step="text"):
            batches.append(_numbers(model(some)))
    return np.concatenate(batches)


def confusion(
    labels: Sequence[int], predicted: Sequence[int], names: Sequence[str]
) -> LabelledArray:
    """The confusion matrix [label, predicted]: how many texts with each label were given each
    label.
    """
    counts = np.zeros((len(names), len(names)), np.int64)
    np.add.at(counts, (np.asarray(labels, np.int64), np.asarray(predicted, np.int64)), 1)
    return LabelledArray(
        counts, (Axis("label", tuple(names)), Axis("predicted", tuple(names))), "texts"
    )


@dataclass(frozen=True)
class Mistake:
    """A text that the model gives a wrong label."""

    row: int  #: which of the texts it is
    label: int  #: its own label
    predicted: int  #: the label that the model gives it
    probability: float  #: of that label, by the model


def mistakes(
    labels: Sequence[int], probabilities: Float64Array, at_most: int = 20
) -> list[Mistake]:
    """The texts whose likeliest label by `probabilities` [N, n_label] is not that of `labels` [N],
    most confident ones first.
    """
    truth = np.asarray(labels, np.int64)
    predicted = probabilities.argmax(-1)
    confidence = probabilities.max(-1, initial=0.0)
    wrong = np.flatnonzero(predicted != truth)
    order = wrong[np.argsort(-confidence[wrong], kind="stable")][:at_most]
    return [
        Mistake(int(row), int(truth[row]), int(predicted[row]), float(confidence[row]))
        for row in order
    ]


def _check(model: Transformer) -> None:
    if model.config.kind != "classifier":
        raise ValueError(
            f"this model is not a classifier: it is {MODEL_KINDS[model.config.kind].with_article}"
        )


def _numbers(values: Tensor) -> Float64Array:
    numbers: Float64Array = values.double().cpu().numpy()
    return numbers
