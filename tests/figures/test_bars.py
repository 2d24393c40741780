"""The bars of the next token: what they show, and that no token's text can become anything but text."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.bars import MOST_NUMBERED, MOST_SLANTED, MOST_STAGGERED, next_token, percent
from gptviz.figures.theme import DARK, LIGHT, OUTPUT
from gptviz.labelled import Axis, Labelled

BEFORE, AFTER = [0.5, 0.3, 0.15, 0.05], [0.6, 0.4, 0.0, 0.0]
CUT = ["", "", "top-p", "top-k"]


def some(labels: tuple[str, ...] = ("e", "␣", "⏎", "q")) -> Labelled:
    values = np.stack((BEFORE, AFTER), axis=1)
    return Labelled(values, (Axis("token", labels), Axis("stage", ("before", "after"))), "probability")


def many(count: int, label: str = "x") -> Labelled:
    values = np.full((count, 2), 1 / count)
    return Labelled(values, (Axis("token", (label,) * count), Axis("stage", ("before", "after"))), "probability")


def trace(figure, name: str):  # type: ignore[no-untyped-def]
    return next(one for one in figure.data if one.name and one.name.startswith(name))


def test_filled_bars_are_the_probabilities_after_and_outlines_those_before() -> None:
    figure = next_token(some(), LIGHT, cut=CUT)
    assert list(trace(figure, "after").y) == AFTER
    assert trace(figure, "after").marker.color == OUTPUT
    outlines = np.array(trace(figure, "before").y) + np.array(trace(figure, "cut").y)
    assert outlines.tolist() == BEFORE


def test_what_is_cut_is_hatched_and_named_where_the_cut_begins() -> None:
    figure = next_token(some(), LIGHT, cut=CUT)
    cut = trace(figure, "cut")
    assert list(cut.y) == [0, 0, 0.15, 0.05]
    assert cut.marker.pattern.shape == "/"
    assert [
        (shape.x0, note.text.strip(" →")) for shape, note in zip(figure.layout.shapes, figure.layout.annotations, strict=True)
    ] == [
        (1.5, "cut by top-p"),
        (2.5, "cut by top-k"),
    ]
    first, second = figure.layout.annotations
    assert first.y - second.y >= 0.1, "two names side by side would run into each other"


def test_where_nothing_is_cut_nothing_speaks_of_cutting() -> None:
    figure = next_token(some(), LIGHT, cut=[""] * 4)
    assert not trace(figure, "cut").showlegend
    assert not figure.layout.shapes
    assert not figure.layout.annotations


def test_in_vocabulary_order_no_line_pretends_that_the_cut_ones_stand_together() -> None:
    assert not next_token(some(), LIGHT, cut=CUT, by_rank=False).layout.shapes


def test_tokens_that_look_alike_keep_bars_of_their_own() -> None:
    figure = next_token(some(("x", "x", "x", "x")), LIGHT, cut=CUT)
    assert len(set(trace(figure, "after").x)) == 4
    assert list(figure.layout.xaxis.ticktext) == ["x"] * 4


@pytest.mark.parametrize("hostile", ["<b>bold</b>", "<img src=x onerror=alert(1)>", "&lt;", '<a href="x">'])
def test_a_tokens_text_is_not_read_as_html(hostile: str) -> None:
    figure = next_token(some((hostile, "a", "b", "c")), LIGHT, cut=CUT)
    shown = [figure.layout.xaxis.ticktext[0], figure.data[-1].customdata[0][0]]
    assert all("<" not in text for text in shown)
    assert shown[1].replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&") == hostile


def test_a_long_token_is_cut_short_on_the_axis_and_whole_under_the_pointer() -> None:
    figure = next_token(some(("q" * 300, "a", "b", "c")), LIGHT, cut=CUT)
    assert len(figure.layout.xaxis.ticktext[0].strip("\u2068\u2069")) <= 14
    assert figure.data[-1].customdata[0][0] == "q" * 300


@pytest.mark.parametrize("label", ["x", "word"])
@pytest.mark.parametrize("count", [20, 65, 200])
def test_an_axis_never_names_more_tokens_than_fit(count: int, label: str) -> None:
    axis = next_token(many(count, label), LIGHT, cut=[""] * count).layout.xaxis
    assert len(axis.ticktext) == len(axis.tickvals) <= (MOST_STAGGERED if label == "x" else MOST_SLANTED)
    if label == "x" and count > MOST_NUMBERED:
        assert [text.startswith("<br>") for text in axis.ticktext[:4]] == [False, True, False, True]


def test_the_token_that_really_comes_next_is_marked() -> None:
    ticks = next_token(some(), LIGHT, cut=CUT, true=1).layout.xaxis.ticktext
    assert ["▲" in tick for tick in ticks] == [False, True, False, False]


def test_the_axis_ends_above_every_bar_and_at_a_step() -> None:
    assert next_token(some(), LIGHT, cut=CUT).layout.yaxis.range == (0, 1.0)
    assert next_token(many(20), LIGHT, cut=[""] * 20).layout.yaxis.range == (0, 0.25)


def test_log_heights_reach_down_to_a_hundredth_of_a_percent() -> None:
    axis = next_token(some(), DARK, cut=CUT, log=True).layout.yaxis
    assert (axis.type, axis.range) == ("log", (-4, 0))


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        (1.0, "100 %"),
        (0.99999, "100 %"),
        (0.8467, "84.7 %"),
        (0.09999, "10.0 %"),
        (0.0999, "9.99 %"),
        (0.04321, "4.32 %"),
        (0.00999, "0.999 %"),
        (0.001, "0.100 %"),
        (0.00099, "< 0.1 %"),
        (1e-30, "< 0.1 %"),
        (0.0, "0 %"),
    ],
)
def test_percent_has_three_digits_down_to_a_tenth(probability: float, text: str) -> None:
    assert percent(probability) == text
