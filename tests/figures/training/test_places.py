"""The bars of a task: one per place, on a fixed scale."""

from __future__ import annotations

import math

import pytest

from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.figures.training.places import right_by_place


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_every_place_has_its_bar_and_one_that_does_not_count_is_blank(theme: Theme) -> None:
    figure = right_by_place([None, 0.25, 1.0], theme, height=200)
    (bars,) = figure.data
    assert list(bars.x) == [1, 2, 3]
    assert math.isnan(bars.y[0])
    assert list(bars.y[1:]) == [0.25, 1.0]
    assert figure.layout.height == 200


def test_the_scale_is_the_same_however_good_the_model_is() -> None:
    ranges = {tuple(right_by_place([share] * 4, LIGHT, height=200).layout.yaxis.range) for share in (0.01, 0.5, 1.0)}
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
