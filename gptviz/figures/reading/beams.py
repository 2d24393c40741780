"""A beam search as a tree from left to right: every token with the sum up to it, what was cut below
the line.
"""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from gptviz.figures.kit.theme import OUTPUT, STREAM, Theme, blend, plain_label, themed_figure

from ..kit.format import percent

# How many of the nodes that were cut are drawn at each depth: the best of them.
MOST_CUT = 4
# With more columns than this, there is no room for numbers below the tokens.
MOST_NUMBERED = 16
# With more columns than this, there is no room for the tokens either: they are shown under the
# pointer.
MOST_LABELLED = 64
LONGEST_TEXT = 60
LONGEST_LABEL = 7


@dataclass(frozen=True)
class DrawnNode:
    """A token of the search, as the tree shows it."""

    parent: int | None  #: the index of the node before it, None for the root
    label: str  #: the visible form of the token
    log_probability: float  #: of this token after those before it, in nats
    total: float  #: the sum of the log-probabilities from the root to this token
    depth: int  #: how many tokens come before it, the root included
    kept: bool  #: whether the search continued it or it ended; false where it was cut
    text: str  #: the output up to here, for the pointer


def tree(
    nodes: Sequence[DrawnNode],
    winner: Sequence[int],
    theme: Theme,
    *,
    width: int,
    height: int = 440,
) -> go.Figure:
    """The tree of a beam search of this `width`, a column for each depth: the larger the sum, the
    higher a node. `nodes` come after their parents; the path of the best answer, the indices
    `winner`, is drawn thick.

    Nodes that were kept are filled: the likelier the token, the stronger. Below the dotted line are
    the best of those that were cut, without filling.
    """
    rows, left_out = ranks(nodes, width)
    drawn = sorted(rows)
    on_path = set(winner)
    edges = [(index, parent) for index in drawn if (parent := nodes[index].parent) is not None]
    quiet = blend(STREAM, theme.background, 0.6)
    thick = [edge for edge in edges if on_path.issuperset(edge)]
    thin = [edge for edge in edges if nodes[edge[0]].kept and not on_path.issuperset(edge)]
    cut = [edge for edge in edges if not nodes[edge[0]].kept]
    strokes = [
        _edges(cut, nodes, rows, {"color": quiet, "width": 1, "dash": "dot"}),
        _edges(thin, nodes, rows, {"color": blend(STREAM, theme.text, 0.6), "width": 1.5}),
        _edges(thick, nodes, rows, {"color": OUTPUT, "width": 5}),
    ]
    figure = themed_figure(
        theme, *strokes, _chips(drawn, on_path, nodes, rows, theme), height=height
    )
    depths = max(node.depth for node in nodes)
    lowest = max(rows.values())
    numbered = depths <= MOST_NUMBERED
    labelled = drawn if depths <= MOST_LABELLED else []
    annotations = [
        label for index in labelled for label in _labels(nodes[index], rows[index], numbered, theme)
    ]
    if cut:
        more = f", and {left_out:,} more" if left_out else ""
        figure.add_hline(y=width - 0.5, line={"color": theme.text, "width": 1, "dash": "dot"})
        place = {"x": 0, "xref": "paper", "xanchor": "left", "y": width - 0.5, "yanchor": "top"}
        annotations.append(place | {"text": f"↓ cut{more}", "font": {"size": 12}})
    return figure.update_layout(
        annotations=annotations,
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        margin={"l": 4, "r": 4, "t": 4, "b": 34},
        xaxis={"range": [-0.5, depths + 0.5], "fixedrange": True, "nticks": 12}
        | {"title": {"text": "tokens written", "standoff": 2}, "tickformat": "d"},
        yaxis={"range": [lowest + 0.6, -0.5], "visible": False, "fixedrange": True},
    )


def ranks(nodes: Sequence[DrawnNode], width: int) -> tuple[dict[int, int], int]:
    """The row of each node that is drawn, by its index, and how many nodes are not drawn.

    Nodes of one depth are sorted by their sums. Those that were kept have the rows from 0; the best
    `MOST_CUT` of those that were cut have the rows from `width`.
    """
    places: dict[int, int] = {}
    left_out = 0
    for depth in range(max(node.depth for node in nodes) + 1):
        column = sorted(
            (i for i, node in enumerate(nodes) if node.depth == depth),
            key=lambda i: -nodes[i].total,
        )
        kept, cut = ([i for i in column if nodes[i].kept is was_kept] for was_kept in (True, False))
        left_out += max(0, len(cut) - MOST_CUT)
        places |= {index: row for row, index in enumerate(kept)}
        places |= {index: width + row for row, index in enumerate(cut[:MOST_CUT])}
    return places, left_out


def _edges(
    edges: Sequence[tuple[int, int]],
    nodes: Sequence[DrawnNode],
    rows: dict[int, int],
    line: dict[str, Any],
) -> go.Scatter:
    """Lines from each node's parent to it."""
    return go.Scatter(
        x=[x for child, parent in edges for x in (nodes[parent].depth, nodes[child].depth, None)],
        y=[y for child, parent in edges for y in (rows[parent], rows[child], None)],
        mode="lines",
        line=line,
        hoverinfo="skip",
    )


def _chips(
    drawn: Sequence[int],
    on_path: Collection[int],
    nodes: Sequence[DrawnNode],
    rows: dict[int, int],
    theme: Theme,
) -> go.Scatter:
    """The squares behind the tokens, with a note under the pointer."""

    def fill(node: DrawnNode) -> str:
        if node.kept:
            return blend(OUTPUT, theme.background, 0.1 + 0.5 * math.exp(node.log_probability))
        return theme.background

    def note(node: DrawnNode) -> str:
        if len(node.text) <= LONGEST_TEXT:
            text = node.text
        else:
            text = f"…{node.text[-LONGEST_TEXT:]}"
        return (
            f"<b>{html.escape(node.label)}</b>{'' if node.kept else ' (cut)'}<br>{percent(math.exp(node.log_probability))} "
            f"after those before it: {node.log_probability:.3f} nats<br>sum {node.total:.3f}: "
            f"{percent(math.exp(node.total))} for “{html.escape(text)}”"
        )

    chips = [nodes[index] for index in drawn]
    edge = blend(STREAM, theme.background, 0.6)
    return go.Scatter(
        x=[node.depth for node in chips],
        y=[rows[index] for index in drawn],
        text=[note(node) for node in chips],
        mode="markers",
        marker={
            "symbol": "square",
            "size": 20,
            "color": [fill(node) for node in chips],
            "opacity": 1,
            "line": {
                "color": [theme.text if index in on_path else edge for index in drawn],
                "width": [2 if index in on_path else 1 for index in drawn],
            },
        },
        hovertemplate="%{text}<extra></extra>",
    )


def _labels(node: DrawnNode, row: int, numbered: bool, theme: Theme) -> list[dict[str, Any]]:
    """The token on its square and, if `numbered`, the sum below it."""
    label = plain_label(node.label, LONGEST_LABEL)
    if node.kept:
        colour = theme.text
    else:
        colour = blend(theme.text, theme.background, 0.6)
    common = {"x": node.depth, "y": row}
    token = {
        "text": label,
        "font": {"family": "monospace", "size": 14 if len(label) < 3 else 12, "color": colour},
    }
    if not numbered or node.parent is None:
        return [common | token]
    total = {
        "text": f"{node.total:.2f}".replace("-", "−"),
        "yshift": -18,
        "font": {"size": 12, "color": colour},
    }
    return [common | token, common | total]
