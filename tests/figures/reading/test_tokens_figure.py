"""Tokens: a merge stands above what it joins; how often they come; bars, curves and waves have the
values they are given.
"""

from __future__ import annotations

import numpy as np

from gptviz.figures.kit.theme import LIGHT
from gptviz.figures.reading.frequencies import MOST, frequencies
from gptviz.figures.reading.tokens import FIELDS, costs, height_of, shrinking, tree
from gptviz.figures.reading.waves import powers
from gptviz.labelled_array import Axis, LabelledArray

# "abc" and then "abcd" of the symbols a, b, c, d, e: first b and c, then a, then d.
MERGES = LabelledArray(
    np.array([[1, 2, 3, 7], [0, 1, 3, 9], [0, 3, 4, 20]]),
    (Axis("merge", ("bc", "abc", "abcd")), Axis("of it", FIELDS)),
    "place",
)


def places(shown: int) -> dict[str, tuple[float, float]]:
    figure = tree("abcde", MERGES, LIGHT, height=300, shown=shown)
    return {one.text: (one.x, one.y) for one in figure.layout.annotations}


def test_a_merge_stands_between_and_above_what_it_joins() -> None:
    at = places(3)
    assert [at[symbol] for symbol in "abcde"] == [(place, 0) for place in range(5)]
    assert (at["bc"], at["abc"], at["abcd"]) == ((1.5, 1), (0.75, 2), (1.875, 3))
    assert height_of(MERGES, 5) == 3


def test_what_is_not_merged_yet_is_not_drawn_but_has_its_room() -> None:
    assert places(1).keys() == {*"abcde", "bc"}
    heights = [
        tree("abcde", MERGES, LIGHT, height=300, shown=shown).layout.yaxis.range for shown in (0, 3)
    ]
    assert heights[0] == heights[1]


def test_a_token_is_no_markup() -> None:
    merges = LabelledArray(
        np.array([[0, 1, 2, 0]]), (Axis("merge", ("<b>",)), Axis("of it", FIELDS)), "place"
    )
    assert "<b>" not in tree(["<", "b>"], merges, LIGHT, height=300, shown=1).to_json()


def test_bars_have_their_values_and_what_cannot_be_read_has_none() -> None:
    values = np.array([[1.0, 1.0], [2.5, np.nan]])
    times = LabelledArray(
        values, (Axis("text", ("English", "Hindi")), Axis("tokenizer", ("a", "b"))), "tokens"
    )
    first, second = costs(times, LIGHT, height=300).data
    assert (list(first.y), list(first.text)) == ([1.0, 2.5], ["1.0×", "2.5×"])
    assert list(second.text) == ["1.0×", ""]


def test_the_mark_is_on_the_curve() -> None:
    values = LabelledArray(
        np.array([1.0, 1.5, 1.75]), (Axis("merges", ("0", "1", "2")),), "bytes per token"
    )
    line, mark = shrinking(values, LIGHT, height=300, chosen=1).data
    assert list(line.y) == [1.0, 1.5, 1.75]
    assert (list(mark.x), list(mark.y)) == ([1], [1.5])


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


def test_each_part_has_a_bar_for_each_frequency() -> None:
    values = np.array([[0.1, 0.2, 0.7], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    axes = Axis("part", ("embedding", "neurons", "logits")), Axis("frequency", ("1", "2", "3"))
    figure = powers(LabelledArray(values, axes, "share"), LIGHT, height=300)
    assert [bar.name for bar in figure.data] == list(axes[0].labels)
    for bar, row in zip(figure.data, values, strict=True):
        assert list(bar.x) == [1, 2, 3]
        np.testing.assert_array_equal(bar.y, row)
    assert len({(bar.marker.color, bar.marker.pattern.shape) for bar in figure.data}) == 3
