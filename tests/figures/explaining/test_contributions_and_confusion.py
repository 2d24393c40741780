"""Bars of what words add, and the square of what was taken for what."""

from __future__ import annotations

import numpy as np
import pytest

from gptviz.figures.explaining.contributions import MOST_NUMBERED, contributions
from gptviz.figures.kit.theme import DARK, KEY, LIGHT, QUERY, STREAM, Theme
from gptviz.figures.reading.confusion import confusion, distances
from gptviz.figures.reading.labels import labels
from gptviz.labelled_array import Axis, LabelledArray

HOSTILE = "<b>good</b>"


def shares(values: list[float], words: list[str] | None = None) -> LabelledArray:
    names = words or [f"word{i}" for i in range(len(values))]
    return LabelledArray(np.array(values), (Axis("word", tuple(names)),), "logit")


def square(counts: list[list[int]], names: tuple[str, ...]) -> LabelledArray:
    return LabelledArray(
        np.array(counts), (Axis("label", names), Axis("predicted", names)), "texts"
    )


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_each_bar_is_as_high_as_its_share_and_coloured_by_its_sign(theme: Theme) -> None:
    bars = contributions(shares([0.5, -1.0, 2.0]), theme, above="positive", below="negative").data[
        0
    ]
    assert list(bars.y) == [0.5, -1.0, 2.0]
    assert list(bars.marker.color) == [STREAM, KEY, QUERY]
    assert list(bars.text) == ["+0.50", "−1.00", "+2.00"]


def test_a_word_that_comes_twice_has_two_bars() -> None:
    bars = contributions(
        shares([0, 1, 2, 3], ["(bias)", "so", "so", "so"]), LIGHT, above="a", below="b"
    ).data[0]
    assert len(set(bars.x)) == 4
    assert [name.replace("\u200b", "") for name in bars.x[1:]] == ["so", "so", "so"]


@pytest.mark.parametrize("values", [[0.1, -3.0, 1.0], [0.2, 0.3], [-0.2, -5.0]])
def test_every_bar_has_room_and_zero_stands_off_the_edges(values: list[float]) -> None:
    low, high = contributions(shares(values), LIGHT, above="a", below="b").layout.yaxis.range
    assert low < min(values)
    assert high > max(values)
    assert 0.1 < -low / (high - low) < 0.9


def test_nothing_but_zeros_still_has_an_axis() -> None:
    low, high = contributions(shares([0.0, 0.0]), LIGHT, above="a", below="b").layout.yaxis.range
    assert low < 0 < high


def test_where_there_is_no_room_for_numbers_there_are_none() -> None:
    many = shares([0.1] * (MOST_NUMBERED + 1))
    assert contributions(many, LIGHT, above="a", below="b").data[0].text is None


def test_words_and_labels_are_no_markup() -> None:
    figure = contributions(shares([0, 1], ["(bias)", HOSTILE]), LIGHT, above=HOSTILE, below=HOSTILE)
    assert "<b>good" not in str(figure.data[0].x) + str(figure.data[0].customdata)
    assert all("<b>good" not in note.text for note in figure.layout.annotations)
    counted = confusion(square([[1, 0], [0, 1]], (HOSTILE, "b")), LIGHT)
    assert "<b>good" not in str(counted.layout.xaxis.ticktext) + str(counted.data[0].customdata)


def test_labels_stand_in_their_order_on_the_whole_scale_with_their_numbers() -> None:
    figure = labels(
        LabelledArray(
            np.array([0.875, 0.125, 0.0]), (Axis("label", ("a", HOSTILE, "c")),), "probability"
        ),
        LIGHT,
    )
    track, bars = figure.data
    assert list(bars.x) == [0.875, 0.125, 0]
    assert list(track.x) == [1, 1, 1]
    low, high = figure.layout.yaxis.range
    assert low > 2 > 0 > high  # the first at the top
    assert [note.text for note in figure.layout.annotations] == ["87.5 %", "12.5 %", "0 %"]
    assert "<b>good" not in str(figure.layout.yaxis.ticktext) + str(bars.customdata)


def test_a_row_of_shares_sums_to_one_and_the_counts_stand_in_it() -> None:
    figure = confusion(square([[8, 2, 0], [1, 1, 2], [0, 0, 5]], ("a", "b", "c")), LIGHT)
    heatmap, texts = figure.data
    np.testing.assert_allclose(heatmap.z, [[0.8, 0.2, 0], [0.25, 0.25, 0.5], [0, 0, 1]])
    assert np.asarray(heatmap.text).tolist() == [[8, 2, 0], [1, 1, 2], [0, 0, 5]], "for the pointer"
    assert list(texts.text[:3]) == ["8<br>80.0%", "2<br>20.0%", "0<br>0.0%"]
    assert (heatmap.zmin, heatmap.zmax) == (0, 1)
    assert figure.layout.yaxis.autorange == "reversed"


def test_a_label_without_texts_is_blank_not_zero() -> None:
    heatmap, texts = confusion(square([[3, 1], [0, 0]], ("a", "b")), LIGHT).data
    assert np.isnan(np.asarray(heatmap.z)[1]).all()
    assert set(texts.y) == {0}


def test_fifty_long_labels_stay_apart() -> None:
    names = tuple(f"a long name of a label, number {i}" for i in range(50))
    (heatmap,) = confusion(square(np.eye(50, dtype=int).tolist(), names), LIGHT).data
    assert len(set(heatmap.x)) == len(set(heatmap.y)) == 50


def test_distances_of_model_and_baseline_stand_side_by_side_on_one_scale() -> None:
    axis = (Axis("distance", ("exactly right", "1 off", "2 off")),)
    model = LabelledArray(np.array([0.5, 0.4, 0.1]), axis, "share")
    other = LabelledArray(np.array([0.6, 0.0, 0.4]), axis, "share")
    figure = distances(model, other, LIGHT)
    assert [list(bar.y) for bar in figure.data] == [[0.5, 0.4, 0.1], [0.6, 0.0, 0.4]]
    assert list(figure.data[1].text) == ["60.0 %", "0 %", "40.0 %"]
    low, high = figure.layout.yaxis.range
    assert low == 0
    assert 0.6 < high <= 1
    assert len(distances(model, None, LIGHT).data) == 1
