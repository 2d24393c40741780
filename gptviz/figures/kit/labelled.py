"""The picture of any labelled array: for what needs no figure of its own."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis, token_axis, token_names, token_room
from gptviz.figures.kit.heat import add_unit, from_to, heatmap, largest, scale
from gptviz.figures.kit.theme import KEY, QUERY, Theme, plain, themed
from gptviz.labelled_array import LabelledArray


def picture(values: LabelledArray, theme: Theme, *, height: int = 360) -> go.Figure:
    """Bars of `values` [place], or cells of `values` [row, column], first row at the top, blue above 0, orange below; else a
    ValueError.
    """
    if len(values.axes) == 1:
        return _bars(values, theme, height)
    if len(values.axes) == 2:
        return _cells(values, theme, height)
    names = ", ".join(axis.name for axis in values.axes)
    raise ValueError(f"an array of {len(values.axes)} axes ({names}) is no picture: take a part of it that has one or two")


def _bars(values: LabelledArray, theme: Theme, height: int) -> go.Figure:
    (places,) = values.axes
    bars = go.Bar(
        x=token_names(places),
        y=values.values,
        marker={"color": [KEY if value < 0 else QUERY for value in values.values.tolist()]},
        hovertemplate="%{x}<br><b>%{y:.4g}</b><extra></extra>",
    )
    up, room = axis(plain(values.unit, 60)), {"l": 66, "r": 20, "t": 12, "b": token_room(places)}
    return themed(theme, bars, height=height, margin=room, dragmode=False, xaxis=token_axis(places), yaxis=up)


def _cells(values: LabelledArray, theme: Theme, height: int) -> go.Figure:
    rows, columns = values.axes
    # A scale of one colour where nothing is below 0.
    limit = largest(values.values)
    signed = bool(np.any(np.less(values.values, 0)))
    low, high = (-limit, limit) if signed else from_to(values.values)
    cells = heatmap(
        values.values,
        low,
        high,
        theme,
        colour=None if signed else QUERY,
        x=token_names(columns),
        y=token_names(rows),
        hovertemplate=f"{plain(rows.name)} %{{y}}<br>{plain(columns.name)} %{{x}}<br><b>%{{z:.4g}}</b><extra></extra>",
        colorbar=scale([low, 0, high] if signed else [low, high]) | {"len": 0.5},
    )
    room = {"l": token_room(rows), "r": 20, "t": 54, "b": token_room(columns)}
    down = token_axis(rows, down=True) | {"autorange": "reversed"}
    figure = themed(theme, cells, height=height, margin=room, dragmode=False, xaxis=token_axis(columns), yaxis=down)
    add_unit(figure, plain(values.unit, 60), 20)
    return figure
