"""Sizes by depth on a logarithmic axis."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gptviz.figures.kit.theme import LIGHT
from gptviz.figures.reading import depth
from gptviz.labelled_array import Axis, LabelledArray


def sizes(*rows: list[float]) -> LabelledArray:
    places = Axis("block", (*(str(i) for i in range(len(rows[0]) - 1)), "out"))
    kinds = Axis("residual", ("pre-norm", "post-norm", "plain", "none")[: len(rows)])
    return LabelledArray(np.array(rows), (kinds, places), "root mean square")


def test_the_decades_hold_every_size_that_float32_holds() -> None:
    assert depth.decades(sizes([3e-7, 0.02], [40.0, 1.0])) == (-10, 5)
    assert depth.decades(sizes([math.nan, 0.02])) == (-5, 0)
    assert depth.decades(sizes([1.0, 1.0])) == (-5, 0)
    assert (
        depth.decades(sizes([math.nan, math.nan]))[0]
        < depth.decades(sizes([math.nan, math.nan]))[1]
    )


@pytest.mark.parametrize("tiny", [0.0, 1e-160])
@pytest.mark.parametrize("huge", [math.inf, 1e160])
def test_beyond_float32_the_axis_ends_a_little_later(tiny: float, huge: float) -> None:
    low, high = depth.decades(sizes([tiny, huge]))
    smallest = np.finfo(np.float32).smallest_subnormal
    largest = np.finfo(np.float32).max
    assert -55 < low < math.log10(smallest)
    assert math.log10(largest) < high < 50


def test_the_limits_of_float32_are_drawn_where_they_are_reached_and_only_there() -> None:
    def notes(*values: float) -> list[tuple[str, float]]:
        table = sizes(list(values))
        figure = depth.by_depth(table, LIGHT, height=200, name="size", span=depth.decades(table))
        assert [round(math.log10(shape.y0), 6) for shape in figure.layout.shapes] == [
            round(note.y, 6) for note in figure.layout.annotations
        ]
        return [(note.text, note.y) for note in figure.layout.annotations]

    assert notes(1e-3, 1.0) == []
    ((below, at),) = notes(1e-60, 1.0)
    assert "0 in float32" in below
    assert np.float32(10**at) > 0
    assert np.float32(10**at / 2.1) == 0
    ((above, at),) = notes(1.0, 1e60)
    assert "infinite" in above
    assert at == pytest.approx(math.log10(np.finfo(np.float32).max))


def test_a_line_shows_its_sizes_leaves_the_axis_at_zero_and_breaks_where_there_is_no_number() -> (
    None
):
    table = sizes([0.0, 1e-3, math.nan, 2.0], [1e-2, 1e-2, 1e-2, math.inf])
    figure = depth.by_depth(table, LIGHT, height=200, name="size", span=depth.decades(table))
    one, other = figure.data
    low, high = figure.layout.yaxis.range
    assert math.log10(one.y[0]) < low
    assert one.y[1:] == (1e-3, None, 2.0)
    assert math.log10(other.y[-1]) > high
    # Under the pointer stands the size itself, not the one that is drawn.
    assert [place[1] for place in one.customdata] == ["0", "0.001", "nan", "2"]
    assert (one.name, other.name) == ("pre-norm", "post-norm")
    assert one.line.dash != other.line.dash
    assert one.marker.symbol != other.marker.symbol


@pytest.mark.parametrize("count", [2, 3, 9, 10, 13, 33])
def test_the_first_and_the_last_place_are_named_and_no_names_meet(count: int) -> None:
    table = sizes([1.0] * count)
    axis = depth.by_depth(table, LIGHT, height=200, name="size", span=(-5, 0)).layout.xaxis
    assert axis.ticktext[0] == "0"
    assert axis.ticktext[-1] == "out"
    assert all(
        table.axes[1].labels[place] == text
        for place, text in zip(axis.tickvals, axis.ticktext, strict=True)
    )
    assert min(np.diff(axis.tickvals)) >= (count - 1) / 14


def all_sizes(*rows: list[float]) -> LabelledArray:
    """The same as one quantity of several."""
    one = sizes(*rows)
    return LabelledArray(
        np.asarray(one.values)[None], (Axis("quantity", ("gradient",)), *one.axes), one.unit
    )


def test_close_up_a_line_that_goes_far_leaves_the_axis_and_says_how_far() -> None:
    rows = [0.5, 0.02, 3.0], [0.1, 0.2, 0.9], [1e-53, 1e-20, 0.5]
    span, leaving = depth.close_up(all_sizes(*rows))
    assert (span, leaving) == ((-2, 1), ("plain",))
    figure = depth.by_depth(sizes(*rows), LIGHT, height=200, name="size", span=span)
    (said,) = (note.text for note in figure.layout.annotations)
    assert said == "↓ plain: to 10<sup>−53</sup> at block 0"
    assert not depth.by_depth(
        sizes(*rows[:2]), LIGHT, height=200, name="size", span=span
    ).layout.annotations


@pytest.mark.parametrize(
    ("value", "said"), [(0.0, "to 0 at"), (math.inf, "to ∞ at"), (1e30, "to 10<sup>30</sup> at")]
)
def test_what_leaves_at_either_end_is_said(value: float, said: str) -> None:
    rows = [0.5, 0.5, 0.5], [value, 0.5, 0.5]
    span, leaving = depth.close_up(all_sizes(*rows))
    assert leaving == ("post-norm",)
    (note,) = depth.by_depth(
        sizes(*rows), LIGHT, height=200, name="size", span=span
    ).layout.annotations
    assert said in note.text


def test_where_all_lines_stay_or_none_does_the_axis_holds_all() -> None:
    near = all_sizes([0.5, 1e-3], [2.0, 40.0])
    far = all_sizes([1e-20, 1e-30], [1e20, 1e30])
    assert depth.close_up(near) == (depth.decades(near), ())
    assert depth.close_up(far) == (depth.decades(far), ())
