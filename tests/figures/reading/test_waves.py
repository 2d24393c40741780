"""Models of sums on a clock: bars of the share of each frequency, and where a neuron is active, by both numbers of a sum."""

from __future__ import annotations

import numpy as np

from gptviz.figures.kit.theme import LIGHT
from gptviz.figures.reading.waves import powers
from gptviz.labelled_array import Axis, LabelledArray


def test_each_part_has_a_bar_for_each_frequency() -> None:
    values = np.array([[0.1, 0.2, 0.7], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    axes = Axis("part", ("embedding", "neurons", "logits")), Axis("frequency", ("1", "2", "3"))
    figure = powers(LabelledArray(values, axes, "share"), LIGHT, height=300)
    assert [bar.name for bar in figure.data] == list(axes[0].labels)
    for bar, row in zip(figure.data, values, strict=True):
        assert list(bar.x) == [1, 2, 3]
        np.testing.assert_array_equal(bar.y, row)
    assert len({(bar.marker.color, bar.marker.pattern.shape) for bar in figure.data}) == 3
