"""Charts of numbers over training: every point is drawn at its step, and what an axis has no place for is left out."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.figures.training.over_training import MOST_NAMED, MOST_PANELS, Look, lines, panels
from gptviz.labelled_array import Axis, LabelledArray

STEPS = (0, 1, 2, 8)


def table(series: int, *, low: float = 0.5) -> LabelledArray:
    values = np.random.default_rng(0).uniform(low, 1, (len(STEPS), series))
    names = tuple(f"series {i}" for i in range(series))
    return LabelledArray(values, (Axis("step", tuple(map(str, STEPS))), Axis("series", names)), "nats")


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("log_steps", [False, True])
def test_each_series_is_drawn_at_its_steps_in_one_chart_and_in_panels(theme: Theme, log_steps: bool) -> None:
    shown = table(9)
    names, look = shown.axes[1].labels, Look(log_steps=log_steps, marked=(3, 1), at=2)
    for figure in (lines(shown, theme, look, names, height=300), panels(shown, theme, look, names)):
        drawn = {trace.name: trace for trace in figure.data if trace.mode == "lines+markers"}
        for i, name in enumerate(names):
            expected = np.where(np.array(STEPS) > 0, shown.values[:, i], np.nan) if log_steps else shown.values[:, i]
            np.testing.assert_array_equal(drawn[name].y, expected)
            assert tuple(drawn[name].customdata) == STEPS
        (mark,) = (trace for trace in figure.data if trace.mode == "lines")
        assert (tuple(mark.x), tuple(mark.y)) == (STEPS[1:3], tuple(shown.values[1:3, 3]))


def test_the_series_that_change_most_have_names_and_the_others_are_pale() -> None:
    shown = table(12)
    ranges = np.ptp(shown.values[1:], axis=0)
    figure = lines(shown, LIGHT, Look(), shown.axes[1].labels, height=300)
    named = {trace.name for trace in figure.data if trace.showlegend}
    assert named == {shown.axes[1].labels[i] for i in np.argsort(-ranges)[:MOST_NAMED]}


def test_a_logarithmic_axis_leaves_out_what_is_not_above_nothing() -> None:
    shown = table(1, low=-1)
    (line,) = lines(shown, LIGHT, Look(log_values=True), ("x",), height=300).data
    assert np.isnan(line.y).tolist() == [True, *(shown.values[1:, 0] <= 0)]


def test_of_very_many_series_the_first_have_panels() -> None:
    shown = table(MOST_PANELS + 5)
    assert len(panels(shown, LIGHT, Look(), shown.axes[1].labels).data) == MOST_PANELS
