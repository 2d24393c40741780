"""The figures of tokens as points and bars."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest

from gptviz.figures.kit import scatter
from gptviz.figures.kit.theme import DARK, KIND_COLOURS, LIGHT
from gptviz.labelled_array import Axis, LabelledArray

KINDS = ["vowel", "consonant", "punctuation", "punctuation"]


def points(
    count: int = 4, components: int = 2, labels: tuple[str, ...] = ("a", "b", "<b>", "&")
) -> LabelledArray:
    values = np.random.default_rng(0).normal(size=(count, components)).astype(np.float32)
    tokens = Axis("token", labels if len(labels) == count else tuple(map(str, range(count))))
    return LabelledArray(
        values, (tokens, Axis("component", tuple(map(str, range(components))))), "coordinate"
    )


def kinds_of(figure: go.Figure) -> dict[str, go.Scatter]:
    return {trace.name: trace for trace in figure.data if trace.name in KIND_COLOURS}


@pytest.mark.parametrize("components", [2, 3])
def test_each_token_is_drawn_once_at_its_place_with_its_label(components: int) -> None:
    shown = points(components=components)
    drawn = {}
    for trace in kinds_of(scatter.cloud(shown, KINDS, LIGHT, height=300)).values():
        for index, text, *place in zip(
            trace.customdata, trace.hovertext, *(trace[a] for a in "xyz"[:components]), strict=True
        ):
            assert index not in drawn
            drawn[index] = text, np.array(place)
    assert {index: text for index, (text, _) in drawn.items()} == {
        0: "a",
        1: "b",
        2: "&lt;b&gt;",
        3: "&amp;",
    }
    for index, (_, place) in drawn.items():
        assert np.allclose(place, shown.values[index])


@pytest.mark.parametrize("components", [2, 3])
def test_no_label_becomes_a_tag(components: int) -> None:
    texts = [
        text
        for trace in kinds_of(
            scatter.cloud(points(components=components), KINDS, LIGHT, height=300)
        ).values()
        for text in trace.text
    ]
    assert not any("<b>" in text for text in texts)


@pytest.mark.parametrize("long", [False, True])
def test_of_a_crowd_only_the_tokens_that_the_picture_is_about_are_named(long: bool) -> None:
    labels = tuple(f"{'word' * 5 * long}{i}" for i in range(30))
    shown = points(30, labels=labels)
    figure = scatter.cloud(
        shown, ["vowel"] * 30, LIGHT, height=300, chosen=3, neighbours=[5, 7], read=[11]
    )
    (trace,) = kinds_of(figure).values()
    named = {labels.index(text) for text in trace.text if text}
    assert named == ({3, 5, 7, 11} if long else set(range(30)))
    assert list(trace.hovertext) == list(labels), "the pointer names every one"


def test_kinds_differ_in_colour_and_in_shape() -> None:
    every = list(KIND_COLOURS)
    traces = kinds_of(scatter.cloud(points(count=len(every)), every, LIGHT, height=300))
    assert len({trace.marker.color for trace in traces.values()}) == len(every)
    assert len({trace.marker.symbol for trace in traces.values()}) == len(every)
    assert [
        trace.name for trace in sorted(traces.values(), key=lambda trace: trace.legendrank)
    ] == every


def test_the_chosen_token_is_ringed_and_joined_to_its_neighbours() -> None:
    shown = points()
    figure = scatter.cloud(shown, KINDS, LIGHT, height=300, chosen=1, neighbours=[0, 3])
    lines = next(trace for trace in figure.data if trace.mode == "lines")
    expected = np.array(
        [shown.values[i] if i >= 0 else [np.nan, np.nan] for i in (1, 0, -1, 1, 3, -1)]
    )
    assert np.allclose(np.column_stack((lines.x, lines.y)), expected, equal_nan=True)
    ring = figure.data[-1]
    assert np.allclose((ring.x[0], ring.y[0]), shown.values[1])


@pytest.mark.parametrize("components", [2, 3])
def test_axes_end_where_they_are_told_to(components: int) -> None:
    ends = [(-3.0, 5.0), (-1.0, 1.0), (0.0, 2.0)][:components]
    figure = scatter.cloud(points(components=components), KINDS, LIGHT, height=300, ends=ends)
    place = figure.layout.scene if components == 3 else figure.layout
    assert [tuple(place[f"{name}axis"].range) for name in "xyz"[:components]] == ends
    free = scatter.cloud(points(components=components), KINDS, LIGHT, height=300)
    place = free.layout.scene if components == 3 else free.layout
    assert place.xaxis.range is None


def test_labels_keep_their_sides_while_points_move() -> None:
    still = points(count=30).values
    pictures = [
        scatter.cloud(points(count=30), ["word"] * 30, LIGHT, height=300, set_out=still),
        scatter.cloud(
            LabelledArray(still[::-1].copy(), points(count=30).axes, "coordinate"),
            ["word"] * 30,
            LIGHT,
            height=300,
            set_out=still,
        ),
    ]
    sides = [kinds_of(figure)["word"].textposition for figure in pictures]
    assert sides[0] == sides[1]
    assert len(set(sides[0])) > 1


@pytest.mark.parametrize("components", [2, 3])
def test_a_trail_is_a_line_through_its_times_with_the_ends_named(components: int) -> None:
    way = points(
        count=5, components=components, labels=("step 0", "step 1", "step 2", "step 4", "last")
    )
    figure = scatter.cloud(
        points(components=components), KINDS, LIGHT, height=300, chosen=1, trail=way
    )
    (line,) = [trace for trace in figure.data if trace.name == "trail"]
    assert np.allclose(np.column_stack([line[name] for name in "xyz"[:components]]), way.values)
    assert list(line.hovertext) == list(way.axes[0].labels)
    assert list(line.text) == ["step 0", "", "", "", "last"]


def test_many_tokens_are_drawn_by_webgl_and_only_the_chosen_ones_written_out() -> None:
    figure = scatter.cloud(
        points(count=301), ["word"] * 301, DARK, height=300, chosen=5, neighbours=[6]
    )
    assert {type(trace) for trace in figure.data} == {go.Scattergl}
    written = [text for trace in figure.data if "text" in trace.mode for text in trace.text]
    assert written == ["5", "6"]


def test_the_many_do_not_bury_the_few() -> None:
    kinds = ["vowel"] * 2 + ["word"] * 398
    order = [
        trace.name for trace in scatter.cloud(points(count=400), kinds, LIGHT, height=300).data
    ]
    assert order == ["word", "vowel"]


def test_a_long_label_at_an_edge_stays_within_the_picture() -> None:
    places = scatter.text_positions(
        np.array([0.0, 5.0, 10.0]), np.zeros(3), [30, 3, 30], across=500, along=300
    )
    assert ("right" in places[0], "left" in places[2]) == (True, True)


def test_labels_side_by_side_do_not_cover_each_other() -> None:
    x = np.array([0.0, 5.0, 500.0])
    y = np.array([0.0, 0.0, 300.0])
    first, second, far = scatter.text_positions(x, y, [1, 1, 1], across=500, along=300)
    assert first != second
    assert far == "top center"
    # Two wide labels above their points would overlap: one of them goes elsewhere.
    assert len(set(scatter.text_positions(x[:2], y[:2], [8, 8], across=10, along=10))) == 2


def test_all_points_in_one_place_still_get_labels() -> None:
    placed = scatter.text_positions(np.zeros(9), np.zeros(9), [1] * 9, across=500, along=300)
    assert len(placed) == 9
    assert set(placed[:8]) == set(scatter.PLACES)


def similarity(*values: float) -> LabelledArray:
    names = ("<i>", "ab", "c")[: len(values)]
    return LabelledArray(np.array(values, np.float32), (Axis("token", names),), "cosine similarity")


def test_bars_have_a_fixed_scale_that_reaches_below_zero_only_where_a_bar_does() -> None:
    figure = scatter.neighbour_bars(
        similarity(0.5, 0.25, 0.1), ["vowel", "word", "word"], LIGHT, height=200
    )
    assert tuple(figure.layout.xaxis.range) == (0, 1)
    assert np.allclose(figure.data[0].x, [0.5, 0.25, 0.1])
    assert figure.layout.yaxis.ticktext[0] == "&lt;i&gt;"
    below = scatter.neighbour_bars(similarity(0.5, -0.25), ["vowel", "word"], LIGHT, height=200)
    assert tuple(below.layout.xaxis.range) == (-1, 1)


@pytest.mark.parametrize(
    ("label", "shown"), [("<b>", "&lt;b&gt;"), ("x" * 40, "x" * 23 + "…"), ("ש", "\u2068ש\u2069")]
)
def test_a_label_is_shown_as_text(label: str, shown: str) -> None:
    assert scatter.plain_label(label).replace("\u2068", "").replace("\u2069", "") == shown.replace(
        "\u2068", ""
    ).replace("\u2069", "")


# Plotly draws a 3-D marker as a letter of a font: the one for "x" is an emoji, which many machines
# cannot draw.
DRAWN_BY_ANY_FONT = {"circle", "circle-open", "square", "square-open", "diamond", "diamond-open"}


@pytest.mark.parametrize("many", [False, True])
def test_in_3d_every_token_has_a_mark_that_any_font_can_draw(many: bool) -> None:
    kinds = list(KIND_COLOURS) * (60 if many else 1)
    shown = points(len(kinds), 3)
    marks: dict[str, set[int]] = {"markers": set(), "letters": set()}
    for trace in scatter.cloud(shown, kinds, LIGHT, height=300).data:
        if trace.customdata is None:
            assert trace.mode != "markers" or trace.x[0] is None, "an entry of the legend alone"
            continue
        if "markers" in trace.mode:
            assert trace.marker.symbol in DRAWN_BY_ANY_FONT
            marks["markers"] |= set(trace.customdata.tolist())
        else:
            assert all(text.isascii() or text in "×" for text in trace.text)
            marks["letters"] |= set(trace.customdata.tolist())
    assert marks["markers"] | marks["letters"] == set(range(len(kinds)))
    assert {kinds[i] for i in marks["letters"]} == {"punctuation", "space"}


@pytest.mark.parametrize("components", [2, 3])
def test_the_tokens_of_the_prompt_are_ringed_where_they_stand(components: int) -> None:
    shown = points(components=components)
    figure = scatter.cloud(shown, KINDS, LIGHT, height=300, read=[1, 3])
    (ring,) = (trace for trace in figure.data if trace.name == "in the prompt")
    np.testing.assert_array_equal(
        np.stack([ring[a] for a in "xyz"[:components]], 1), shown.values[[1, 3]]
    )
    assert not [
        t for t in scatter.cloud(shown, KINDS, LIGHT, height=300).data if t.name == "in the prompt"
    ]
