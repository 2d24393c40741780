"""The loss of rows in A against that in B: every row is one point, in the group that it belongs to."""

from __future__ import annotations

import numpy as np

from gptviz.figures.changing.compared import pairs, with_shares
from gptviz.figures.changing.rows import NEVER, READ, rows
from gptviz.figures.kit.theme import LIGHT
from gptviz.labelled_array import Axis, LabelledArray

ROWS = Axis("row", ("one", "<b>two</b>", "three"))


def losses(*values: float) -> LabelledArray:
    return LabelledArray(np.array(values), (ROWS,), "loss, nats per token")


def test_every_row_is_a_point_in_its_group_on_two_equal_axes() -> None:
    figure = rows(losses(0.5, 1.0, 2.0), losses(3.0, 2.5, 1.0), (READ, NEVER, READ), LIGHT, height=300)
    line, read, never = figure.data
    assert list(line.x) == list(line.y), "on the dashed line both are as large"
    assert (list(read.x), list(read.y)) == ([3.0, 1.0], [0.5, 2.0])
    assert (list(never.x), list(never.y)) == ([2.5], [1.0])
    assert read.name == READ
    assert never.customdata[0] == "&lt;b&gt;two&lt;/b&gt;"
    assert figure.layout.xaxis.range == figure.layout.yaxis.range
    assert figure.layout.xaxis.range[1] > 3


def test_the_marks_of_shares_lie_on_their_bars_and_a_number_lies_beyond_both() -> None:
    words = Axis("sentence", ("a", "b"))
    a, b = (LabelledArray(np.array(values), (words,), "probability") for values in ([0.9, 0.2], [0.1, 0.3]))
    marks = [[(0.8, 0.7, 0.95), (0.2, 0.1, 0.3)], [(0.1, 0.05, 0.2), (np.nan,) * 3]]
    figure = with_shares(pairs(a, b, LIGHT, limit=1.0, percent=True), marks, LIGHT)
    _, _, of_a, of_b, text_a, text_b = figure.data
    assert list(of_a.x) == [0.8, 0.2]
    np.testing.assert_allclose(of_a.x + of_a.error_x["array"], [0.95, 0.3])
    np.testing.assert_allclose(of_a.x - of_a.error_x["arrayminus"], [0.7, 0.1])
    assert np.isnan(of_b.x[1])
    assert list(text_a.x) == [0.95, 0.3]
    assert list(text_b.x) == [0.2, 0.3]
    assert "90.0 %" in text_a.text[0]
    for one, other in zip(of_a.y, of_b.y, strict=True):
        assert one < round(one) < other, "A stands above the middle of its row, B below"
