"""Loss by place in the data: how hard each single row is, and what it changed that some rows had
been read in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from torch.nn import functional as F

from gptviz.labelled_array import Float64Array
from gptviz.machine import progress
from gptviz.model import Transformer

MOST_AT_ONCE = 4_096  # tokens of rows of one length that are read together


@torch.inference_mode()
def row_losses(
    model: Transformer, rows: Sequence[tuple[Sequence[int], Sequence[bool]]]
) -> Float64Array:
    """The mean of −ln p over the predictions that count in each row [row], in nats per token; NaN
    where none counts. A row has its tokens [T + 1], and whether the prediction of token t + 1
    counts [T].
    """
    means = np.full(len(rows), np.nan)
    by_length: dict[int, list[int]] = {}
    for number, (ids, _) in enumerate(rows):
        by_length.setdefault(len(ids), []).append(number)
    batches = [
        same[start : start + max(1, MOST_AT_ONCE // length)]
        for length, same in by_length.items()
        for start in range(0, len(same), max(1, MOST_AT_ONCE // length))
        if length > 1
    ]
    for numbers in progress.report_each(iter(batches), len(batches), "batch"):
        read = torch.tensor(
            [list(rows[number][0]) for number in numbers], device=model.embed.weight.device
        )
        # [B, T]
        counted = torch.tensor([list(rows[number][1]) for number in numbers], device=read.device)
        logits = model(read[:, :-1]).float()  # [B, T, vocab_size]
        nats = F.cross_entropy(
            logits.flatten(0, 1), read[:, 1:].flatten(), reduction="none"
        ).view_as(counted)
        means[numbers] = ((nats * counted).sum(1).double() / counted.sum(1)).cpu().numpy()
    return means


@dataclass(frozen=True)
class Difference:
    """How much higher the mean of some losses is than that of others."""

    means: tuple[float, float]  #: of both: the first and the others
    counts: tuple[int, int]  #: how many there are of both
    value: float  #: the first mean minus the other
    #: the standard error of that difference, √(s₁² / n₁ + s₂² / n₂); NaN if there are fewer than
    #: two of either
    error: float


def difference(
    some: Sequence[float] | Float64Array, others: Sequence[float] | Float64Array
) -> Difference:
    """The difference of the means of two groups of losses, some minus others, without NaN; NaN
    where a group is empty.
    """
    groups = [
        group[~np.isnan(group)]
        for group in (np.asarray(losses, np.float64) for losses in (some, others))
    ]
    means = [float(group.mean()) if len(group) else float("nan") for group in groups]
    spread = [
        float(group.var(ddof=1)) / len(group) if len(group) > 1 else float("nan")
        for group in groups
    ]
    return Difference(
        (means[0], means[1]),
        (len(groups[0]), len(groups[1])),
        means[0] - means[1],
        sqrt(sum(spread)),
    )
