"""What a change does, drawn: two subjects side by side, patches, fewer bits, the strength of an
adapter, many prompts.
"""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.changing import patched
from gptviz.figures.changing.compared import differences, movers, pairs
from gptviz.figures.changing.fewer_bits import MOST_NUMBERED, matrix_errors
from gptviz.figures.changing.over_prompts import SHOWN, over_prompts
from gptviz.figures.changing.patched import draw_restored
from gptviz.figures.changing.strength import losses, singular_values
from gptviz.figures.kit.theme import DARK, KEY, LIGHT, QUERY, Theme
from gptviz.labelled_array import Axis, LabelledArray

TOKENS = Axis("token", ("a", "b", "c", "d"))


def of(values: list[float]) -> LabelledArray:
    return LabelledArray(np.array(values), (TOKENS,), "probability")


def test_what_b_has_more_of_is_blue_and_to_the_right_what_a_has_more_of_orange_and_to_the_left() -> (
    None
):
    figure = differences(of([0.25, -0.5, 0.0, np.nan]), LIGHT, limit=0.5, percent=True)
    (bars,) = figure.data
    assert list(bars.x) == [0.25, -0.5, 0, 0]
    assert list(bars.marker.color)[:2] == [QUERY, KEY]
    assert list(bars.text) == ["+25.0 %", "−50.0 %", "0 %", "only in one"]
    low, high = figure.layout.xaxis.range
    assert low == -high < -0.5


def test_the_bars_of_both_have_their_own_numbers_on_a_scale_that_holds_the_largest() -> None:
    one = of([0.25, 0.5, 0.0, np.nan])
    other = of([0.75, 0.125, 0.0, 0.125])
    figure = pairs(one, other, LIGHT, limit=0.75, percent=True)
    for bars, name, given in zip(figure.data, "AB", (one, other), strict=True):
        assert bars.name == name
        assert list(bars.x) == np.nan_to_num(given.values).tolist()
    assert figure.data[0].text[-1] == "has none"
    assert figure.layout.xaxis.range[1] > 0.75


def test_tokens_that_moved_are_joined_from_where_they_are_in_a_to_where_they_are_in_b() -> None:
    axes = TOKENS, Axis("component", ("1", "2"))
    a = LabelledArray(np.array([[0, 0], [1, 0], [0, 1], [1, 1]], float), axes, "coordinate")
    b = LabelledArray(
        a.values + np.array([[0, 0], [3, 0], [0, 0], [0, 1]], float), axes, "coordinate"
    )
    lines = movers(a, b, of([0, 3, 0, 1]), LIGHT, height=300).data[0]
    assert list(zip(lines.x, lines.y, strict=True)) == [
        (1, 0),
        (4, 0),
        (None, None),
        (1, 1),
        (1, 2),
        (None, None),
    ]


@pytest.mark.parametrize("percent", [True, False])
def test_a_distance_has_one_side_and_no_sign(percent: bool) -> None:
    figure = differences(
        of([0.25, 0.5, 0.0, 0.125]), LIGHT, limit=0.5, percent=percent, signed=False
    )
    assert figure.layout.xaxis.range[0] == 0
    assert not any("+" in text for text in figure.data[0].text)


def shares(blocks: int = 2, places: int = 3, name: str = "position") -> LabelledArray:
    values = np.linspace(-1.5, 1.5, blocks * places).reshape(blocks, places)
    axes = (
        Axis("block", tuple(map(str, range(blocks)))),
        Axis(name, tuple(f"<b>{i}" for i in range(places))),
    )
    return LabelledArray(values, axes, "share")


def words_of(array: LabelledArray) -> list[list[str]]:
    return [
        [f"<i>{row}\n{column}" for column in range(array.values.shape[1])]
        for row in range(array.values.shape[0])
    ]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_every_map_has_the_same_scale_and_each_cell_its_words(theme: Theme) -> None:
    array = shares()
    figure = draw_restored(array, theme, title="Output", words=words_of(array))
    drawn, written, clicked = figure.data
    assert list(written.text) == ["−150 %", "−90 %", "−30 %", "30 %", "90 %", "150 %"]
    assert (drawn.zmin, drawn.zmax) == (-1, 1)
    np.testing.assert_allclose(drawn.z, array.values, rtol=1e-6)
    assert drawn.customdata[1][2] == "&lt;i&gt;1<br>2"
    for x, y, text, (row, column) in zip(
        clicked.x, clicked.y, clicked.text, clicked.customdata, strict=True
    ):
        assert (x, y) == (column, row)
        assert text == f"&lt;i&gt;{row}<br>{column}"
    assert len(clicked.x) == 6
    assert all("<" not in label for label in figure.layout.xaxis.ticktext)


def test_columns_before_the_first_are_left_out_and_the_others_keep_their_numbers() -> None:
    array = shares(places=5)
    figure = draw_restored(
        array, LIGHT, title="Stream", words=words_of(array), first=3, marked=[3], chosen=(1, 4)
    )
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
    figure = draw_restored(array, LIGHT, title="Stream", words=words_of(array))
    assert len(figure.data) == 1
    assert len(figure.layout.xaxis.ticktext) <= patched.MOST_WORDS
    assert len(figure.layout.yaxis.ticktext) <= patched.MOST_CHARACTERS
    assert figure.layout.height < 600


