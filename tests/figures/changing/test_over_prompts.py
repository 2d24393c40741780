"""Means with their spread: the largest at the top, each with its own line and the prompt on screen beside it."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.changing.over_prompts import SHOWN, over_prompts
from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.labelled_array import Axis, LabelledArray


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_each_unit_has_its_mean_its_deviation_and_the_prompt_on_screen(theme: Theme) -> None:
    rng = np.random.default_rng(0)
    values, here = rng.normal(size=(3, 20)), rng.normal(size=20)
    values[1] = np.abs(values[1])
    values[1, 3] = np.nan  # of a single prompt
    here[5] = np.nan
    spread = LabelledArray(
        values, (Axis("number", ("mean", "sd", "same")), Axis("unit", tuple(f"<b>{i}" for i in range(20)))), ""
    )
    figure = over_prompts(spread, here, theme, unit="share")
    dots, diamonds = figure.data
    expected = sorted(range(20), key=lambda i: -abs(values[0, i]))[:SHOWN]
    np.testing.assert_array_equal(dots.x, values[0, expected])
    np.testing.assert_array_equal(dots.error_x.array, np.nan_to_num(values[1, expected]))
    np.testing.assert_array_equal(diamonds.x, here[expected])
    assert list(dots.y) == list(diamonds.y) == list(range(SHOWN))
    low, high = figure.layout.yaxis.range
    assert low > high, "the first is at the top"
    assert [text.endswith(str(i)) for text, i in zip(figure.layout.yaxis.ticktext, expected, strict=True)] == [True] * SHOWN
    assert all("<" not in text for text in figure.layout.yaxis.ticktext)
    assert figure.layout.xaxis.title.text == "share"
