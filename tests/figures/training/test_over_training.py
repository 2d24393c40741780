"""What a run learns by step, place and rung of the ladder, drawn: every point is a value, and what
is above each is said.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.figures.training.ladder import level_by_level
from gptviz.figures.training.over_training import MOST_NAMED, MOST_PANELS, ChartLook, lines, panels
from gptviz.figures.training.places import right_by_place
from gptviz.labelled_array import Axis, LabelledArray

STEPS = (0, 1, 2, 8)


def table(series: int, *, low: float = 0.5) -> LabelledArray:
    values = np.random.default_rng(0).uniform(low, 1, (len(STEPS), series))
    names = tuple(f"series {i}" for i in range(series))
    return LabelledArray(
        values, (Axis("step", tuple(map(str, STEPS))), Axis("series", names)), "nats"
    )


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("log_steps", [False, True])
def test_each_series_is_drawn_at_its_steps_in_one_chart_and_in_panels(
    theme: Theme, log_steps: bool
) -> None:
    shown = table(9)
    names = shown.axes[1].labels
    look = ChartLook(log_steps=log_steps, marked=(3, 1), at=2)
    for figure in (lines(shown, theme, look, names, height=300), panels(shown, theme, look, names)):
        drawn = {trace.name: trace for trace in figure.data if trace.mode == "lines+markers"}
        for i, name in enumerate(names):
            expected = (
                np.where(np.array(STEPS) > 0, shown.values[:, i], np.nan)
                if log_steps
                else shown.values[:, i]
            )
            np.testing.assert_array_equal(drawn[name].y, expected)
            assert tuple(drawn[name].customdata) == STEPS
        (mark,) = (trace for trace in figure.data if trace.mode == "lines")
        assert (tuple(mark.x), tuple(mark.y)) == (STEPS[1:3], tuple(shown.values[1:3, 3]))


def test_the_series_that_change_most_have_names_and_the_others_are_pale() -> None:
    shown = table(12)
    ranges = np.ptp(shown.values[1:], axis=0)
    figure = lines(shown, LIGHT, ChartLook(), shown.axes[1].labels, height=300)
    named = {trace.name for trace in figure.data if trace.showlegend}
    assert named == {shown.axes[1].labels[i] for i in np.argsort(-ranges)[:MOST_NAMED]}


def test_a_logarithmic_axis_leaves_out_what_is_not_above_nothing() -> None:
    shown = table(1, low=-1)
    (line,) = lines(shown, LIGHT, ChartLook(log_values=True), ("x",), height=300).data
    assert np.isnan(line.y).tolist() == [True, *(shown.values[1:, 0] <= 0)]


def test_names_of_revisions_that_say_no_step_stand_on_the_axis() -> None:
    shown = table(2)
    names = {step: f"v{step}" for step in STEPS}
    look = ChartLook(log_steps=False, names=names)
    for figure in (
        lines(shown, LIGHT, look, shown.axes[1].labels, height=300),
        panels(shown, LIGHT, look, shown.axes[1].labels),
    ):
        assert figure.layout.xaxis.tickvals == STEPS
        assert figure.layout.xaxis.ticktext == tuple(names.values())
        assert figure.data[0].text == tuple(names.values())
        assert "revision" in figure.to_json()
        assert "step" not in figure.to_json()


def test_of_very_many_series_the_first_have_panels() -> None:
    shown = table(MOST_PANELS + 5)
    assert len(panels(shown, LIGHT, ChartLook(), shown.axes[1].labels).data) == MOST_PANELS


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_every_place_has_its_bar_and_one_that_does_not_count_is_blank(theme: Theme) -> None:
    figure = right_by_place([None, 0.25, 1.0], theme, height=200)
    (bars,) = figure.data
    assert list(bars.x) == [1, 2, 3]
    assert math.isnan(bars.y[0])
    assert list(bars.y[1:]) == [0.25, 1.0]
    assert figure.layout.height == 200


def test_the_scale_is_the_same_however_good_the_model_is() -> None:
    ranges = {
        tuple(right_by_place([share] * 4, LIGHT, height=200).layout.yaxis.range)
        for share in (0.01, 0.5, 1.0)
    }
    assert len(ranges) == 1
    ((low, high),) = ranges
    assert low == 0
    assert high >= 1


@pytest.mark.parametrize("count", [1, 15, 200, 4_095])
def test_a_long_sequence_names_some_of_its_places(count: int) -> None:
    axis = right_by_place([0.5] * count, LIGHT, height=200).layout.xaxis
    assert count / axis.dtick <= 16
    assert axis.range[0] < 1
    assert axis.range[1] > count


def test_bars_join_and_the_last_one_is_all_of_them_together() -> None:
    values = np.array([2.5, 2.501, 2.25, 1.75])
    figure = level_by_level(
        LabelledArray(values, (Axis("rung", ("start", "a", "<b>b</b>", "c")),), "loss"), LIGHT
    )
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
