"""Attention as a heatmap: one head, with its tokens on both axes."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.special_tokens import short_label
from gptviz.figures.theme import PATTERN, Theme, base, plain, sequential
from gptviz.labelled_array import Axis, LabelledArray

# Up to this number, single characters all fit on an axis, in one row or in two staggered rows, on the 230 pixels that a picture
# has on a phone: a character of 12 pixels is 11 high, and in two rows each has twice the distance. With more tokens, every
# second or third one has its label.
MOST_IN_A_ROW = 20
MOST_STAGGERED = 40
MOST_THINNED = 64
LONGEST_LABEL = 12

# How far up the picture its legend stands, where the mask leaves the corner blank.
LEGEND_AT = 0.85
UNIT = "share of the row"


def one_head(pattern: LabelledArray, theme: Theme, *, title: str, height: int = 428) -> go.Figure:
    """A pattern [query, key] on the fixed scale 0 … 1, queries from top to bottom; NaN stays blank."""
    queries, keys = pattern.axes
    values = np.ascontiguousarray(pattern.values, np.float32)
    scale = sequential(PATTERN, theme)
    heatmap = go.Heatmap(
        z=values,
        x=names(keys),
        y=names(queries),
        zmin=0,
        zmax=1,
        colorscale=scale,
        showscale=False,
        hoverongaps=False,
        hovertemplate="query %{y}<br>key %{x}<br><b>%{z:.2%}</b><extra></extra>",
    )
    # Where the mask leaves the upper right corner blank, title and legend stand in it; else above the picture.
    corner = bool(np.isnan(values[0, -1]))
    lines = [
        {"text": f"<b>{title}</b>", "y": 1, "yshift": -14, "font": {"size": 15}},
        {"text": "blank: comes later,<br>may not be read", "y": LEGEND_AT, "yshift": -56, "font": {"size": 12}},
    ]
    place = {"xref": "paper", "yref": "paper", "x": 1, "xanchor": "right", "yanchor": "top", "showarrow": False, "align": "right"}
    above = {"text": f"{title}<br><span style='font-size: 12px'>{UNIT}</span>", "x": 0, "xref": "paper", "font": {"size": 15}}
    layout = base(
        theme,
        height=height,
        title=None if corner else above,
        annotations=[place | line for line in lines] if corner else [],
        showlegend=False,
        modebar={"bgcolor": "rgba(0, 0, 0, 0)", "color": theme.text, "activecolor": PATTERN},
        xaxis=token_axis(keys, theme) | {"constrain": "domain", "constraintoward": "left"},
        yaxis=token_axis(queries, theme, down=True)
        | {"scaleanchor": "x", "autorange": "reversed", "constrain": "domain", "constraintoward": "top"},
    )
    layout.margin = {"l": room(queries), "r": 8, "t": 4 if corner else 58, "b": room(keys)}
    title_and_place = {"title": {"text": UNIT, "side": "top", "font": {"size": 12}}, "y": LEGEND_AT}
    legend = _legend(scale, **title_and_place if corner else {"y": 0.95, "yref": "container"})
    return go.Figure([heatmap, legend], layout)


def _legend(scale: list[list[Any]], **place: Any) -> go.Scatter:
    """The colour scale: a trace without points, since a heatmap's own changes the room it has."""
    bar = {
        "tickvals": [0, 0.5, 1],
        "ticktext": ["0%", "50%", "100%"],
        "tickfont": {"size": 12},
        "orientation": "h",
        "thickness": 10,
        "len": 0.42,
        "outlinewidth": 0,
        "x": 0.96,
        "xanchor": "right",
        "yanchor": "top",
        "xpad": 0,
        "ypad": 4,
    } | place
    marker = {"color": [0], "cmin": 0, "cmax": 1, "colorscale": scale, "showscale": True, "colorbar": bar}
    return go.Scatter(x=[None], y=[None], mode="markers", marker=marker, hoverinfo="skip")


def _quiet(name: str, theme: Theme) -> dict[str, Any]:
    """An axis called `name`, without lines."""
    font = {"size": 12, "color": theme.text}
    return {
        "title": {"text": name, "standoff": 14, "font": font},
        "tickfont": font,
        "showgrid": False,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "automargin": False,
    }


def names(axis: Axis) -> list[str]:
    """One name per index: its position, which keeps equal tokens apart, then its token.

    Where the names are also written on the axis, special tokens are shortened as elsewhere.
    """
    labels = axis.labels if _all_fit(axis) else tuple(map(short_label, axis.labels))
    return [f"{index} {plain(label, LONGEST_LABEL)}" for index, label in enumerate(labels)]


def _cells(label: str) -> int:
    """How many characters wide a label is in a monospaced font."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in label)


def _all_fit(axis: Axis) -> bool:
    """Whether tokens of the axis can be shown by themselves: they are single characters or special tokens, and not too many."""
    return len(axis.labels) <= MOST_THINNED and all(_cells(short_label(label)) <= 1 for label in axis.labels)


def room(axis: Axis) -> int:
    """Pixels beside the picture for the labels and the name of an axis. Plotly could measure this, but would then draw twice."""
    return 54 if _all_fit(axis) else 48 + 8 * max(min(_cells(name), LONGEST_LABEL + 5) for name in names(axis))


def token_axis(axis: Axis, theme: Theme, down: bool = False) -> dict[str, Any]:
    """Every token where single characters fit; elsewhere plotly's own choice for a category axis, which never overlaps
    and shows more on zooming in.
    """
    count = len(axis.labels)
    look = _quiet(axis.name, theme) | {"type": "category"}
    if not _all_fit(axis):
        return look | {"tickfont": {"family": "monospace", "size": 12, "color": theme.text}, "tickangle": 0 if down else -90}
    places = range(0, count, -(-count // MOST_STAGGERED))
    labels = [plain(short_label(axis.labels[place]), LONGEST_LABEL) for place in places]
    staggered = count > MOST_IN_A_ROW
    if staggered:
        labels = [
            label if index % 2 == 0 else f"{label}\u00a0\u00a0" if down else f"<br>{label}" for index, label in enumerate(labels)
        ]
    font = {"family": "monospace", "size": 12, "color": theme.text}
    return look | {"tickmode": "array", "tickvals": [*places], "ticktext": labels, "tickfont": font, "tickangle": 0}
