"""The picture of any labelled array: for what needs no figure of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import (
    MONOSPACE,
    axis,
    labelled_places,
    short_label,
    token_axis,
    token_names,
    token_room,
)
from gptviz.figures.kit.heat import add_unit, heatmap, largest_size, scale
from gptviz.figures.kit.theme import KEY, OUTPUT, QUERY, Theme, plain_label, themed_figure
from gptviz.labelled_array import Axis, LabelledArray

# Most labels down an axis of cells, and along one; with more of them every second, third, … is left
# out.
MOST_DOWN = 24
MOST_ALONG = 9
LONGEST_LABEL = 16  # “attention.output”


def picture(values: LabelledArray, theme: Theme, *, height: int = 360) -> go.Figure:
    """Bars of `values` [place], or cells of `values` [row, column], the first row at the top. Blue
    is above 0, orange below. A ValueError if there are more axes, or none.
    """
    if len(values.axes) == 1:
        return _bars(values, theme, height)
    if len(values.axes) == 2:
        # A scale of one colour where nothing is below 0.
        signed = bool(np.any(np.less(values.values, 0)))
        figure = cells(
            values,
            theme,
            limit=largest_size(values.values),
            signed=signed,
            colour=QUERY,
            height=height,
        )
        add_unit(figure, plain_label(values.unit, 60), 20)
        return figure
    names = ", ".join(axis.name for axis in values.axes)
    raise ValueError(
        f"an array of {len(values.axes)} axes ({names}) is no picture: take a part of it that has "
        "one or two"
    )


def _bars(values: LabelledArray, theme: Theme, height: int) -> go.Figure:
    (places,) = values.axes
    bars = go.Bar(
        x=token_names(places),
        y=values.values,
        marker={"color": [KEY if value < 0 else QUERY for value in values.values.tolist()]},
        hovertemplate="%{x}<br><b>%{y:.4g}</b><extra></extra>",
    )
    up = axis(plain_label(values.unit, 60))
    room = {"l": 66, "r": 20, "t": 12, "b": token_room(places)}
    return themed_figure(
        theme, bars, height=height, margin=room, dragmode=False, xaxis=token_axis(places), yaxis=up
    )


def cells(
    array: LabelledArray,
    theme: Theme,
    *,
    limit: float,
    signed: bool,
    colour: str = OUTPUT,
    height: int = 360,
) -> go.Figure:
    """`array` [row, column] as a heatmap, the first row at the top; NaN stays blank. The scale goes
    from 0 to `limit` in one `colour`; for `signed` values it begins at -limit, and 0 is the
    background.
    """
    rows, columns = array.axes
    drawn = heatmap(
        array.values,
        -limit if signed else 0,
        limit,
        theme,
        colour=None if signed else colour,
        x=names_of(columns),
        y=names_of(rows),
        hovertemplate=f"{rows.name} %{{y}}<br>{columns.name} %{{x}}<br><b>%{{z:.3f}}</b> "
        f"{array.unit}<extra></extra>",
        colorbar=scale([-limit, 0, limit] if signed else [0, limit])
        | {"len": 0.6, "x": 0.94, "outlinewidth": 1},
    )
    return themed_figure(
        theme,
        drawn,
        height=height,
        margin={"l": 8, "r": 12, "t": 44, "b": 8},
        xaxis=_axis(columns, MOST_ALONG),
        yaxis=_axis(rows, MOST_DOWN) | {"autorange": "reversed"},
    )


def names_of(axis: Axis, longest: int = LONGEST_LABEL) -> list[str]:
    """One name per index: labels may be equal, categories must not. A number that is its own index
    stays as it is.
    """
    labels = [plain_label(short_label(label), longest) for label in axis.labels]
    if len(set(labels)) == len(labels):
        return labels
    return [f"{index} {label}" for index, label in enumerate(labels)]


def _axis(axis: Axis, most: int) -> dict[str, Any]:
    names = names_of(axis)
    named = [names[i] for i in labelled_places(len(names), most)]
    title = {"text": axis.name, "standoff": 6}
    return {
        "type": "category",
        "title": title,
        "tickvals": named,
        "ticktext": named,
        "tickfont": MONOSPACE,
    }
