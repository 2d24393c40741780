"""The heatmaps of attention and signed ones: what they carry equals what they were given, on one scale, in little room."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.io
import pytest

from gptviz.figures.kit import heat, lines
from gptviz.figures.kit.heat import attention_pattern
from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.labelled_array import Axis, LabelledArray


def pattern(n_tokens: int, labels: tuple[str, ...] | None = None, causal: bool = True, seed: int = 0) -> LabelledArray:
    values = np.random.default_rng(seed).random((n_tokens, n_tokens), np.float32) ** 8
    if causal:
        values[np.triu_indices(n_tokens, 1)] = np.nan
    names = labels or tuple("abcdefgh"[i % 8] for i in range(n_tokens))
    return LabelledArray(values, (Axis("query (reads)", names), Axis("key (is read)", names)), "share")


def wire(figure: Any) -> tuple[dict[str, Any], int]:
    """The figure as it travels, decoded, and its size in bytes."""
    text = plotly.io.to_json(figure, validate=False)
    return json.loads(text), len(text.encode())


def array(encoded: dict[str, str]) -> np.ndarray:
    flat = np.frombuffer(base64.b64decode(encoded["bdata"]), np.dtype(encoded["dtype"]))
    return flat.reshape([int(size) for size in encoded["shape"].split(",")])


def test_the_numbers_that_travel_are_the_numbers_given_and_masked_cells_are_blank() -> None:
    given = pattern(20)
    sent, _ = wire(attention_pattern(given, LIGHT, title="t"))
    trace = sent["data"][0]
    np.testing.assert_array_equal(array(trace["z"]), given.values)
    assert (trace["zmin"], trace["zmax"]) == (0, 1)
    assert sent["layout"]["template"]["data"]["heatmap"][0]["hoverongaps"] is False


def test_queries_run_down_and_keys_to_the_right_in_square_cells() -> None:
    layout = attention_pattern(pattern(20), LIGHT, title="t").layout
    assert layout.yaxis.autorange == "reversed"
    assert layout.yaxis.scaleanchor == "x"
    assert layout.yaxis.title.text == "query (reads)"
    assert layout.xaxis.title.text == "key (is read)"


@pytest.mark.parametrize("n_tokens", [1, 5, 64, 65, 256])
def test_equal_tokens_do_not_merge(n_tokens: int) -> None:
    trace = attention_pattern(pattern(n_tokens, ("a",) * n_tokens), LIGHT, title="t").data[0]
    assert len(set(trace.x)) == len(set(trace.y)) == n_tokens
    assert all(name.split(" ")[1] == "a" for name in trace.x)


@pytest.mark.parametrize("n_tokens", [1, 5, 20, 21, 40, 41, 64])
def test_single_characters_have_their_labels_at_their_places_and_none_touches_another_on_a_phone(n_tokens: int) -> None:
    given, phone = pattern(n_tokens), 230  # pixels that the picture is wide, and high
    layout = attention_pattern(given, LIGHT, title="t").layout
    for axis, mark in ((layout.xaxis, "<br>"), (layout.yaxis, "\u00a0")):
        every = 1 if n_tokens <= 40 else 2
        assert list(axis.tickvals) == list(range(0, n_tokens, every))
        texts = [text.replace("<br>", "").replace("\u00a0", "") for text in axis.ticktext]
        assert texts == [given.axes[0].labels[place] for place in axis.tickvals]
        for row in (True, False):  # labels that stand in one row, or in one column
            places = [place for place, text in zip(axis.tickvals, axis.ticktext, strict=True) if (mark in text) is row]
            distances = [(after - before) * phone / n_tokens for before, after in pairwise(places)]
            assert all(distance > 0.9 * layout.template.layout.xaxis.tickfont.size for distance in distances)


@pytest.mark.parametrize("labels", [("a",) * 65, ("␣love", "b", "c"), ("日", "b", "c")])
def test_where_not_all_fit_plotly_chooses_the_labels(labels: tuple[str, ...]) -> None:
    layout = attention_pattern(pattern(len(labels), labels), LIGHT, title="t").layout
    assert layout.xaxis.tickvals is None
    assert layout.xaxis.type == layout.yaxis.type == "category"


def test_a_token_cannot_become_markup() -> None:
    trace = attention_pattern(pattern(3, ("<b>", "&amp;", "</b>")), LIGHT, title="t").data[0]
    assert trace.x[0].endswith("&lt;b&gt;")
    assert trace.x[1].endswith("&amp;amp;")


def test_a_right_to_left_token_is_isolated_and_a_long_one_cut() -> None:
    trace = attention_pattern(pattern(2, ("שלום", "x" * 100)), LIGHT, title="t").data[0]
    assert trace.x[0] == "0 \u2068שלום\u2069"
    assert len(trace.x[1]) < 25


def test_the_title_stands_in_the_blank_corner_or_above() -> None:
    causal = attention_pattern(pattern(6), LIGHT, title="Block 0, head 1").layout
    full = attention_pattern(pattern(6, causal=False), LIGHT, title="Block 0, head 1").layout
    words = attention_pattern(pattern(6, ("word",) * 6), LIGHT, title="Block 0, head 1").layout
    for layout, anchor in ((causal, "top"), (full, "bottom"), (words, "bottom")):
        assert "Block 0, head 1" in layout.annotations[0].text
        assert layout.annotations[0].yanchor == anchor, "from the upper edge of the cells down, or up"
    assert "may not be read" in words.annotations[0].text
    assert "may not be read" not in full.annotations[0].text


@pytest.mark.parametrize("letters", [3, 12, 100])
def test_names_of_tokens_take_less_room_than_the_picture_has(letters: int) -> None:
    margin = attention_pattern(pattern(50, ("x" * letters,) * 50), LIGHT, title="t", height=440).layout.margin
    for least, most in ((margin.l, 340), (margin.t + margin.b, 440)):
        assert most - least > 200


def test_the_scale_starts_at_the_page_and_ends_at_the_same_hue_in_both_themes() -> None:
    given = pattern(6)
    light, dark = (attention_pattern(given, theme, title="t").data[0].colorscale for theme in (LIGHT, DARK))
    assert light[1] == dark[1]
    assert light[0][1] != dark[0][1]


def test_a_large_head_travels_in_less_than_half_a_megabyte() -> None:
    _, large = wire(attention_pattern(pattern(256), LIGHT, title="t"))
    assert large < 500_000


def steps(name: str, count: int, step: int = 1) -> Axis:
    return Axis(name, tuple(str(step * i) for i in range(count)))


def square(size: int = 4, step: int = 1) -> LabelledArray:
    values = np.random.default_rng(0).uniform(-1, 1, (size, size)).astype(np.float32)
    return LabelledArray(values, (steps("position", size, step), steps("other position", size, step)), "cosine similarity")


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
    figure = lines.wave(LabelledArray(values, (steps("position", 4),), "value"), LIGHT, height=200, limit=2)
    above, below, line = figure.data
    assert (np.asarray(line.y) == values).all()
    assert (np.asarray(above.y) + np.asarray(below.y) == values).all()
    assert (np.asarray(above.y) >= 0).all()
    assert (np.asarray(below.y) <= 0).all()
    assert figure.layout.yaxis.range[0] == -figure.layout.yaxis.range[1]


def test_each_line_of_a_fan_is_named_where_it_leaves_the_picture() -> None:
    values = -np.outer([1.0, 0.1], np.arange(11))
    figure = lines.fan(LabelledArray(values, (steps("head", 2), steps("distance", 11)), "added"), LIGHT, height=200, floor=-4)
    assert [(note.text, note.x, note.y) for note in figure.layout.annotations] == [("head 0", 5, -4), ("head 1", 10, -1)]
    assert len({trace.line.dash for trace in figure.data}) == 2
