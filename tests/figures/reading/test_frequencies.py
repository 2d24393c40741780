"""How often tokens come: the first are shown as they are, with labels of their own."""

from __future__ import annotations

import numpy as np

from gptviz.figures.kit.theme import LIGHT
from gptviz.figures.reading.frequencies import MOST, frequencies
from gptviz.labelled_array import Axis, LabelledArray


def test_the_most_frequent_tokens_are_bars_from_the_top_and_the_others_are_counted() -> None:
    shares = np.sort(np.random.default_rng(0).random(50))[::-1]
    labels = ("<b>", "␣", *(f"token {number}" for number in range(48)))
    figure = frequencies(LabelledArray(shares, (Axis("token", labels),), "share"), LIGHT)
    (bars,) = figure.data
    assert np.asarray(bars.x).tolist() == shares[:MOST].tolist()
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert len(figure.layout.yaxis.ticktext) == len(figure.layout.yaxis.tickvals) == MOST
    assert "<b>" not in figure.layout.yaxis.ticktext[0]
    assert f"the {MOST} most frequent of 50" in figure.layout.xaxis.title.text
    assert figure.layout.height >= 16 * MOST, "labels of 12 pixels do not touch"
