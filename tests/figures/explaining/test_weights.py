"""The picture of single weights: a line for each, from what it reads to what it writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptviz.figures.explaining.weights import MOST_NUMBERED, weight_graph
from gptviz.figures.kit.theme import DARK, LIGHT
from gptviz.labelled_array import Axis, LabelledArray

NAMES = ("the <b>", "key", "stream 3", "neuron 1", "stream 3", "are")
STAGES = (0, 0, 1, 2, 3, 4)
EDGES = {(0, 2): 1.5, (1, 2): -0.5, (2, 3): 0.75, (3, 4): -2.0, (4, 5): 1.0}


def weights() -> LabelledArray:
    values = np.full((6, 6), np.nan)
    for (source, target), value in EDGES.items():
        values[source, target] = value
    return LabelledArray(values, (Axis("from", NAMES), Axis("to", NAMES)), "weight")


def places(figure: Any) -> dict[int, tuple[float, float]]:
    points = figure.data[-1]
    return {
        int(number): (float(x), float(y))
        for number, x, y in zip(points.customdata, points.x, points.y, strict=True)
    }


def segments(trace: Any) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    pairs = np.stack((trace.x, trace.y), axis=1).reshape(-1, 3, 2)
    return [(tuple(start), tuple(end)) for start, end, _ in pairs.tolist()]


def test_every_weight_is_a_line_between_its_two_places_in_the_colour_of_its_sign() -> None:
    figure = weight_graph(weights(), STAGES, LIGHT)
    at = places(figure)
    drawn = {(*pair, trace.line.color) for trace in figure.data[1:-2] for pair in segments(trace)}
    blue, orange = "#0077BB", "#EE7733"
    assert drawn == {
        (at[source], at[target], blue if value > 0 else orange)
        for (source, target), value in EDGES.items()
    }


def test_a_larger_weight_is_never_a_thinner_line() -> None:
    figure = weight_graph(weights(), STAGES, LIGHT)
    at = places(figure)
    width = {pair: trace.line.width for trace in figure.data[1:-2] for pair in segments(trace)}
    by_size = sorted(EDGES, key=lambda edge: abs(EDGES[edge]))
    widths = [width[at[source], at[target]] for source, target in by_size]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_places_stand_in_the_order_of_their_stages_and_no_two_at_one_spot() -> None:
    at = places(weight_graph(weights(), STAGES, DARK))
    assert [at[i][0] for i in range(6)] == list(map(float, STAGES))
    assert len(set(at.values())) == 6


def test_only_a_number_of_the_stream_goes_on_in_a_dotted_line() -> None:
    figure = weight_graph(weights(), STAGES, LIGHT)
    at = places(figure)
    assert figure.data[0].line.dash == "dot"
    assert segments(figure.data[0]) == [(at[2], at[4])]


def test_a_few_lines_have_their_numbers_and_many_show_them_to_the_pointer() -> None:
    few = weight_graph(weights(), STAGES, LIGHT).data[-2]
    assert "text" in few.mode
    assert list(few.text) == ["+1.5", "−0.5", "+0.75", "−2", "+1"]
    assert few.hovertext[0] == "the &lt;b&gt; → stream 3: +1.5"
    count = MOST_NUMBERED + 1
    names = (*(f"token {i}" for i in range(count)), "stream 0")
    values = np.full((count + 1, count + 1), np.nan)
    values[:count, count] = 1.0
    array = LabelledArray(values, (Axis("from", names), Axis("to", names)), "weight")
    many = weight_graph(array, [0] * count + [1], LIGHT).data[-2]
    assert "text" not in many.mode
    assert len(many.hovertext) == count
