"""The heatmaps of attention and signed ones: what they carry equals what they were given, on one
scale, in little room.
"""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.io
import pytest

from gptviz.figures.kit import axes, heat, lines
from gptviz.figures.kit.theme import DARK, LIGHT, PATTERN, Theme, themed_figure
from gptviz.labelled_array import Axis, LabelledArray


def tokens(n_tokens: int, labels: tuple[str, ...] | None = None) -> Axis:
    return Axis("key (is read)", labels or tuple("abcdefgh"[i % 8] for i in range(n_tokens)))


def array(encoded: dict[str, str]) -> np.ndarray:
    flat = np.frombuffer(base64.b64decode(encoded["bdata"]), np.dtype(encoded["dtype"]))
    return flat.reshape([int(size) for size in encoded["shape"].split(",")])


def layout_of(axis: Axis) -> Any:
    """The layout of a figure with these tokens on both axes."""
    return themed_figure(
        LIGHT, height=300, xaxis=axes.token_axis(axis), yaxis=axes.token_axis(axis, down=True)
    ).layout


def test_cells_carry_the_numbers_given_and_those_without_a_number_are_blank() -> None:
    given = np.random.default_rng(0).random((20, 20), np.float32)
    given[np.triu_indices(20, 1)] = np.nan
    sent = json.loads(
        plotly.io.to_json(
            themed_figure(LIGHT, heat.heatmap(given, 0, 1, LIGHT, colour=PATTERN), height=300),
            validate=False,
        )
    )
    trace = sent["data"][0]
    np.testing.assert_array_equal(array(trace["z"]), given)
    assert (trace["zmin"], trace["zmax"]) == (0, 1)
    assert sent["layout"]["template"]["data"]["heatmap"][0]["hoverongaps"] is False


@pytest.mark.parametrize("n_tokens", [1, 5, 64, 65, 256])
def test_equal_tokens_do_not_merge(n_tokens: int) -> None:
    names = axes.token_names(tokens(n_tokens, ("a",) * n_tokens))
    assert len(set(names)) == n_tokens
    assert all(name.split(" ")[1] == "a" for name in names)


@pytest.mark.parametrize("n_tokens", [1, 5, 20, 21, 40, 41, 64])
def test_single_characters_have_their_labels_at_their_places_and_none_touches_another_on_a_phone(
    n_tokens: int,
) -> None:
    # pixels that the picture is wide, and high
    given = tokens(n_tokens)
    phone = 230
    layout = layout_of(given)
    for axis, mark in ((layout.xaxis, "<br>"), (layout.yaxis, "\u00a0")):
        every = 1 if n_tokens <= 40 else 2
        assert list(axis.tickvals) == list(range(0, n_tokens, every))
        texts = [text.replace("<br>", "").replace("\u00a0", "") for text in axis.ticktext]
        assert texts == [given.labels[place] for place in axis.tickvals]
        for row in (True, False):  # labels that stand in one row, or in one column
            places = [
                place
                for place, text in zip(axis.tickvals, axis.ticktext, strict=True)
                if (mark in text) is row
            ]
            distances = [(after - before) * phone / n_tokens for before, after in pairwise(places)]
            assert all(
                distance > 0.9 * layout.template.layout.xaxis.tickfont.size
                for distance in distances
            )


@pytest.mark.parametrize("labels", [("a",) * 65, ("␣love", "b", "c"), ("日", "b", "c")])
def test_where_not_all_fit_plotly_chooses_the_labels(labels: tuple[str, ...]) -> None:
    layout = layout_of(tokens(len(labels), labels))
    assert layout.xaxis.tickvals is None
    assert layout.xaxis.type == layout.yaxis.type == "category"


def test_a_token_cannot_become_markup() -> None:
    names = axes.token_names(tokens(3, ("<b>", "&amp;", "</b>")))
    assert names[0].endswith("&lt;b&gt;")
    assert names[1].endswith("&amp;amp;")


def test_a_right_to_left_token_is_isolated_and_a_long_one_cut() -> None:
    names = axes.token_names(tokens(2, ("שלום", "x" * 100)))
    assert names[0] == "0 \u2068שלום\u2069"
    assert len(names[1]) < 25


@pytest.mark.parametrize("letters", [3, 12, 100])
def test_names_of_tokens_take_less_room_than_a_picture_has(letters: int) -> None:
    assert axes.token_room(tokens(50, ("x" * letters,) * 50)) < 140


def test_the_scale_starts_at_the_page_and_ends_at_the_same_hue_in_both_themes() -> None:
    light, dark = (
        heat.heatmap([[0.0]], 0, 1, theme, colour=PATTERN).colorscale for theme in (LIGHT, DARK)
    )
    assert light[1] == dark[1]
    assert light[0][1] != dark[0][1]


def steps(name: str, count: int, step: int = 1) -> Axis:
    return Axis(name, tuple(str(step * i) for i in range(count)))


def square(size: int = 4, step: int = 1) -> LabelledArray:
    values = np.random.default_rng(0).uniform(-1, 1, (size, size)).astype(np.float32)
    return LabelledArray(
        values,
        (steps("position", size, step), steps("other position", size, step)),
        "cosine similarity",
    )


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_scale_is_symmetric_about_zero_which_is_the_background(theme: Theme) -> None:
    heatmap = heat.signed_matrix(square(), theme, height=300, limit=2.5).data[0]
    assert (heatmap.zmin, heatmap.zmax) == (-2.5, 2.5)
    assert dict(heatmap.colorscale)[0.5] == theme.background
    assert tuple(heatmap.colorbar.ticktext) == ("−2.5", "0", "2.5")


def test_the_numbers_under_the_pointer_are_the_values() -> None:
    shown = square(step=3)
    heatmap = heat.signed_matrix(shown, LIGHT, height=300).data[0]
    assert (np.asarray(heatmap.z) == shown.values).all()
    assert tuple(heatmap.x) == (0, 3, 6, 9)


def test_the_framed_column_is_the_one_asked_for() -> None:
    frame = heat.signed_matrix(square(step=2), LIGHT, height=300, column=3).layout.shapes[0]
    assert (frame.x0, frame.x1) == (5, 7)
    assert not heat.signed_matrix(square(), LIGHT, height=300).layout.shapes


def test_a_wave_is_filled_above_and_below_zero_without_changing_its_values() -> None:
    values = np.array([0.5, -1.0, 0.0, 2.0], np.float32)
    figure = lines.wave(
        LabelledArray(values, (steps("position", 4),), "value"), LIGHT, height=200, limit=2
    )
    above, below, line = figure.data
    assert (np.asarray(line.y) == values).all()
    assert (np.asarray(above.y) + np.asarray(below.y) == values).all()
    assert (np.asarray(above.y) >= 0).all()
    assert (np.asarray(below.y) <= 0).all()
    assert figure.layout.yaxis.range[0] == -figure.layout.yaxis.range[1]


def test_each_line_of_a_fan_is_named_where_it_leaves_the_picture() -> None:
    values = -np.outer([1.0, 0.1], np.arange(11))
    figure = lines.fan(
        LabelledArray(values, (steps("head", 2), steps("distance", 11)), "added"),
        LIGHT,
        height=200,
        floor=-4,
    )
    assert [(note.text, note.x, note.y) for note in figure.layout.annotations] == [
        ("head 0", 5, -4),
        ("head 1", 10, -1),
    ]
    assert len({trace.line.dash for trace in figure.data}) == 2
