"""Arrows of features, and their lengths by sparsity: what is drawn are the numbers."""

from __future__ import annotations

import numpy as np

from gptviz.figures.kit.theme import LIGHT
from gptviz.figures.units.superposition import arrows, lengths
from gptviz.labelled_array import Axis, LabelledArray
from tests.drawn import numbers


def test_each_arrow_leads_from_the_middle_to_its_end_and_each_direction_that_was_found_is_dashed() -> (
    None
):
    ends = np.array([[1.0, 0.2], [-0.5, -0.9]])
    found = np.array([[0.6, 0.8]])
    drawn = arrows(ends, LIGHT, found=found, height=400).to_dict()["data"]
    of_features = [line for line in drawn if line["name"] == "features"]
    for line, end in zip(of_features, ends, strict=True):
        np.testing.assert_array_equal(
            [numbers(line["x"]), numbers(line["y"])], [[0, end[0]], [0, end[1]]]
        )
    assert [line["text"][1] for line in of_features] == ["<b>1</b>", "<b>2</b>"]
    (dashed,) = (line for line in drawn if line["name"] == "found")
    assert dashed["line"]["dash"] == "dash"
    np.testing.assert_array_equal(
        [numbers(dashed["x"]), numbers(dashed["y"])], [[0, 0.6], [0, 0.8]]
    )


def test_each_feature_has_a_line_over_the_sparsities() -> None:
    values = np.arange(15.0).reshape(3, 5)
    shown = LabelledArray(
        values, (Axis("sparsity", ("0", "0.5", "0.9")), Axis("feature", tuple("12345"))), "length"
    )
    figure = lengths(shown, LIGHT, chosen=1, height=400).to_dict()
    np.testing.assert_array_equal([numbers(line["y"]) for line in figure["data"]], values.T)
    assert [list(line["x"]) for line in figure["data"]] == [["0%", "50%", "90%"]] * 5
