"""The pictures of experts."""

from __future__ import annotations

import numpy as np

from gptviz.figures.kit.theme import DARK, LIGHT
from gptviz.figures.units.experts import load, routing
from gptviz.labelled_array import Axis, LabelledArray

EXPERTS = Axis("expert", ("0", "1", "shared"))


def test_a_token_has_a_row_and_an_expert_that_was_not_chosen_is_blank() -> None:
    values = np.array([[0.25, 0.0, 0.5], [0.0, 1.0, 0.75]])
    for theme in (LIGHT, DARK):
        figure = routing(
            LabelledArray(values, (Axis("token", ("a", "b")), EXPERTS), "weight"),
            theme,
            chosen=1,
            height=300,
        )
        (drawn,) = figure.data
        np.testing.assert_array_equal(drawn.z, np.where(values == 0, np.nan, values))
        assert (drawn.zmin, drawn.zmax) == (0, 1)
        assert list(drawn.y) == ["0 a", "1 b"]
        assert figure.layout.xaxis.ticktext == ("0", "1", "shared")
        (frame,) = figure.layout.shapes
        assert (frame.x0, frame.x1) == (0.5, 1.5)


def test_the_load_of_every_block_is_a_row_of_shares_with_numbers() -> None:
    values = np.array([[0.25, 0.75, 1.0], [0.5, 0.5, 1.0]])
    figure = load(
        LabelledArray(values, (Axis("block", ("0", "1")), EXPERTS), "share"), LIGHT, chosen=(1, 0)
    )
    drawn, texts = figure.data
    np.testing.assert_array_equal(drawn.z, values)
    assert list(texts.text)[:2] == ["25\u202f%", "75\u202f%"]
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.y0) == (-0.5, 0.5)
