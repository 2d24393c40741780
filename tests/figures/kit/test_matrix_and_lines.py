"""Signed heatmaps and lines over positions."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.kit import heat, lines
from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.labelled_array import Axis, LabelledArray


def steps(name: str, count: int, step: int = 1) -> Axis:
    return Axis(name, tuple(str(step * i) for i in range(count)))


def square(size: int = 4, step: int = 1) -> LabelledArray:
    values = np.random.default_rng(0).uniform(-1, 1, (size, size)).astype(np.float32)
    return LabelledArray(values, (steps("position", size, step), steps("other position", size, step)), "cosine similarity")


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_scale_is_symmetric_about_zero_which_is_the_background(theme: Theme) -> None:
    heatmap = heat.signed_matrix(square(), theme, height=300, limit=2.5).data[0]
    assert (heatmap.zmin, heatmap.zmax) == (-2.5, 2.5)
    assert dict(heatmap.colorscale)[0.5] == theme.background
    assert tuple(heatmap.colorbar.ticktext) == ("−2.5", "0", "2.5")


def test_the_numbers_under_the_pointer_are_the_values() -> None:
    shown = square(step=3)
    heatmap = heat.signed_matrix(shown, LIGHT, height=300).data[0]
    assert (np.asarray(heatmap.z) == shown.values).all()
    assert tuple(heatmap.x) == (0, 3, 6, 9)


def test_the_framed_column_is_the_one_asked_for() -> None:
    frame = heat.signed_matrix(square(step=2), LIGHT, height=300, column=3).layout.shapes[0]
    assert (frame.x0, frame.x1) == (5, 7)
    assert not heat.signed_matrix(square(), LIGHT, height=300).layout.shapes


def test_a_wave_is_filled_above_and_below_zero_without_changing_its_values() -> None:
    values = np.array([0.5, -1.0, 0.0, 2.0], np.float32)
    figure = lines.wave(LabelledArray(values, (steps("position", 4),), "value"), LIGHT, height=200, limit=2)
    above, below, line = figure.data
    assert (np.asarray(line.y) == values).all()
    assert (np.asarray(above.y) + np.asarray(below.y) == values).all()
    assert (np.asarray(above.y) >= 0).all()
    assert (np.asarray(below.y) <= 0).all()
    assert figure.layout.yaxis.range[0] == -figure.layout.yaxis.range[1]


def test_each_line_of_a_fan_is_named_where_it_leaves_the_picture() -> None:
    values = -np.outer([1.0, 0.1], np.arange(11))
    figure = lines.fan(LabelledArray(values, (steps("head", 2), steps("distance", 11)), "added"), LIGHT, height=200, floor=-4)
    assert [(note.text, note.x, note.y) for note in figure.layout.annotations] == [("head 0", 5, -4), ("head 1", 10, -1)]
    assert len({trace.line.dash for trace in figure.data}) == 2
