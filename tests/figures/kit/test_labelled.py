"""The picture of any labelled array: it has the numbers, the names of its axes, the labels and the
unit.
"""

from __future__ import annotations

import numpy as np
import pytest

import gptviz
from gptviz.figures.kit.labelled import picture
from gptviz.figures.kit.theme import DARK, KEY, QUERY
from gptviz.labelled_array import Axis, LabelledArray, number_axis

TOKENS = Axis("token", ("the", "cat", "the", "<b>"))


def test_an_axis_of_places_becomes_bars_with_their_sign_as_colour() -> None:
    values = np.array([1.0, -2.0, np.nan, 0.5])
    figure = picture(LabelledArray(values, (TOKENS,), "nats"), DARK)
    (bars,) = figure.data
    np.testing.assert_array_equal(bars.y, values)
    assert bars.marker.color == (QUERY, KEY, QUERY, QUERY)
    assert [name.split(" ", 1)[1] for name in bars.x] == ["the", "cat", "the", "&lt;b&gt;"]
    assert len(set(bars.x)) == 4
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("token", "nats")


@pytest.mark.parametrize(("lowest", "scale"), [(-3.0, (-3.0, 3.0)), (0.5, (0.0, 2.0))])
def test_two_axes_become_cells_whose_scale_has_0_in_the_middle_where_some_lie_below(
    lowest: float, scale: object
) -> None:
    values = np.array([[lowest, 1.0, 2.0, 0.5], [0.6, 0.7, 0.8, 0.9]])
    figure = picture(LabelledArray(values, (number_axis("block", 2), TOKENS), "cosine"), DARK)
    (cells,) = figure.data
    np.testing.assert_allclose(cells.z, values, rtol=1e-6)
    assert (cells.zmin, cells.zmax) == scale
    assert (figure.layout.yaxis.title.text, figure.layout.xaxis.title.text) == ("block", "token")
    assert figure.layout.yaxis.autorange == "reversed"
    assert [note.text for note in figure.layout.annotations] == ["cosine"]


def test_a_notebook_shows_it_and_three_axes_are_refused() -> None:
    values = LabelledArray(np.ones(4), (TOKENS,), "times")
    assert gptviz.show(values, height=200).layout.height == 200
    deep = LabelledArray(
        np.ones((1, 1, 4)), (number_axis("block", 1), number_axis("head", 1), TOKENS), "times"
    )
    with pytest.raises(ValueError, match=r"3 axes \(block, head, token\).*take a part"):
        gptviz.show(deep)
