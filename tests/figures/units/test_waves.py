"""Where a neuron is active, by both numbers of a sum."""

from __future__ import annotations

import numpy as np

from gptviz.figures.kit.theme import DARK, LIGHT
from gptviz.figures.units.waves import over_sums
from gptviz.labelled_array import Axis, LabelledArray


def test_each_sum_has_a_cell_with_its_activation_and_0_is_in_the_middle_of_the_scale() -> None:
    values = np.array([[0.5, -1.5, 0.0], [0.25, 1.0, 0.5], [0.0, 0.0, 0.75]])
    axes = Axis("first number", ("0", "1", "2")), Axis("second number", ("0", "1", "2"))
    for theme in (LIGHT, DARK):
        figure = over_sums(LabelledArray(values, axes, "activation"), theme, height=300)
        (drawn,) = figure.data
        np.testing.assert_array_equal(drawn.z, values)
        assert (drawn.zmin, drawn.zmax) == (-1.5, 1.5)
        assert (figure.layout.yaxis.title.text, figure.layout.xaxis.title.text) == ("first number", "second number")
