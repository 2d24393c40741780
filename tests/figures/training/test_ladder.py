"""The ladder: each bar begins where the one before it ends, and the last one is the sum of all."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.kit.theme import LIGHT
from gptviz.figures.training.ladder import level_by_level
from gptviz.labelled_array import Axis, LabelledArray


def test_bars_join_and_the_last_one_is_all_of_them_together() -> None:
    values = np.array([2.5, 2.501, 2.25, 1.75])
    figure = level_by_level(LabelledArray(values, (Axis("rung", ("start", "a", "<b>b</b>", "c")),), "loss"), LIGHT)
    (bars,) = (trace for trace in figure.data if trace.type == "bar")
    ends = np.array(bars.base) + np.array(bars.x)
    assert bars.base[0] == values[0]
    assert list(bars.base[1:-1]) == pytest.approx(ends[:-2])
    assert ends[-2] == pytest.approx(values[-1])
    assert (bars.base[-1], ends[-1]) == (values[0], pytest.approx(values[-1]))
    assert sum(bars.x[:-1]) == pytest.approx(bars.x[-1])
    assert len(set(figure.layout.yaxis.categoryarray)) == 5
    assert not any("<b>" in row for row in bars.y)
    low, high = figure.layout.xaxis.range
    assert low < values.min() < values.max() < high
