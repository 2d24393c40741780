"""Lines between two rows of tokens: each share has its line, and nothing else has one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from gptviz.figures import alignment
from gptviz.figures.theme import DARK, LIGHT
from gptviz.labelled import Axis, Labelled


def shares(n_output: int = 4, n_source: int = 6, labels: str = "abcdefgh", seed: int = 0) -> Labelled:
    values = np.random.default_rng(seed).random((n_output, n_source)) ** 6
    values /= values.sum(1, keepdims=True)
    axes = (
        Axis("query: output (reads)", tuple(labels[i % len(labels)].upper() for i in range(n_output))),
        Axis("key: source (is read)", tuple(labels[i % len(labels)] for i in range(n_source))),
    )
    return Labelled(values.astype(np.float32), axes, "share")


def drawn(figure: go.Figure) -> dict[tuple[float, float], go.Scatter]:
    """The trace of every line, by where it ends below and above."""
    found: dict[tuple[float, float], go.Scatter] = {}
    for trace in figure.data:
        if trace.mode == "lines":
            for i in range(0, len(trace.x), 3):
                assert trace.x[i + 2] is None, "a line ends where the next begins"
                assert trace.y[i] < trace.y[i + 1]
                ends = (round(trace.x[i], 9), round(trace.x[i + 1], 9))
                assert ends not in found
                found[ends] = trace
    return found


def pointers(figure: go.Figure) -> tuple[go.Scatter, go.Scatter]:
    output, source = (trace for trace in figure.data if trace.customdata is not None)
    return output, source


def middles(figure: go.Figure) -> tuple[list[float], list[float]]:
    """Where the tokens of output and source stand, from left to right."""
    output, source = ([round(x, 9) for x in trace.x] for trace in pointers(figure))
    assert output == sorted(output)
    assert source == sorted(source)
    return output, source


@pytest.mark.parametrize("chosen", [None, 0, 3])
def test_every_share_but_the_smallest_has_one_line_and_the_larger_is_no_thinner(chosen: int | None) -> None:
    given = shares()
    figure = alignment.lines(given, LIGHT, title="t", chosen=chosen)
    found, (output, source) = drawn(figure), middles(figure)
    expected = {
        (output[row], source[column]): float(given.values[row, column])
        for row in range(4)
        for column in range(6)
        if given.values[row, column] >= alignment.FLOOR
    }
    assert set(found) == set(expected)
    assert 0 < len(expected) < 24
    by_share = sorted(expected, key=lambda ends: expected[ends])
    widths = [found[ends].line.width for ends in by_share]
    assert widths == sorted(widths)
    for ends, share in expected.items():
        there = (found[ends].line.width - alignment.THINNEST) / (alignment.THICKEST - alignment.THINNEST)
        assert abs(there - share) <= 0.5 / alignment.STRENGTHS + 1e-6


def test_the_lines_of_the_chosen_token_are_in_full_strength_and_over_the_others() -> None:
    figure = alignment.lines(shares(), LIGHT, title="t", chosen=2)
    at = {ends: (trace.opacity, figure.data.index(trace)) for ends, trace in drawn(figure).items()}
    output, _ = middles(figure)
    mine = [where for (below, _), where in at.items() if below == output[2]]
    others = [where for (below, _), where in at.items() if below != output[2]]
    assert {opacity for opacity, _ in mine} == {1}
    assert {opacity for opacity, _ in others} == {alignment.DIMMED}
    assert min(order for _, order in mine) > max(order for _, order in others)
    assert {trace.opacity for trace in drawn(alignment.lines(shares(), LIGHT, title="t")).values()} == {1}


def test_every_token_answers_the_pointer_with_its_largest_shares_and_only_the_output_is_meant_by_a_click() -> None:
    given = shares()
    output, source = pointers(alignment.lines(given, LIGHT, title="t"))
    assert list(output.customdata) == [0, 1, 2, 3]
    assert set(source.customdata) == {-1}
    assert len(source.text) == 6
    largest = int(given.values[1].argmax())
    assert output.text[1].split("<br>")[1].endswith(f"{given.axes[1].labels[largest]} (at {largest})")
    reader = int(given.values[:, 4].argmax())
    assert source.text[4].split("<br>")[1].endswith(f"{given.axes[0].labels[reader]} (at {reader})")


def texts(figure: go.Figure, row: int) -> list[str]:
    return [note.text for note in figure.layout.annotations if note.y == row and note.xref != "paper"]


def test_a_token_cannot_become_markup() -> None:
    given = shares()
    hostile = Labelled(given.values, (Axis("o", ("<b>", "&amp;", "<br>", "</b>")), Axis("s", ("<i>",) * 6)), "share")
    figure = alignment.lines(hostile, LIGHT, title="t", chosen=0)
    assert texts(figure, 0) == ["<b>&lt;b&gt;</b>", "&amp;amp;", "&lt;br&gt;", "&lt;/b&gt;"]
    assert all("<i>" not in note and "&lt;i&gt;" in note for note in pointers(figure)[1].text)


@pytest.mark.parametrize(
    ("count", "label"), [(1, "a"), (24, "a"), (48, "a"), (49, "a"), (200, "a"), (9, "Wednesday"), (60, "word")]
)
def test_labels_never_need_more_room_than_a_phone_has(count: int, label: str) -> None:
    given = Labelled(np.full((1, count), 1 / count), (Axis("o", ("x",)), Axis("s", (label,) * count)), "share")
    named = [note for note in alignment.lines(given, LIGHT, title="t").layout.annotations if note.y == 1 and note.xref != "paper"]
    letters = sum(len(note.text.strip("\u2068\u2069")) for note in named)
    assert letters <= alignment.MOST_SMALL
    assert letters <= alignment.MOST_LARGE or {note.font.size for note in named} == {11}
    assert named


@pytest.mark.parametrize("labels", [("a", "bc", "def", "⟨end⟩"), ("a", "a", "a", "a"), ("Wednesday",) * 4])
def test_chips_stand_side_by_side_within_the_row_each_under_its_token(labels: tuple[str, ...]) -> None:
    given = shares()
    figure = alignment.lines(Labelled(given.values, (Axis("o", labels), given.axes[1]), "share"), DARK, title="t", chosen=1)
    for row, places in zip((0, 1), middles(figure), strict=True):
        chips = sorted(((s.x0, s.x1) for s in figure.layout.shapes if s.y0 < row < s.y1), key=lambda ends: ends[0])
        assert [sum(ends) / 2 for ends in chips] == pytest.approx(places)
        assert all(one[1] < other[0] for one, other in itertools.pairwise(chips))
        assert chips[0][0] >= 0
        assert chips[-1][1] <= 1
    outlined: list[Any] = [s for s in figure.layout.shapes if s.line.width]
    assert [(s.x0 + s.x1) / 2 for s in outlined] == pytest.approx([middles(figure)[0][1]])


def test_the_heatmap_beside_the_lines_has_their_numbers_and_no_second_scale() -> None:
    given = shares()
    figure = alignment.table(given, LIGHT, title="t")
    np.testing.assert_array_equal(figure.data[0].z, given.values)
    assert not any(trace.marker.showscale for trace in figure.data if trace.type == "scatter")
    assert alignment.lines(given, LIGHT, title="t").data[-1].marker.showscale


@pytest.mark.parametrize("count", [3, alignment.MOST_ROWS, alignment.MOST_ROWS + 1, 200])
def test_the_rows_of_the_heatmap_are_named_as_far_as_there_is_room(count: int) -> None:
    figure = alignment.table(shares(n_output=count), LIGHT, title="t")
    named = dict(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))
    assert min(count, alignment.MOST_ROWS) / 2 <= len(named) <= alignment.MOST_ROWS
    for place, text in named.items():
        assert text == shares(n_output=count).axes[0].labels[place]
