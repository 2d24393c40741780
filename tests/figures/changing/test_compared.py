"""Two subjects side by side: bars on one scale, the side and the colour of a difference, and which token lies where."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.changing.compared import differences, movers, pairs
from gptviz.figures.kit.theme import KEY, LIGHT, QUERY
from gptviz.labelled_array import Axis, LabelledArray

TOKENS = Axis("token", ("a", "b", "c", "d"))


def of(values: list[float]) -> LabelledArray:
    return LabelledArray(np.array(values), (TOKENS,), "probability")


def test_what_b_has_more_of_is_blue_and_to_the_right_what_a_has_more_of_orange_and_to_the_left() -> None:
    figure = differences(of([0.25, -0.5, 0.0, np.nan]), LIGHT, limit=0.5, percent=True)
    (bars,) = figure.data
    assert list(bars.x) == [0.25, -0.5, 0, 0]
    assert list(bars.marker.color)[:2] == [QUERY, KEY]
    assert list(bars.text) == ["+25.0 %", "−50.0 %", "0 %", "only in one"]
    low, high = figure.layout.xaxis.range
    assert low == -high < -0.5


def test_the_bars_of_both_have_their_own_numbers_on_a_scale_that_holds_the_largest() -> None:
    one, other = of([0.25, 0.5, 0.0, np.nan]), of([0.75, 0.125, 0.0, 0.125])
    figure = pairs(one, other, LIGHT, limit=0.75, percent=True)
    for bars, name, given in zip(figure.data, "AB", (one, other), strict=True):
        assert bars.name == name
        assert list(bars.x) == np.nan_to_num(given.values).tolist()
    assert figure.data[0].text[-1] == "has none"
    assert figure.layout.xaxis.range[1] > 0.75


def test_tokens_that_moved_are_joined_from_where_they_are_in_a_to_where_they_are_in_b() -> None:
    axes = TOKENS, Axis("component", ("1", "2"))
    a = LabelledArray(np.array([[0, 0], [1, 0], [0, 1], [1, 1]], float), axes, "coordinate")
    b = LabelledArray(a.values + np.array([[0, 0], [3, 0], [0, 0], [0, 1]], float), axes, "coordinate")
    lines = movers(a, b, of([0, 3, 0, 1]), LIGHT, height=300).data[0]
    assert list(zip(lines.x, lines.y, strict=True)) == [(1, 0), (4, 0), (None, None), (1, 1), (1, 2), (None, None)]


@pytest.mark.parametrize("percent", [True, False])
def test_a_distance_has_one_side_and_no_sign(percent: bool) -> None:
    figure = differences(of([0.25, 0.5, 0.0, 0.125]), LIGHT, limit=0.5, percent=percent, signed=False)
    assert figure.layout.xaxis.range[0] == 0
    assert not any("+" in text for text in figure.data[0].text)
