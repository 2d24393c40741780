"""The waves of a model of sums on a clock: against NumPy's Fourier transform, and on the shipped
model.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gptviz
from gptviz.interp.reading.waves import (
    NEURONS,
    accuracy,
    circle,
    power,
    powers,
    used_frequencies,
    waves,
)
from gptviz.text.datasets.tasks import Modular
from tests.tiny import scrambled, tiny


@pytest.mark.parametrize("p", [7, 12, 59])
def test_power_by_frequency_is_that_of_the_fourier_transform(p: int) -> None:
    columns = np.random.default_rng(0).normal(size=(p, 5))
    squares = np.square(np.abs(np.fft.rfft(columns, axis=0))).sum(1)[1:]
    if p % 2 == 0:
        squares[:-1] *= 2  # of all but the last, the negative frequency too
    np.testing.assert_allclose(power(columns), squares / squares.sum(), atol=1e-12)


@pytest.mark.parametrize("p", [5, 8])
def test_waves_are_perpendicular_and_of_length_1(p: int) -> None:
    rows = waves(p).reshape(-1, p)
    rows = rows[np.abs(rows).sum(1) > 0]
    assert len(rows) == p - 1
    np.testing.assert_allclose(rows @ rows.T, np.eye(p - 1), atol=1e-12)


def test_what_a_model_computes_is_taken_apart_as_a_loop_does_it() -> None:
    task = Modular(modulus=5)
    model = scrambled(tiny(vocab_size=7))
    neurons = np.empty((5, 5, model.config.d_mlp or 4 * model.config.d_model))
    logits = np.empty((5, 5, 7))
    for a in range(5):
        for b in range(5):
            seen: dict[str, torch.Tensor] = {}
            ids = torch.tensor([[a, 5, b, 6]])
            watch = gptviz.model.tap.Watch(
                (NEURONS,), lambda name, value, seen=seen: seen.__setitem__(name, value)
            )
            logits[a, b] = model(ids, tap=watch)[0, -1].detach().numpy()
            neurons[a, b] = seen[NEURONS][0, -1].detach().numpy()
    found = powers(model, task)
    np.testing.assert_allclose(found.values[1], power(neurons.reshape(5, -1)), rtol=1e-4)
    np.testing.assert_allclose(found.values[2], power(logits.reshape(25, 7)[:, :5].T), rtol=1e-4)
    assert accuracy(model, task) == np.mean(
        logits.argmax(-1) == np.add.outer(range(5), range(5)) % 5
    )
    assert accuracy(model, task, keep=range(1, 3)) == accuracy(model, task)


def test_the_shipped_model_adds_with_a_few_waves_and_with_no_others() -> None:
    lm = gptviz.load("modular")
    assert isinstance(lm.task, Modular)
    task = lm.task
    found = powers(lm.model, lm.task)
    few = used_frequencies(found)
    every = range(1, task.modulus // 2 + 1)
    assert len(few) <= 8
    assert accuracy(lm.model, task) > 0.999
    assert accuracy(lm.model, task, keep=few) > 0.99
    assert accuracy(lm.model, task, keep=set(every) - set(few)) < 0.1
    points = circle(lm.model, task, few[0]).values
    angles = np.unwrap(np.arctan2(points[:, 1], points[:, 0]))
    turns = (angles[-1] - angles[0]) / (2 * np.pi) * task.modulus / (task.modulus - 1)
    # the numbers go round the circle as often as the frequency says
    assert abs(turns) == pytest.approx(few[0], abs=0.2)
