"""The errors of matrices as cells: the numbers of the table, on a scale that begins at 0 or at the smallest."""

from __future__ import annotations

import numpy as np

from gptviz.figures.changing.fewer_bits import MOST_NUMBERED, matrix_errors
from gptviz.figures.kit.theme import LIGHT
from gptviz.labelled_array import Axis, LabelledArray


def table(values: list[list[float]]) -> LabelledArray:
    blocks = Axis("block", tuple(map(str, range(len(values)))))
    return LabelledArray(np.array(values), (blocks, Axis("matrix", ("attention.qkv", "mlp.<b>"))), "relative error")


def test_the_cells_are_the_errors_in_percent_and_a_missing_matrix_is_blank() -> None:
    found = matrix_errors(table([[0.1234, 0.5], [np.nan, 0.25]]), LIGHT)
    drawn, texts = found.data
    np.testing.assert_allclose(drawn.z, [[0.1234, np.nan], [0.5, 0.25]], rtol=1e-6)  # blocks side by side
    assert (drawn.zmin, drawn.zmax) == (0, 0.5)
    assert list(texts.text) == ["12.3", "50", "25"]
    assert list(drawn.colorbar.ticktext) == ["0", "25", "50"]
    assert "<b>" not in "".join(found.layout.yaxis.ticktext)


def test_no_error_at_all_is_drawn_too_and_many_blocks_have_no_numbers_in_their_cells() -> None:
    assert matrix_errors(table([[0.0, 0.0]]), LIGHT).data[0].zmax > 0
    many = matrix_errors(table([[0.1, 0.2]] * (MOST_NUMBERED + 1)), LIGHT)
    assert len(many.data) == 1


def test_errors_that_would_all_be_dark_begin_at_the_smallest_and_the_scale_says_so() -> None:
    found = matrix_errors(table([[0.09, 0.1], [0.12, 0.11]]), LIGHT)
    assert (found.data[0].zmin, found.data[0].zmax) == (0.09, 0.12)
    assert list(found.data[0].colorbar.ticktext) == ["9", "10.5", "12"]
    assert "not from 0" in "".join(one.text for one in found.layout.annotations)
    even = matrix_errors(table([[0.1, 0.1]]), LIGHT)
    assert (even.data[0].zmin, even.data[0].zmax) == (0, 0.1)
    assert "not from 0" not in "".join(one.text for one in even.layout.annotations)
