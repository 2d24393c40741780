"""The parts of a sum as a waterfall."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.explaining.parts import SHOWN, waterfall
from gptviz.figures.kit.theme import DARK, KEY, LIGHT, OUTPUT, QUERY, STREAM, Theme
from gptviz.labelled_array import Axis, LabelledArray

HOSTILE = "<b>x</b>"


def parts(values: list[float], names: list[str] | None = None) -> LabelledArray:
    labels = tuple(names or [f"part {i}" for i in range(len(values))])
    return LabelledArray(np.array(values), (Axis("part", labels),), "logit")


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_each_bar_begins_where_the_last_one_ended_and_the_last_is_the_sum(theme: Theme) -> None:
    figure = waterfall(parts([0.5, -2.0, 1.0]), theme, whole="all", above="a", below="b")
    (bars,) = figure.data
    assert list(bars.x) == [-2.0, 1.0, 0.5, -0.5]
    assert list(bars.base) == [0.0, -2.0, -1.0, 0.0]
    assert list(bars.marker.color) == [KEY, QUERY, QUERY, OUTPUT]
    assert list(figure.layout.yaxis.ticktext) == ["part 1", "part 2", "part 0", "<b>all</b>"]
    low, high = figure.layout.xaxis.range
    assert low < -2.0
    assert high > 0.0


def test_the_longest_number_has_room_beside_its_bar() -> None:
    figure = waterfall(parts([2.0, 0.000584]), LIGHT, whole="all", above="a", below="b")
    (bars,) = figure.data
    digit = 5.6  # pixels, of type of 12
    assert 4 + digit * max(map(len, bars.text)) < figure.layout.margin.r


def test_of_many_parts_the_smallest_share_a_bar() -> None:
    values = np.random.default_rng(0).normal(size=40)
    figure = waterfall(parts(values.tolist()), LIGHT, whole="all", above="a", below="b")
    (bars,) = figure.data
    assert len(bars.x) == SHOWN + 2
    assert figure.layout.yaxis.ticktext[SHOWN] == f"the other {40 - SHOWN} parts"
    assert bars.marker.color[SHOWN] == STREAM
    assert bars.x[SHOWN] == pytest.approx(
        sorted(values, key=abs)[: 40 - SHOWN] @ np.ones(40 - SHOWN)
    )
    assert bars.x[-1] == pytest.approx(values.sum())


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e-12])
def test_numbers_without_a_size_are_drawn(value: float) -> None:
    assert waterfall(parts([value, 0.0]), LIGHT, whole="all", above="a", below="b").data


def test_names_are_no_markup() -> None:
    figure = waterfall(parts([1.0], [HOSTILE]), LIGHT, whole=HOSTILE, above=HOSTILE, below=HOSTILE)
    assert HOSTILE not in figure.to_json().replace("\\u003c", "<").replace("\\u003e", ">")