def test_a_key_head_is_named_with_all_the_heads_that_it_serves_and_has_room_for_it() -> None:
    names = tuple(f"{i} (heads {3 * i}–{3 * i + 2})" for i in range(12))
    shares = LabelledArray(
        np.zeros((2, 12)), (Axis("block", ("0", "1")), Axis("key head", names)), "share"
    )
    layout = draw_restored(shares, LIGHT, title="Keys", words=[[""] * 12] * 2).layout
    assert [text.strip("\u2068\u2069") for text in layout.xaxis.ticktext] == list(names)
    assert layout.margin.b >= 22 + 7.2 * 0.87 * max(map(len, names)), (
        "characters of 7.2 pixels that lean by 60 degrees"
    )


def table(values: list[list[float]]) -> LabelledArray:
    blocks = Axis("block", tuple(map(str, range(len(values)))))
    return LabelledArray(
        np.array(values), (blocks, Axis("matrix", ("attention.qkv", "mlp.<b>"))), "relative error"
    )


def test_the_cells_are_the_errors_in_percent_and_a_missing_matrix_is_blank() -> None:
    found = matrix_errors(table([[0.1234, 0.5], [np.nan, 0.25]]), LIGHT)
    drawn, texts = found.data
    # blocks side by side
    np.testing.assert_allclose(drawn.z, [[0.1234, np.nan], [0.5, 0.25]], rtol=1e-6)
    assert (drawn.zmin, drawn.zmax) == (0, 0.5)
    assert list(texts.text) == ["12.3", "50", "25"]
    assert list(drawn.colorbar.ticktext) == ["0", "25", "50"]
    assert "<b>" not in "".join(found.layout.yaxis.ticktext)


def test_no_error_at_all_is_drawn_too_and_many_blocks_have_no_numbers_in_their_cells() -> None:
    assert matrix_errors(table([[0.0, 0.0]]), LIGHT).data[0].zmax > 0
    many = matrix_errors(table([[0.1, 0.2]] * (MOST_NUMBERED + 1)), LIGHT)
    assert len(many.data) == 1


def test_errors_that_would_all_be_dark_begin_at_the_smallest_and_the_scale_says_so() -> None:
    found = matrix_errors(table([[0.09, 0.1], [0.12, 0.11]]), LIGHT)
    assert (found.data[0].zmin, found.data[0].zmax) == (0.09, 0.12)
    assert list(found.data[0].colorbar.ticktext) == ["9", "10.5", "12"]
    assert "not from 0" in "".join(one.text for one in found.layout.annotations)
    even = matrix_errors(table([[0.1, 0.1]]), LIGHT)
    assert (even.data[0].zmin, even.data[0].zmax) == (0, 0.1)
    assert "not from 0" not in "".join(one.text for one in even.layout.annotations)


TABLE = LabelledArray(
    np.array([[3.0, 2.0, 2.5], [1.0, 1.5, 4.0]]),
    (Axis("text", ("new", "old")), Axis("strength", ("0", "1", "2"))),
    "nats per token",
)


def test_each_text_is_a_line_over_the_strength_and_the_one_on_screen_is_marked_on_both() -> None:
    figure = losses(TABLE, LIGHT, height=300, at=1.0)
    lines = [one for one in figure.data if one.mode == "lines+markers"]
    assert [one.name.strip("\u2068\u2069") for one in lines] == ["new", "old"]
    assert len({one.line.dash for one in lines}) == 2
    for line, values in zip(lines, TABLE.values, strict=True):
        assert list(line.x) == [0, 1, 2]
        assert list(line.y) == values.tolist()
    points = [(one.x[0], one.y[0]) for one in figure.data if one.mode == "markers"]
    assert points == [(1, 2.0), (1, 1.5)]
    assert {(one.x, one.text) for one in figure.layout.annotations} == {(0, "base"), (1, "tuned")}


def test_a_strength_that_was_not_computed_is_not_marked() -> None:
    assert (
        len(losses(TABLE, LIGHT, height=300, at=0.3).data)
        == len(losses(TABLE, LIGHT, height=300, at=None).data)
        == 2
    )


def test_singular_values_are_bars_from_zero_in_their_order() -> None:
    values = LabelledArray(
        np.array([2.0, 0.5, 0.0]), (Axis("number", ("1", "2", "3")),), "singular value"
    )
    (bars,) = singular_values(values, LIGHT, height=200).data
    assert (list(bars.x), list(bars.y)) == ([1, 2, 3], [2.0, 0.5, 0.0])


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_each_unit_has_its_mean_its_deviation_and_the_prompt_on_screen(theme: Theme) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 20))
    here = rng.normal(size=20)
    values[1] = np.abs(values[1])
    values[1, 3] = np.nan  # of a single prompt
    here[5] = np.nan
    spread = LabelledArray(
        values,
        (Axis("number", ("mean", "sd", "same")), Axis("unit", tuple(f"<b>{i}" for i in range(20)))),
        "",
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
    assert [
        text.endswith(str(i))
        for text, i in zip(figure.layout.yaxis.ticktext, expected, strict=True)
    ] == [True] * SHOWN
    assert all("<" not in text for text in figure.layout.yaxis.ticktext)
    assert figure.layout.xaxis.title.text == "share"
