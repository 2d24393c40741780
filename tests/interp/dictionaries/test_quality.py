"""How good a dictionary is: against sums by hand, and dictionaries that give back all or
nothing.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from gptviz.interp.changing.ablation import NOT_COUNTED, Rows, loss
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.dictionaries.quality import measure_quality, random_like
from gptviz.interp.trace import run
from tests.interp.dictionaries.test_dictionary import random, unchanged
from tests.tiny import scrambled, some_ids, tiny


def texts() -> list[Rows]:
    """Two texts of several rows; of the first the last two predictions do not count."""
    ids = [some_ids(9, batch=3, vocab=11, seed=seed) for seed in (0, 1)]
    ids[0][:, -2:] = NOT_COUNTED
    return [Rows(Inputs(each[:, :-1].clamp(min=0)), each[:, 1:]) for each in ids]


def test_a_dictionary_that_changes_nothing_gives_the_loss_to_the_bit() -> None:
    model = scrambled(tiny())
    rows = texts()
    found = measure_quality(model, unchanged(), rows)
    assert found.loss == found.loss_with == loss(model, rows)
    assert (found.explained, found.recovered, found.dead, found.l0) == (1, 1, 0, 12)


@torch.no_grad()
def test_losses_and_shares_are_those_of_a_loop_over_rows() -> None:
    model = scrambled(tiny())
    rows = texts()
    one = random(k=3)
    places = [slice(0, 6)] * 3 + [slice(0, 8)] * 3
    each = [
        (ids, targets)
        for text in rows
        for ids, targets in zip(text.reading.ids, text.targets, strict=True)
    ]
    streams = [
        run(model, ids[None], [one.tap])[one.tap][0, at]
        for (ids, _), at in zip(each, places, strict=True)
    ]
    mean = torch.cat(streams).mean(0)
    expected = dict.fromkeys(("loss", "loss_with", "loss_zero", "loss_mean", "loss_random"), 0.0)
    chance = random_like(one, mean, 3)
    puts = (
        lambda x: x,
        one.reconstruct,
        lambda x: 0 * x,
        lambda x: 0 * x + mean,
        chance.reconstruct,
    )
    for ids, targets in each:
        for name, put in zip(expected, puts, strict=True):
            logits = run(model, ids[None], ["logits"], edits={one.tap: put})["logits"][0]
            expected[name] += float(F.cross_entropy(logits, targets, reduction="sum"))
    found = measure_quality(model, one, rows)
    for name, total in expected.items():
        assert getattr(found, name) == pytest.approx(total / (3 * 6 + 3 * 8), rel=1e-5)
    x = torch.cat(streams)
    active = one.encode(x)
    assert found.l0 == pytest.approx(np.mean([int((row > 0).sum()) for row in active]))
    assert found.dead == np.mean([not any(column > 0) for column in active.T])
    assert found.explained == pytest.approx(
        float(1 - ((x - one.reconstruct(x)) ** 2).sum() / ((x - mean) ** 2).sum()), rel=1e-4
    )
    lost = found.loss_zero - found.loss
    assert found.recovered == pytest.approx(1 - (found.loss_with - found.loss) / lost)
    assert found.labelled().axes[0].labels == (
        "as it is",
        "the dictionary",
        "a random dictionary",
        "the mean",
        "zero",
    )
    np.testing.assert_array_equal(
        found.labelled().values[[1, 4]], [found.loss_with, found.loss_zero]
    )


def test_a_random_dictionary_is_as_large_and_as_sparse() -> None:
    x = torch.randn(50, 12, generator=torch.Generator().manual_seed(0))
    chance = random_like(random(), x.mean(0), 7)
    assert chance.encoder.shape == (30, 12)
    assert ((chance.encode(x) > 0).sum(-1) <= 7).all()
    torch.testing.assert_close(chance.decoder.norm(dim=-1), torch.ones(30))
