"""How much context is used, as figures: their numbers are those of the arrays, on scales that say
so.
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest

from gptviz.figures.explaining.context import by_position, by_window, left_out, over_data
from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.labelled_array import Axis, LabelledArray

TOKENS = ("<b>", "b", "a", "→ b")


def rises() -> LabelledArray:
    values = np.array([[np.nan] * 3, [0.5, np.nan, np.nan], [-2.0, 1.0, np.nan], [0.25, 0.0, 1.5]])
    axes = (Axis("token guessed", TOKENS), Axis("token left out", TOKENS[:3]))
    return LabelledArray(values, axes, "rise of loss (nats)")


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_map_has_the_rises_on_a_scale_that_is_symmetric_about_zero(theme: Theme) -> None:
    (heatmap,) = left_out(rises(), theme, height=300).data
    np.testing.assert_allclose(heatmap.z, rises().values)
    assert (heatmap.zmin, heatmap.zmax) == (-2, 2)
    assert list(heatmap.x) == ["0 &lt;b&gt;", "1 b", "2 a"], "a token is never markup"
    assert len(set(heatmap.y)) == 4, "equal tokens stand at places of their own"


def test_a_map_without_any_change_has_a_scale_all_the_same() -> None:
    nothing = LabelledArray(np.zeros((4, 3)), rises().axes, "rise of loss (nats)")
    assert left_out(nothing, LIGHT, height=300).data[0].zmax == 1


def test_windows_stand_on_a_logarithmic_axis_with_the_one_that_is_enough_pointed_out() -> None:
    windows = (1, 2, 4, 8, 9)
    values = np.array([[3.0, 2.0, 1.5, 0.1, 0.0], [3.0, 2.0, 1.5, 1.0, 1.0]])
    axes = (
        Axis("guess", ("the guess “<b>”", "mean of all guesses")),
        Axis("tokens read", tuple(map(str, windows))),
    )
    figure = by_window(
        LabelledArray(values, axes, "loss (nats)"), LIGHT, height=300, enough=8, told=[4, 9]
    )
    for line, row in zip(figure.data, values, strict=True):
        assert list(line.x) == list(windows)
        assert list(line.y) == row.tolist()
    guess, mean = figure.data
    assert list(guess.text) == ["", "", "22.3 %", "", "100 %"], "e to the power of −1.5, and 1"
    assert "&lt;b&gt;" in guess.name, "a token is never markup"
    assert mean.text is None
    assert figure.layout.xaxis.type == "log"
    assert list(figure.layout.xaxis.tickvals) == [1, 2, 4, 9], "8 and 9 would overlap"
    assert [shape.x0 for shape in figure.layout.shapes] == [8]


def test_the_line_over_the_positions_is_the_mean_of_all_bars_up_to_there() -> None:
    values = np.array([np.nan, 4.0, 2.0, 0.0])
    bars, line = by_position(
        LabelledArray(values, (Axis("token", TOKENS),), "loss (nats)"), LIGHT, height=300
    ).data
    assert isinstance(bars, go.Bar)
    np.testing.assert_allclose(bars.y, values)
    assert list(line.y) == pytest.approx([4.0, 3.0, 2.0])
    assert bars.customdata[0] == "&lt;b&gt;", "a token is never markup"


def test_over_data_each_position_has_its_mean_loss() -> None:
    values = np.array([np.nan, 3.0, 1.0])
    loss = LabelledArray(
        values, (Axis("position", ("0", "1", "2")),), "mean loss over 7 texts (nats)"
    )
    (line,) = over_data(loss, LIGHT, height=200).data
    np.testing.assert_allclose(line.y, values)
    assert list(line.x) == [0, 1, 2]


def test_up_to_forty_tokens_are_named_below_their_bars() -> None:
    for count, named in ((40, True), (41, False)):
        loss = LabelledArray(np.ones(count), (Axis("token", ("a",) * count),), "loss (nats)")
        assert (by_position(loss, LIGHT, height=300).layout.xaxis.ticktext is not None) == named
