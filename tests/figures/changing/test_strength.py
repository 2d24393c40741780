"""Losses along the strength of an adapter, and the singular values of a change, as they are drawn."""

from __future__ import annotations

import numpy as np

from gptviz.figures.changing.strength import losses, singular_values
from gptviz.figures.kit.theme import LIGHT
from gptviz.labelled_array import Axis, LabelledArray

TABLE = LabelledArray(
    np.array([[3.0, 2.0, 2.5], [1.0, 1.5, 4.0]]),
    (Axis("text", ("new", "old")), Axis("strength", ("0", "1", "2"))),
    "nats per token",
)


def test_each_text_is_a_line_over_the_strength_and_the_one_on_screen_is_marked_on_both() -> None:
    figure = losses(TABLE, LIGHT, height=300, at=1.0)
    lines = [one for one in figure.data if one.mode == "lines+markers"]
    assert [one.name.strip("\u2068\u2069") for one in lines] == ["new", "old"]
    assert len({one.line.dash for one in lines}) == 2
    for line, values in zip(lines, TABLE.values, strict=True):
        assert list(line.x) == [0, 1, 2]
        assert list(line.y) == values.tolist()
    points = [(one.x[0], one.y[0]) for one in figure.data if one.mode == "markers"]
    assert points == [(1, 2.0), (1, 1.5)]
    assert {(one.x, one.text) for one in figure.layout.annotations} == {(0, "base"), (1, "tuned")}


def test_a_strength_that_was_not_computed_is_not_marked() -> None:
    assert len(losses(TABLE, LIGHT, height=300, at=0.3).data) == len(losses(TABLE, LIGHT, height=300, at=None).data) == 2


def test_singular_values_are_bars_from_zero_in_their_order() -> None:
    values = LabelledArray(np.array([2.0, 0.5, 0.0]), (Axis("number", ("1", "2", "3")),), "singular value")
    (bars,) = singular_values(values, LIGHT, height=200).data
    assert (list(bars.x), list(bars.y)) == ([1, 2, 3], [2.0, 0.5, 0.0])
