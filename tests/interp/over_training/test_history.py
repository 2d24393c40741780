"""Histories: the sharpest change and half of the change are those that a loop over all snapshots
finds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.interp.over_training.history import History, in_order
from gptviz.interp.over_training.measures import MEASURES

LOSS = MEASURES["loss"]
VALUES = st.lists(st.lists(st.integers(-50, 50), min_size=2, max_size=2), min_size=3, max_size=12)


def history(values: list[list[float]], steps: list[int] | None = None) -> History:
    at = steps or [0, *(2**power for power in range(len(values) - 1))]
    return History.from_values(
        LOSS,
        {
            step: {str(i): value for i, value in enumerate(row)}
            for step, row in zip(at, values, strict=True)
        },
    )


@given(VALUES, st.booleans())
def test_no_change_between_neighbours_is_sharper_than_the_sharpest(
    values: list[list[int]], log_steps: bool
) -> None:
    found = history(values)
    change = found.sharpest(log_steps=log_steps)
    pairs = list(zip(found.steps, found.steps[1:], strict=False))[1 if log_steps else 0 :]
    distances = [
        math.log2(after / before) if log_steps else after - before for before, after in pairs
    ]
    usual = float(np.median(distances)) if distances else 0.0
    rates = {
        (before, series): abs(
            values[found.steps.index(after)][series] - values[found.steps.index(before)][series]
        )
        / max(distance, usual)
        for (before, after), distance in zip(pairs, distances, strict=True)
        for series in range(2)
    }
    if change is None:
        assert not any(rates.values())
        return
    assert rates[change.steps[0], change.series] == pytest.approx(max(rates.values()))
    assert change.values == (
        values[change.row][change.series],
        values[change.row + 1][change.series],
    )


def test_two_snapshots_that_happen_to_be_close_make_no_cliff() -> None:
    found = history([[0.0], [0.0], [1.0], [1.0], [0.8]], [1, 10, 100, 1_000, 1_001])
    change = found.sharpest()
    assert change is not None
    assert change.words == "rises from 0 at step 10 to 1 at step 100"


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8))
def test_at_half_of_the_change_a_straight_line_has_the_middle_value(values: list[float]) -> None:
    found = history([[value] for value in values])
    half = found.halfway()
    if half is None:
        assert values[0] == values[-1]
        return
    assert np.interp(half.step, found.steps, values) == pytest.approx(
        (values[0] + values[-1]) / 2, abs=1e-6
    )
    assert half.steps[0] <= half.step <= half.steps[1]


def test_what_changed_earlier_comes_first_and_what_never_changed_is_left_out() -> None:
    early, late, never = (
        history([[float(step >= since)] for step in range(6)], list(range(6)))
        for since in (2, 4, 9)
    )
    assert [one for one, _ in in_order([late, never, early])] == [early, late]
