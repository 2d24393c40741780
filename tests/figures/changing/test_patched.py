"""Heatmaps of what patches restore: one scale, every cell its own words, and clicks that name a cell."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.changing import patched
from gptviz.figures.changing.patched import restored
from gptviz.figures.kit.theme import DARK, LIGHT, Theme
from gptviz.labelled_array import Axis, LabelledArray


def shares(blocks: int = 2, places: int = 3, name: str = "position") -> LabelledArray:
    values = np.linspace(-1.5, 1.5, blocks * places).reshape(blocks, places)
    axes = Axis("block", tuple(map(str, range(blocks)))), Axis(name, tuple(f"<b>{i}" for i in range(places)))
    return LabelledArray(values, axes, "share")


def words(array: LabelledArray) -> list[list[str]]:
    return [[f"<i>{row}\n{column}" for column in range(array.values.shape[1])] for row in range(array.values.shape[0])]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_every_map_has_the_same_scale_and_each_cell_its_words(theme: Theme) -> None:
    array = shares()
    figure = restored(array, theme, title="Output", words=words(array))
    drawn, written, clicked = figure.data
    assert list(written.text) == ["−150", "−90", "−30", "30", "90", "150"]
    assert (drawn.zmin, drawn.zmax) == (-1, 1)
    np.testing.assert_allclose(drawn.z, array.values, rtol=1e-6)
    assert drawn.customdata[1][2] == "&lt;i&gt;1<br>2"
    for x, y, text, (row, column) in zip(clicked.x, clicked.y, clicked.text, clicked.customdata, strict=True):
        assert (x, y) == (column, row)
        assert text == f"&lt;i&gt;{row}<br>{column}"
    assert len(clicked.x) == 6
    assert all("<" not in label for label in figure.layout.xaxis.ticktext)


def test_columns_before_the_first_are_left_out_and_the_others_keep_their_numbers() -> None:
    array = shares(places=5)
    figure = restored(array, LIGHT, title="Stream", words=words(array), first=3, marked=[3], chosen=(1, 4))
    drawn, written, clicked, marks = figure.data
    assert list(written.x) == [3, 4, 3, 4], "each number in its cell"
    np.testing.assert_allclose(drawn.z, array.values[:, 3:], rtol=1e-6)
    assert list(drawn.x) == [3, 4]
    assert [place for _, place in clicked.customdata] == [3, 4, 3, 4]
    assert list(marks.x) == [3]
    assert list(figure.layout.xaxis.range) == [2.5, 4.5]
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].y1) == (3.5, 1.5)


def test_a_large_map_has_no_marks_to_click_and_labels_that_do_not_overlap() -> None:
    array = shares(blocks=30, places=256)
    figure = restored(array, LIGHT, title="Stream", words=words(array))
    assert len(figure.data) == 1
    assert len(figure.layout.xaxis.ticktext) <= patched.MOST_WORDS
    assert len(figure.layout.yaxis.ticktext) <= patched.MOST_CHARACTERS
    assert figure.layout.height < 600


def test_a_key_head_is_named_with_all_the_heads_that_it_serves_and_has_room_for_it() -> None:
    names = tuple(f"{i} (heads {3 * i}–{3 * i + 2})" for i in range(12))
    shares = LabelledArray(np.zeros((2, 12)), (Axis("block", ("0", "1")), Axis("key head", names)), "share")
    layout = restored(shares, LIGHT, title="Keys", words=[[""] * 12] * 2).layout
    assert [text.strip("\u2068\u2069") for text in layout.xaxis.ticktext] == list(names)
    assert layout.margin.b >= 22 + 7.2 * 0.87 * max(map(len, names)), "characters of 7.2 pixels that lean by 60 degrees"
