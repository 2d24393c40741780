"""The loss of single rows, against one row and one token at a time, and a difference of means
against its textbook formula.
"""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
import torch

from gptviz.interp.reading.row_losses import difference, row_losses
from tests.tiny import CONTEXT, VOCAB, scrambled, tiny


def test_each_row_has_the_mean_surprise_of_its_tokens_that_count() -> None:
    model = scrambled(tiny()).eval()
    generator = torch.Generator().manual_seed(0)
    rows = []
    for length in (2, 5, CONTEXT + 1, 5, 3):
        ids = torch.randint(VOCAB, (length,), generator=generator).tolist()
        rows.append((ids, [place % 2 == 0 for place in range(length - 1)]))
    found = row_losses(model, rows)
    for loss, (ids, counted) in zip(found, rows, strict=True):
        surprises = []
        for place, counts in enumerate(counted):
            shares = model(torch.tensor([ids[: place + 1]]))[0, -1].detach().double().softmax(-1)
            surprises += [-math.log(float(shares[ids[place + 1]]))] if counts else []
        assert loss == pytest.approx(statistics.mean(surprises), rel=1e-4)


def test_a_row_in_which_nothing_counts_has_no_loss() -> None:
    model = scrambled(tiny()).eval()
    assert np.isnan(row_losses(model, [([1, 2, 3], [False, False]), ([1], [])])).all()


def test_the_difference_of_two_means_has_its_standard_error() -> None:
    some = np.array([1.0, 2.0, 4.0, np.nan])
    others = np.array([3.0, 5.0, 5.0, 9.0])
    found = difference(some, others)
    assert found.counts == (3, 4)
    assert found.value == pytest.approx(statistics.mean([1, 2, 4]) - statistics.mean([3, 5, 5, 9]))
    assert found.error == pytest.approx(
        math.sqrt(statistics.variance([1, 2, 4]) / 3 + statistics.variance([3, 5, 5, 9]) / 4)
    )
    assert math.isnan(difference(np.array([1.0]), others).error)
    assert math.isnan(difference(np.array([]), others).value)
