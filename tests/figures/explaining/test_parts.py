"""The parts of a sum as a waterfall, and as cells by block."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.explaining.parts import SHOWN, by_block, waterfall
from gptviz.figures.kit.theme import DARK, KEY, LIGHT, OUTPUT, QUERY, STREAM, Theme
from gptviz.labelled_array import Axis, LabelledArray

HOSTILE = "<b>x</b>"


def parts(values: list[float], names: list[str] | None = None) -> LabelledArray:
    labels = tuple(names or [f"part {i}" for i in range(len(values))])
    return LabelledArray(np.array(values), (Axis("part", labels),), "logit")


def cells(values: list[list[float]], columns: tuple[str, ...] = ("0", "1", "MLP")) -> LabelledArray:
    blocks = Axis("block", tuple(str(row) for row in range(len(values))))
    return LabelledArray(np.array(values), (blocks, Axis("head or MLP", columns)), "logit")


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
    assert bars.x[SHOWN] == pytest.approx(sorted(values, key=abs)[: 40 - SHOWN] @ np.ones(40 - SHOWN))
    assert bars.x[-1] == pytest.approx(values.sum())


def test_the_cells_share_one_scale_about_zero_and_what_there_is_not_is_blank_and_cannot_be_clicked() -> None:
    figure = by_block(cells([[0.5, np.nan, -3.0], [-1e-9, 1.0, 2.0]]), LIGHT, above="a", below="b", chosen=(1, 2))
    heatmap, points, numbers = figure.data
    assert (heatmap.zmin, heatmap.zmax) == (-3.0, 3.0)
    assert [tuple(where) for where in points.customdata] == [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert list(numbers.text) == ["+0.50", "−3.00", "≈ 0", "+1.00", "+2.00"]
    assert list(zip(numbers.y, numbers.x, strict=True)) == [tuple(where) for where in points.customdata]
    assert points.text[1] == "block 0, head or MLP MLP<br><b>-3</b> logit"
    assert points.hoverinfo != "skip"  # a point that says nothing answers no click
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].y0) == (1.5, 0.5)
    assert figure.layout.xaxis.ticktext == ("0", "1", "MLP")


def test_of_many_columns_some_are_named_and_the_last_one_always() -> None:
    columns = (*map(str, range(32)), "MLP")
    figure = by_block(cells([[1.0] * 33], columns), LIGHT, above="a", below="b")
    assert len(figure.layout.xaxis.ticktext) < 15
    assert figure.layout.xaxis.ticktext[-1] == "MLP"
    assert len(figure.data) == 2, "no numbers"


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e-12])
def test_numbers_without_a_size_are_drawn(value: float) -> None:
    assert by_block(cells([[value, value, 0.0]]), LIGHT, above="a", below="b").data
    assert waterfall(parts([value, 0.0]), LIGHT, whole="all", above="a", below="b").data


def test_names_are_no_markup() -> None:
    figure = waterfall(parts([1.0], [HOSTILE]), LIGHT, whole=HOSTILE, above=HOSTILE, below=HOSTILE)
    assert HOSTILE not in figure.to_json().replace("\\u003c", "<").replace("\\u003e", ">")
