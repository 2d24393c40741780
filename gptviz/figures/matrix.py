"""Signed numbers as a heatmap: zero is the background, orange below, blue above, on a scale that the figure shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.theme import Theme, base, diverging, plain
from gptviz.labelled_array import Axis, LabelledArray

# Room for ticks and titles is fixed and not measured, so that a figure keeps its place when it is drawn again.
# A tick with the name of a token takes a line.
MOST_NAMED = 12
MARGIN = {"l": 66, "r": 20, "t": 12, "b": 48}


def signed(
    matrix: LabelledArray,
    theme: Theme,
    *,
    height: int,
    limit: float = 1.0,
    square: bool = False,
    column: int | None = None,
    tokens: Sequence[str] = (),
) -> go.Figure:
    """`matrix` [row, column] from -`limit` to `limit`, first row at the top; its labels are numbers in equal steps.

    Args:
        square: a cell is as high as wide.
        column: a column to point out.
        tokens: of a square, what stands at the first places, 0, 1, …: a frame is around them, and ticks there name them.
    """
    rows, columns = matrix.axes
    heatmap = go.Heatmap(
        z=np.ascontiguousarray(matrix.values, np.float32),
        x=_numbers(columns),
        y=_numbers(rows),
        zmin=-limit,
        zmax=limit,
        colorscale=diverging(theme),
        hovertemplate=f"{rows.name} %{{y}}<br>{columns.name} %{{x}}<br><b>%{{z:.3f}}</b><extra></extra>",
        colorbar={
            "tickvals": [-limit, 0, limit],
            "ticktext": [f"−{limit:.3g}", "0", f"{limit:.3g}"],
            "tickfont": {"size": 12},
            "orientation": "h",
            "thickness": 10,
            "len": 0.6,
            "outlinewidth": 1,
            "outlinecolor": theme.faint,
            "x": 1,
            "xanchor": "right",
            "xpad": 0,
            "yref": "container",
            "y": 1,
            "yanchor": "top",
            "ypad": 0,
        },
    )
    figure = go.Figure([heatmap], base(theme, height=height))
    figure.update_layout(
        margin=MARGIN | {"t": 36},
        modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)", "color": theme.text},
        xaxis=axis(columns.name, theme) | {"constrain": "domain", "constraintoward": "right"},
        yaxis=axis(rows.name, theme)
        | {"autorange": "reversed", "constrain": "domain", "constraintoward": "top"}
        | ({"scaleanchor": "x"} if square else {}),
    )
    # Beside its scale: plotly would set the name of a horizontal scale on top of it.
    figure.add_annotation(
        text=matrix.unit, x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom", yshift=20, showarrow=False
    )
    if tokens:
        _frame(figure, tokens, rows, columns, theme)
    if column is not None:
        step = _numbers(columns)[1] - _numbers(columns)[0] if len(columns.labels) > 1 else 1
        at = _numbers(columns)[column]
        figure.add_vrect(at - step / 2, at + step / 2, line={"color": theme.text, "width": 1.5}, fillcolor="rgba(0,0,0,0)")
    return figure


def _frame(figure: go.Figure, tokens: Sequence[str], rows: Axis, columns: Axis, theme: Theme) -> None:
    """A frame around the places that the tokens take, with ticks that say which of them stands there."""
    places = _numbers(rows)
    step = places[1] - places[0] if len(places) > 1 else 1
    last = max(place for place in places if place < len(tokens))
    ends = {"x0": -step / 2, "x1": last + step / 2, "y0": -step / 2, "y1": last + step / 2}
    figure.add_shape(type="rect", **ends, line={"color": theme.text, "width": 1.5, "dash": "dot"}, fillcolor="rgba(0,0,0,0)")
    apart = step * math.ceil(len(places) / MOST_NAMED)
    named = range(0, places[-1] + 1, apart)
    text = [f"{place} {plain(tokens[place], 8)}" if place < len(tokens) else str(place) for place in named]
    for name in ("xaxis", "yaxis"):
        figure.update_layout({name: {"tickvals": list(named), "ticktext": text, "tickangle": 0 if name == "yaxis" else -90}})


def axis(name: str, theme: Theme) -> dict[str, Any]:
    """The look of an axis of whole numbers called `name`."""
    return {
        "title": {"text": name, "standoff": 14, "font": {"size": 13, "color": theme.text}},
        "tickfont": {"size": 12, "color": theme.text},
        "tickformat": "d",
        "showgrid": False,
        "zeroline": False,
    }


def _numbers(axis: Axis) -> list[int]:
    return [int(label) for label in axis.labels]
