"""The tree of a beam search: ordered by sums, what was cut below the line, the winner's path
thick.
"""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
import pytest

from gptviz.figures.kit.theme import LIGHT, OUTPUT
from gptviz.figures.reading import beams
from gptviz.figures.reading.beams import DrawnNode


def searched(width: int = 2, depth: int = 4, per_parent: int = 3, seed: int = 0) -> list[DrawnNode]:
    """A tree as a beam search of this width grows it, with random log-probabilities, in which
    nothing ends before the last.
    """
    random = np.random.default_rng(seed)
    nodes = [DrawnNode(None, "⟨start⟩", 0.0, 0.0, 0, True, "")]
    beam = [0]
    for level in range(1, depth + 1):
        found = []
        for parent in beam:
            for token, p in enumerate(random.dirichlet(np.ones(per_parent))):
                step = math.log(p)
                found.append((parent, "abcdef"[token], step, nodes[parent].total + step))
        best = sorted(range(len(found)), key=lambda i: -found[i][3])[:width]
        first = len(nodes)
        nodes += [
            DrawnNode(*one, level, i in best, nodes[one[0]].text + one[1])
            for i, one in enumerate(found)
        ]
        beam = [first + i for i in best]
    return nodes


def winner(nodes: list[DrawnNode]) -> list[int]:
    last = max(
        (i for i, node in enumerate(nodes) if node.depth == 4 and node.kept),
        key=lambda i: nodes[i].total,
    )
    path = [last]
    while (parent := nodes[path[-1]].parent) is not None:
        path.append(parent)
    return path[::-1]


def strokes(figure: go.Figure, trace: int) -> set[tuple[float, float, float, float]]:
    line = figure.data[trace]
    return {(line.x[i], line.y[i], line.x[i + 1], line.y[i + 1]) for i in range(0, len(line.x), 3)}


def test_the_kept_stand_above_the_cut_and_each_of_both_by_its_sum() -> None:
    nodes = searched(width=2, per_parent=3)
    rows, left_out = beams.ranks(nodes, 2)
    assert left_out == 0
    for depth in range(5):
        column = sorted((i for i in rows if nodes[i].depth == depth), key=lambda i: rows[i])
        assert (
            [nodes[i].kept for i in column] == [row < 2 for row in range(len(column))]
            if depth
            else [True]
        )
        assert [nodes[i].total for i in column] == sorted(
            (nodes[i].total for i in column), reverse=True
        )


def test_of_very_many_that_were_cut_the_best_are_drawn_and_the_rest_counted() -> None:
    nodes = searched(width=5, per_parent=6)
    rows, left_out = beams.ranks(nodes, 5)
    assert len(rows) + left_out == len(nodes)
    assert left_out > 0
    assert all(i in rows for i, node in enumerate(nodes) if node.kept)
    for depth in range(1, 5):
        cut = [i for i, node in enumerate(nodes) if node.depth == depth and not node.kept]
        drawn = [i for i in cut if i in rows]
        assert len(drawn) == min(beams.MOST_CUT, len(cut))
        assert min(nodes[i].total for i in drawn) >= max(
            (nodes[i].total for i in cut if i not in rows), default=-math.inf
        )
    assert f"{left_out:,} more" in " ".join(
        note.text for note in beams.tree(nodes, [0], LIGHT, width=5).layout.annotations
    )


def test_every_node_hangs_on_its_parent_by_the_line_of_its_fate() -> None:
    nodes = searched()
    path = winner(nodes)
    figure = beams.tree(nodes, path, LIGHT, width=2)
    rows, _ = beams.ranks(nodes, 2)

    def edge(i: int) -> tuple[float, float, float, float]:
        parent = nodes[i].parent
        assert parent is not None
        return nodes[parent].depth, rows[parent], nodes[i].depth, rows[i]

    inside = range(1, len(nodes))
    assert strokes(figure, 0) == {edge(i) for i in inside if not nodes[i].kept}
    assert strokes(figure, 1) == {edge(i) for i in inside if nodes[i].kept and i not in path}
    assert strokes(figure, 2) == {edge(i) for i in path[1:]}
    assert figure.data[0].line.dash == "dot"
    assert figure.data[2].line.color == OUTPUT
    assert figure.data[2].line.width > figure.data[1].line.width


def test_the_line_stands_between_what_was_kept_and_what_was_cut() -> None:
    nodes = searched(width=2)
    figure = beams.tree(nodes, winner(nodes), LIGHT, width=2)
    rows, _ = beams.ranks(nodes, 2)
    (line,) = figure.layout.shapes
    assert line.y0 == line.y1
    assert all((rows[i] < line.y0) == nodes[i].kept for i in rows)


def test_what_is_cut_stays_below_the_line_where_an_answer_that_ended_has_left_the_beam() -> None:
    nodes = searched(width=3)
    ended = next(i for i, node in enumerate(nodes) if node.depth == 4 and node.kept)
    narrower = [node for i, node in enumerate(nodes) if i != ended]
    rows, _ = beams.ranks(narrower, 3)
    last = {i: row for i, row in rows.items() if narrower[i].depth == 4}
    assert sorted(row for i, row in last.items() if narrower[i].kept) == [0, 1]
    assert min(row for i, row in last.items() if not narrower[i].kept) == 3


def test_without_anything_cut_there_is_no_line() -> None:
    nodes = searched(width=1, per_parent=1)
    figure = beams.tree(nodes, winner(nodes), LIGHT, width=1)
    assert not figure.layout.shapes
    assert not any("cut" in note.text for note in figure.layout.annotations)


def test_the_pointer_tells_step_and_sum_and_the_squares_the_winner() -> None:
    nodes = searched()
    path = winner(nodes)
    chips = beams.tree(nodes, path, LIGHT, width=2).data[3]
    rows, _ = beams.ranks(nodes, 2)
    for i, text, width in zip(sorted(rows), chips.text, chips.marker.line.width, strict=True):
        assert f"{nodes[i].log_probability:.3f} nats" in text
        assert f"sum {nodes[i].total:.3f}" in text
        assert ("(cut)" in text) is not nodes[i].kept
        assert (width == 2) == (i in path)


def test_a_token_cannot_become_markup() -> None:
    nodes = [
        DrawnNode(None, "<b>", 0.0, 0.0, 0, True, ""),
        DrawnNode(0, "<i>", -1.0, -1.0, 1, True, "<u>"),
    ]
    figure = beams.tree(nodes, [0, 1], LIGHT, width=1)
    shown = " ".join([*(note.text for note in figure.layout.annotations), *figure.data[3].text])
    assert not any(tag in shown for tag in ("<i>", "<u>"))
    assert "&lt;i&gt;" in shown


def test_of_very_many_columns_the_pointer_names_the_tokens() -> None:
    nodes = searched(depth=beams.MOST_LABELLED + 1)
    figure = beams.tree(nodes, [0], LIGHT, width=2)
    assert [note.text.split(",")[0] for note in figure.layout.annotations] == ["↓ cut"]
    last = figure.data[3].text[-1]
    assert "…" in last
    assert len(last) < 300


@pytest.mark.parametrize(("depth", "numbered"), [(4, True), (beams.MOST_NUMBERED + 1, False)])
def test_sums_stand_below_the_tokens_only_where_there_is_room(depth: int, numbered: bool) -> None:
    nodes = searched(depth=depth)
    shown = [note.text for note in beams.tree(nodes, [0], LIGHT, width=2).layout.annotations]
    sums = {f"{node.total:.2f}".replace("-", "−") for node in nodes[1:]}
    assert bool(sums & set(shown)) is numbered
