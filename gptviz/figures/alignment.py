"""Attention between two texts as lines between two rows of tokens: the source above, the output that reads it below."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.colors
import plotly.graph_objects as go

from gptviz.figures import heatmap
from gptviz.figures.bars import percent
from gptviz.figures.marks import brief
from gptviz.figures.theme import KEY, PATTERN, QUERY, Theme, base, blend, plain, sequential
from gptviz.labelled import Axis, Labelled

# Smaller shares get no line; between here and 1 the lines come in so many strengths.
FLOOR, STRENGTHS = 0.02, 20
THINNEST, THICKEST = 1.0, 7.0
# The lines of the other tokens, where one is chosen.
DIMMED = 0.4
# So many letters fit on a row, large and small ones, on the 290 pixels that a phone has for it.
MOST_LARGE, MOST_SMALL = 32, 48
# Letters that a chip is wider than its token; the space between two chips.
PADDING, GAP = 0.5, 0.2
# A row of few tokens is not drawn out wider than one of so many letters.
LEAST = 16.0
# Half the height of a chip, where the two rows are 1 apart.
HALF = 0.13
NAMED_ON_HOVER = 4
# So many tokens have a label beside the heatmap, which is lower than wide.
MOST_ROWS = 24
UNIT = f"share of the row, lines from {FLOOR:.0%}"


def lines(shares: Labelled, theme: Theme, *, title: str, chosen: int | None = None, height: int = 200) -> go.Figure:
    """The shares [output, source] as lines, the stronger the larger; those below `FLOOR` are left out.

    Args:
        chosen: the output token whose lines stand out.

    The points of the figure carry as `customdata` the index of their output token, -1 on the source.
    """
    output, source = shares.axes
    values = np.asarray(shares.values, np.float64)
    scale = sequential(PATTERN, theme)
    written, read = _row(output), _row(source)
    at_output, at_source = ([chip.middle for chip in row] for row in (written, read))
    traces = []
    for strength in range(STRENGTHS):
        for is_chosen in (False, True):
            pairs = [
                (row, column)
                for row, column in zip(*np.nonzero((values >= FLOOR) & (_strengths(values) == strength)), strict=True)
                if (chosen is None or row == chosen) == is_chosen
            ]
            if pairs:
                ends = [(at_output[row], at_source[column]) for row, column in pairs]
                traces.append((is_chosen, strength, _strokes(ends, strength, scale, 1.0 if is_chosen else DIMMED)))
    # The chosen over the others, the strong over the weak.
    strokes = [stroke for *_, stroke in sorted(traces, key=lambda trace: trace[:2])]
    pointers = [
        _pointer(at_output, 0, list(range(len(output.labels))), _notes(output, source, values, "writes {}, reads mostly")),
        _pointer(at_source, 1, [-1] * len(source.labels), _notes(source, output, values.T, "{}: read mostly when writing")),
    ]
    figure = go.Figure([*strokes, *pointers, _legend(scale)], base(theme, height=height))
    shapes = [
        *(_shape(chip, 1, blend(KEY, theme.background, 0.25), None) for chip in read),
        *(
            _shape(chip, 0, blend(QUERY, theme.background, 0.25), theme.text if place == chosen else None)
            for place, chip in enumerate(written)
        ),
    ]
    figure.update_layout(
        shapes=shapes,
        annotations=[
            *_tokens(read, 1, theme),
            *_tokens(written, 0, theme, chosen),
            _title(title),
            _name("source<br>is read", 1, KEY, theme),
            _name("output<br>reads", 0, QUERY, theme),
        ],
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        margin={"l": 58, "r": 4, "t": 48, "b": 2},
        xaxis={"visible": False, "range": [0, 1], "fixedrange": True},
        yaxis={"visible": False, "range": [-HALF - 0.04, 1 + HALF + 0.04], "fixedrange": True},
    )
    return figure


def table(shares: Labelled, theme: Theme, *, title: str, height: int = 200) -> go.Figure:
    """The shares [output, source] as a heatmap beside the lines, whose scale it has; its cells are as high as there is room."""
    figure = heatmap.one_head(shares, theme, title=title, height=height)
    figure.update_traces(marker_showscale=False, selector={"type": "scatter"})
    output = shares.axes[0].labels
    if len(output) > MOST_ROWS:
        named = range(0, len(output), -(-len(output) // MOST_ROWS))
        labels = [plain(brief(output[place]), 8) for place in named]
        figure.update_yaxes(tickmode="array", tickvals=list(named), ticktext=labels)
    return figure.update_yaxes(scaleanchor=False, constrain="range", title_standoff=12).update_xaxes(constrain="range")


class Chip(NamedTuple):
    """Where a token stands on its row, from 0 to 1, and what is written on it: nothing where there is no room."""

    middle: float
    half: float
    text: str


def _row(axis: Axis) -> list[Chip]:
    """The tokens of an axis side by side, as wide as their text. Where they are too long for the row they are cut, and of very
    many every second or third is written: the pointer names all."""
    count = len(axis.labels)
    longest = 24 if sum(map(len, axis.labels)) <= MOST_SMALL else max(1, MOST_SMALL // count)
    step = -(-count // MOST_SMALL)
    texts = [plain(label, longest) if place % step == 0 else "" for place, label in enumerate(axis.labels)]
    widths = np.array([min(len(label), longest) + PADDING for label in axis.labels])
    ends = np.cumsum(widths + GAP)
    unit = 1 / max(float(ends[-1]), LEAST)
    first = (1 - float(ends[-1]) * unit) / 2
    return [
        Chip(first + (float(end) - (float(width) + GAP) / 2) * unit, float(width) / 2 * unit, text)
        for end, width, text in zip(ends, widths, texts, strict=True)
    ]


def _strengths(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.minimum((values * STRENGTHS).astype(np.int64), STRENGTHS - 1)


def _strokes(ends: Sequence[tuple[float, float]], strength: int, scale: list[list[Any]], opacity: float) -> go.Scatter:
    """All lines of one strength."""
    share = (strength + 0.5) / STRENGTHS
    return go.Scatter(
        x=[x for below, above in ends for x in (below, above, None)],
        y=[y for _ in ends for y in (HALF, 1 - HALF, None)],
        mode="lines",
        line={
            "width": THINNEST + (THICKEST - THINNEST) * share,
            "color": plotly.colors.sample_colorscale(scale, [share])[0],
        },
        opacity=opacity,
        hoverinfo="skip",
    )


def _notes(mine: Axis, others: Axis, shares: np.ndarray[Any, np.dtype[np.float64]], sentence: str) -> list[str]:
    """What the pointer shows on every token of `mine`: the largest of its `shares` [mine, others]."""

    def note(label: str, row: np.ndarray[Any, np.dtype[np.float64]]) -> str:
        order = np.argsort(-row, kind="stable")[:NAMED_ON_HOVER]
        largest = [f"{percent(float(row[i]))} {html.escape(others.labels[i])} (at {i})" for i in order]
        return "<br>".join([f"<b>{sentence.format(html.escape(label))}</b>", *largest])

    return [note(label, row) for label, row in zip(mine.labels, shares, strict=True)]


def _pointer(places: Sequence[float], row: int, meant: list[int], notes: list[str]) -> go.Scatter:
    """Unseen points on a row of tokens, which answer the pointer and clicks."""
    return go.Scatter(
        x=places,
        y=[row] * len(places),
        customdata=meant,
        text=notes,
        mode="markers",
        marker={"opacity": 0, "size": 24},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="%{text}<extra></extra>",
    )


def _shape(chip: Chip, row: int, fill: str, edge: str | None) -> dict[str, Any]:
    line = {"width": 0} if edge is None else {"width": 2, "color": edge}
    ends = {"x0": chip.middle - chip.half, "x1": chip.middle + chip.half, "y0": row - HALF, "y1": row + HALF}
    return {"type": "rect", "fillcolor": fill, "line": line, "layer": "below"} | ends


def _tokens(chips: Sequence[Chip], row: int, theme: Theme, chosen: int | None = None) -> list[dict[str, Any]]:
    """What is written on the chips."""
    size = 14 if sum(len(chip.text) for chip in chips) <= MOST_LARGE else 11
    look = {"y": row, "showarrow": False, "font": {"family": "monospace", "size": size, "color": theme.text}}
    shown = [(chip, f"<b>{chip.text}</b>" if place == chosen else chip.text) for place, chip in enumerate(chips) if chip.text]
    return [look | {"x": chip.middle, "text": text} for chip, text in shown]


def _title(title: str) -> dict[str, Any]:
    """The title above the upper left corner, with what the lines are."""
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 1, "yanchor": "bottom", "yshift": 4}
    text = f"<b>{title}</b><br><span style='font-size: 12px'>{UNIT}</span>"
    return place | {"text": text, "font": {"size": 15}, "showarrow": False, "align": "left"}


def _name(text: str, row: int, colour: str, theme: Theme) -> dict[str, Any]:
    """What a row is, at its left, in the colour of its role and dark enough to be read."""
    place = {"xref": "paper", "x": 0, "xanchor": "right", "y": row, "showarrow": False, "align": "right", "xshift": -4}
    return place | {"text": text, "font": {"size": 12, "color": blend(colour, theme.text, 0.75)}}


def _legend(scale: list[list[Any]]) -> go.Scatter:
    """The colours of the lines with their shares: a trace without points."""
    bar = {
        "tickvals": [0, 0.5, 1],
        "ticktext": ["0%", "50%", "100%"],
        "tickfont": {"size": 11},
        "orientation": "h",
        "thickness": 8,
        "len": 0.3,
        "outlinewidth": 0,
        "x": 1,
        "xanchor": "right",
        "xpad": 12,
        "y": 1,
        "yref": "container",
        "yanchor": "top",
        "ypad": 2,
    }
    marker = {"color": [0], "cmin": 0, "cmax": 1, "colorscale": scale, "showscale": True, "colorbar": bar}
    return go.Scatter(x=[None], y=[None], mode="markers", marker=marker, hoverinfo="skip")
