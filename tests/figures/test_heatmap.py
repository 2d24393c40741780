"""The heatmaps of attention: what they carry equals what they were given, on one scale, in little room."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import plotly.io
import pytest

from gptviz.figures import heatmap
from gptviz.figures.theme import DARK, LIGHT, sequential
from gptviz.labelled import Axis, Labelled


def pattern(n_tokens: int, labels: tuple[str, ...] | None = None, causal: bool = True, seed: int = 0) -> Labelled:
    values = np.random.default_rng(seed).random((n_tokens, n_tokens), np.float32) ** 8
    if causal:
        values[np.triu_indices(n_tokens, 1)] = np.nan
    names = labels or tuple("abcdefgh"[i % 8] for i in range(n_tokens))
    return Labelled(values, (Axis("query (reads)", names), Axis("key (is read)", names)), "share")


def thumbnails(n_block: int, n_head: int, side: int) -> Labelled:
    values = np.random.default_rng(1).random((n_block, n_head, side, side), np.float32)
    values[..., *np.triu_indices(side, 1)] = np.nan
    sizes = (("block", n_block), ("head", n_head), ("query", side), ("key", side))
    return Labelled(values, tuple(Axis(name, tuple(map(str, range(size)))) for name, size in sizes), "share")


def notes(n_block: int, n_head: int) -> list[list[str]]:
    return [[f"note {block}.{head}" for head in range(n_head)] for block in range(n_block)]


def wire(figure: Any) -> tuple[dict[str, Any], int]:
    """The figure as it travels, decoded, and its size in bytes."""
    text = plotly.io.to_json(figure, validate=False)
    return json.loads(text), len(text.encode())


def array(encoded: dict[str, str]) -> np.ndarray:
    flat = np.frombuffer(base64.b64decode(encoded["bdata"]), np.dtype(encoded["dtype"]))
    return flat.reshape([int(size) for size in encoded["shape"].split(",")])


@pytest.mark.parametrize("log", [False, True])
def test_the_numbers_that_travel_are_the_numbers_given_and_masked_cells_are_blank(log: bool) -> None:
    given = pattern(20)
    sent, _ = wire(heatmap.one_head(given, LIGHT, title="t", log=log))
    trace = sent["data"][0]
    np.testing.assert_array_equal(array(trace["z"]), given.values)
    assert (trace["zmin"], trace["zmax"]) == (0, 1)
    assert trace["hoverongaps"] is False


def test_queries_run_down_and_keys_to_the_right_in_square_cells() -> None:
    layout = heatmap.one_head(pattern(20), LIGHT, title="t").layout
    assert layout.yaxis.autorange == "reversed"
    assert layout.yaxis.scaleanchor == "x"
    assert layout.yaxis.title.text == "query (reads)"
    assert layout.xaxis.title.text == "key (is read)"


@pytest.mark.parametrize("n_tokens", [1, 5, 64, 65, 256])
def test_equal_tokens_do_not_merge(n_tokens: int) -> None:
    trace = heatmap.one_head(pattern(n_tokens, ("a",) * n_tokens), LIGHT, title="t").data[0]
    assert len(set(trace.x)) == len(set(trace.y)) == n_tokens
    assert all(name.split(" ")[1] == "a" for name in trace.x)


@pytest.mark.parametrize("n_tokens", [5, 40, 64])
def test_every_single_character_has_its_label_at_its_position(n_tokens: int) -> None:
    given = pattern(n_tokens)
    layout = heatmap.one_head(given, LIGHT, title="t").layout
    for axis in (layout.xaxis, layout.yaxis):
        assert list(axis.tickvals) == list(range(n_tokens))
        assert tuple(text.replace("<br>", "").replace("\u00a0", "") for text in axis.ticktext) == given.axes[0].labels


def test_neighbouring_labels_stand_in_different_rows_once_they_would_touch() -> None:
    assert not any("<br>" in text for text in heatmap.one_head(pattern(24), LIGHT, title="t").layout.xaxis.ticktext)
    layout = heatmap.one_head(pattern(64), LIGHT, title="t").layout
    assert [text.startswith("<br>") for text in layout.xaxis.ticktext] == [index % 2 == 1 for index in range(64)]
    assert [text.endswith("\u00a0") for text in layout.yaxis.ticktext] == [index % 2 == 1 for index in range(64)]


@pytest.mark.parametrize("labels", [("a",) * 65, ("␣love", "b", "c"), ("日", "b", "c")])
def test_where_not_all_fit_plotly_chooses_the_labels(labels: tuple[str, ...]) -> None:
    layout = heatmap.one_head(pattern(len(labels), labels), LIGHT, title="t").layout
    assert layout.xaxis.tickvals is None
    assert layout.xaxis.type == layout.yaxis.type == "category"


def test_a_token_cannot_become_markup() -> None:
    trace = heatmap.one_head(pattern(3, ("<b>", "&amp;", "</b>")), LIGHT, title="t").data[0]
    assert trace.x[0].endswith("&lt;b&gt;")
    assert trace.x[1].endswith("&amp;amp;")


def test_a_right_to_left_token_is_isolated_and_a_long_one_cut() -> None:
    trace = heatmap.one_head(pattern(2, ("שלום", "x" * 100)), LIGHT, title="t").data[0]
    assert trace.x[0] == "0 \u2068שלום\u2069"
    assert len(trace.x[1]) < 25


def test_on_the_logarithmic_scale_equal_ratios_are_equal_steps_and_the_legend_says_so() -> None:
    linear, log = (heatmap.one_head(pattern(9), LIGHT, title="t", log=flag) for flag in (False, True))
    stops = [stop for stop, _ in log.data[0].colorscale]
    assert stops[0] == 0
    assert stops[1] == pytest.approx(heatmap.LOG_FLOOR)
    assert stops[-1] == pytest.approx(1)
    np.testing.assert_allclose(np.diff(np.log(stops[1:])), np.log(1000) / (len(stops) - 2))
    bar = log.data[1].marker.colorbar
    ticks = dict(zip(bar.ticktext, bar.tickvals, strict=True))
    assert ticks == pytest.approx({"≤ 0.1%": 0, "1%": 1 / 3, "10%": 2 / 3, "100%": 1})
    assert "log" in bar.title.text
    assert "log" not in linear.data[1].marker.colorbar.title.text
    assert [list(stop) for stop in linear.data[0].colorscale] == [list(stop) for stop in linear.data[1].marker.colorscale]


def test_title_and_notes_stand_in_the_blank_corner_or_the_title_above() -> None:
    causal = heatmap.one_head(pattern(6), LIGHT, title="Block 0, head 1", notes=("a note",)).layout
    full = heatmap.one_head(pattern(6, causal=False), LIGHT, title="Block 0, head 1", notes=("a note",)).layout
    assert "Block 0, head 1" in causal.annotations[0].text
    assert "a note" in causal.annotations[1].text
    assert full.title.text.startswith("Block 0, head 1")
    assert not full.annotations


def test_the_scale_starts_at_the_page_and_ends_at_the_same_hue_in_both_themes() -> None:
    given = pattern(6)
    light, dark = (heatmap.one_head(given, theme, title="t").data[0].colorscale for theme in (LIGHT, DARK))
    assert light[1] == dark[1]
    assert light[0][1] != dark[0][1]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 7), (3, 2, 40)])
def test_the_stitched_picture_holds_every_thumbnail_and_is_blank_between(shape: tuple[int, int, int], log: bool) -> None:
    n_block, n_head, side = shape
    given = thumbnails(*shape)
    given.values[..., 0, 0] = 1e-4
    picture, pitch = heatmap.stitch(given, log=log)
    assert picture.dtype == np.uint8
    assert picture.shape == (n_block * pitch - (pitch - side), n_head * pitch - (pitch - side))
    covered = np.zeros(picture.shape, bool)
    for block in range(n_block):
        for head in range(n_head):
            for i in range(side):
                for j in range(side):
                    level, share = picture[block * pitch + i, head * pitch + j], given.values[block, head, i, j]
                    covered[block * pitch + i, head * pitch + j] = True
                    if np.isnan(share):
                        assert level == heatmap.BLANK
                    else:
                        shade = max(0, 1 + np.log10(share) / 3) if log else share
                        assert level >= 1
                        assert abs((level - 1) / heatmap.SHADES - shade) <= 0.5 / heatmap.SHADES + 1e-6
    assert (picture[~covered] == heatmap.BLANK).all()


def test_the_glance_is_on_the_scale_of_the_large_head_and_its_blank_is_transparent() -> None:
    scale = heatmap.all_heads(thumbnails(2, 3, 7), DARK, (0, 0), notes(2, 3)).data[0].colorscale
    assert scale[0] == (0, "rgba(0, 0, 0, 0)")
    expected = [(1 + heatmap.SHADES * at, colour) for at, colour in sequential(heatmap.PATTERN, DARK)]
    assert [(round(at * (1 + heatmap.SHADES), 6), colour) for at, colour in scale[1:]] == expected


def test_thumbnail_outline_marker_and_note_of_a_head_are_at_one_place() -> None:
    figure = heatmap.all_heads(thumbnails(3, 4, 9), LIGHT, (2, 1), notes(3, 4))
    picture, marks = figure.data
    outline = figure.layout.shapes[0]
    assert (outline.x0, outline.x1, outline.y0, outline.y1) == (0.5, 1.5, 1.5, 2.5)
    spots = {tuple(data): (x, y, text) for data, x, y, text in zip(marks.customdata, marks.x, marks.y, marks.text, strict=True)}
    assert spots[2, 1][:2] == (1, 2)
    assert "block 2, head 1" in spots[2, 1][2]
    assert "note 2.1" in spots[2, 1][2]
    _, pitch = heatmap.stitch(thumbnails(3, 4, 9))
    middle = [picture.x0 + (pitch + 4) * picture.dx, picture.y0 + (2 * pitch + 4) * picture.dy]  # cell (4, 4) of 9 × 9
    assert middle == pytest.approx([1, 2])


def test_all_heads_of_a_large_model_and_the_chosen_one_travel_in_less_than_a_megabyte() -> None:
    _, glance = wire(heatmap.all_heads(thumbnails(12, 12, 22), LIGHT, (0, 0), notes(12, 12)))
    assert glance < 200_000
    _, large = wire(heatmap.one_head(pattern(256), LIGHT, title="t"))
    assert large < 500_000
