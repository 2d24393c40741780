"""The errors of matrices as cells: the numbers of the table, on a scale that begins at 0."""

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
