"""The ticks of a logarithmic axis, whatever it spans."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.figures.kit.axes import log_ticks


@given(st.floats(1e-6, 1e6), st.floats(1.002, 1e9))
def test_every_axis_has_some_ticks_within_it_and_not_too_many(low: float, ratio: float) -> None:
    ticks = log_ticks(low, low * ratio)
    assert 2 <= len(ticks) <= 8
    assert ticks == sorted(set(ticks))
    assert low * (1 - 1e-9) <= ticks[0]
    assert ticks[-1] <= low * ratio * (1 + 1e-9)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.25, 1.25, [0.4, 0.6, 0.8, 1.0, 1.2]),
        (0.13, 1.25, [0.2, 0.5, 1]),
        (0.1, 3.0, [0.1, 0.2, 0.5, 1, 2]),
        (0.02, 30.0, [0.1, 1, 10]),
        (1e-6, 100.0, [1e-6, 1e-4, 1e-2, 1, 100]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    ticks = log_ticks(low, high)
    assert len(ticks) == len(expected)
    assert all(math.isclose(tick, other) for tick, other in zip(ticks, expected, strict=True))
