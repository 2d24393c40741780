"""Features as arrows in the plane, and how long each is at each sparsity."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.theme import KEY, MLP, Theme, themed_figure
from gptviz.labelled_array import Float64Array, LabelledArray

REACH = 1.35
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def arrows(ends: Float64Array, theme: Theme, *, found: Float64Array, height: int) -> go.Figure:
    """The arrows of features, `ends` [feature, 2], numbered from 1, and the directions `found`
    [row, 2] as dashed lines.
    """
    figure = themed_figure(
        theme,
        height=height,
        dragmode=False,
        showlegend=True,
        margin={"l": 24, "r": 8, "t": 36, "b": 24},
    )
    for number, end in enumerate(ends, 1):
        figure.add_scatter(
            x=[0, end[0]],
            y=[0, end[1]],
            mode="lines+markers+text",
            line={"color": MLP, "width": 4},
            marker={"color": MLP, "size": [0, 12], "symbol": "arrow", "angleref": "previous"},
            text=["", f"<b>{number}</b>"],
            textposition=f"{'top' if end[1] >= 0 else 'bottom'} "
            f"{'right' if end[0] >= 0 else 'left'}",
            textfont={"size": 15},
            name="features",
            showlegend=number == 1,
            hovertemplate=f"feature {number}: length {np.hypot(*end):.2f}<extra></extra>",
        )
    for row, end in enumerate(found):
        line = {"color": KEY, "width": 2, "dash": "dash"}
        figure.add_scatter(
            x=[0, end[0]],
            y=[0, end[1]],
            mode="lines",
            line=line,
            name="found",
            showlegend=row == 0,
            hoverinfo="skip",
        )
    ends_of = {"range": [-REACH, REACH], "zeroline": True, "zerolinecolor": theme.faint, "dtick": 1}
    return figure.update_layout(xaxis=ends_of, yaxis=ends_of | {"scaleanchor": "x"})


def lengths(values: LabelledArray, theme: Theme, *, chosen: int, height: int) -> go.Figure:
    """A line for each feature: how long its arrow is, `values` [sparsity, feature], at each
    sparsity; one of them is `chosen`.
    """
    names = [f"{float(one):.0%}" for one in values.axes[0].labels]
    lines = [
        go.Scatter(
            x=names,
            y=values.values[:, number],
            name=label,
            line={"color": MLP, "dash": dash},
            opacity=1 - 0.15 * number,
            hovertemplate=f"feature {label}: %{{y:.2f}}<extra></extra>",
        )
        for number, (label, dash) in enumerate(zip(values.axes[1].labels, DASHES, strict=True))
    ]
    layout = {
        "xaxis": {"title": {"text": "sparsity"}, "type": "category"},
        "yaxis": {"title": {"text": "length"}, "showgrid": True},
    }
    figure = themed_figure(theme, *lines, height=height, dragmode=False, showlegend=True, **layout)
    return figure.add_vline(x=chosen, line={"color": theme.text, "width": 1, "dash": "dot"})
