"""The part of each word in a decision: a bar per word, in the order of the text."""

from __future__ import annotations

import html

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MONOSPACE, distinct_names
from gptviz.figures.kit.format import side_by_side
from gptviz.figures.kit.theme import KEY, QUERY, STREAM, Theme, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

# With more bars than this there is no room for a number on each.
MOST_NUMBERED = 14
LONGEST_LABEL = 16


def contributions(
    shares: LabelledArray,
    theme: Theme,
    *,
    above: str,
    below: str,
    height: int = 330,
    has_bias: bool = True,
    verb: str = "adds",
    room: int = 92,
) -> go.Figure:
    """`shares` [word]: blue bars upwards, which speak for what is `above`, orange ones downwards,
    which speak for what is `below`. The first of them is the bias, in grey, if there is one. `verb`
    is what a word does, before its number; `room` are the pixels for the words below the bars.
    """
    words = shares.axes[0].labels
    values = shares.values
    numbered = len(words) <= MOST_NUMBERED
    bars = go.Bar(
        x=distinct_names([plain_label(word, LONGEST_LABEL) for word in words]),
        y=values,
        marker={
            "color": [STREAM] * has_bias
            + [QUERY if value >= 0 else KEY for value in values[has_bias:]]
        },
        # A bar that cannot be seen has no number.
        text=[text.removeprefix("≈ 0") for text in side_by_side(values.tolist())]
        if numbered
        else None,
        textposition="outside",
        cliponaxis=False,
        customdata=[html.escape(word) for word in words],
        hovertemplate=f"<b>%{{customdata}}</b><br>{verb} %{{y:+.4g}}<extra></extra>",
    )
    low, high = _reach(values)
    figure = themed_figure(
        theme,
        bars,
        height=height,
        margin={"l": 48, "r": 8, "t": 28, "b": room},
        bargap=0.25,
        dragmode=False,
        # where bars are too narrow for their numbers, the pointer shows them
        uniformtext={"minsize": 12, "mode": "hide"},
        # If there is not room for all words, plotly names as many as do not overlap; the pointer
        # shows the others.
        xaxis={
            "type": "category",
            "tickangle": -55 if len(words) <= MOST_NUMBERED else -90,
            "tickfont": MONOSPACE,
        },
        yaxis={
            "title": {"text": shares.unit},
            "range": [low, high],
            "showgrid": True,
            "zeroline": True,
            "nticks": 6,
        },
    )
    figure.add_annotation(
        text=f"<span style='color: {QUERY}'>▲</span> {plain_label(above)}   <span style='color: "
        f"{KEY}'>▼</span> {plain_label(below)}",
        x=1,
        y=1,
        xref="paper",
        yref="paper",
        xanchor="right",
        yanchor="bottom",
    )
    return figure


def _reach(values: npt.NDArray[np.generic]) -> tuple[float, float]:
    """The ends of the axis: every bar has room for its number, and zero stands off the edges."""
    down, up = (max(0.0, 1.18 * float(side)) for side in (-values.min(), values.max()))
    least = max(0.12 * max(down, up), 1e-6)
    return -max(down, least), max(up, least)
