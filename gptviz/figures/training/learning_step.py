"""One step of learning: the way from the loss back to a weight, and the loss around it."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis, rows, token_axis, token_names, token_room, two_axes
from gptviz.figures.kit.heat import heatmap, largest_size
from gptviz.figures.kit.theme import KEY, OUTPUT, QUERY, WEIGHT, Theme, themed_figure
from gptviz.labelled_array import Float64Array, LabelledArray


def way_back(shares_on_the_way: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """The rows [from the loss to the weight, token] as cells, each row on a scale of its own: blue
    above zero, orange below.
    """
    names, tokens = shares_on_the_way.axes
    shares = shares_on_the_way.values / np.array(
        [[largest_size(row)] for row in shares_on_the_way.values]
    )
    drawn = heatmap(
        shares,
        -1,
        1,
        theme,
        gap=1,
        x=token_names(tokens),
        y=list(range(len(names.labels))),
        customdata=shares_on_the_way.values,
        text=[[name] * len(tokens.labels) for name in names.labels],
        hovertemplate="%{text}, %{x}<br><b>%{customdata:.4g}</b><extra></extra>",
        showscale=False,
    )
    return themed_figure(
        theme,
        drawn,
        height=height,
        margin={"l": 112, "r": 8, "t": 4, "b": token_room(tokens)},
        xaxis=token_axis(tokens),
        yaxis=rows(names.labels),
    )


def around(
    weights: Float64Array,
    losses: Float64Array,
    at: tuple[float, float],
    slope: float,
    moved: int,
    theme: Theme,
    *,
    height: int,
) -> go.Figure:
    """The loss [points] by the value of one weight [points], with its tangent, by its `slope`, and
    two points: the weight as it is with its loss (`at`), and the index of another value (`moved`).
    """
    figure = two_axes(
        theme,
        axis("the weight") | {"tickformat": ".3~g"},
        axis("loss, nats") | {"tickformat": ".4~g"},
        height=height,
    )
    room = 0.15 * (np.ptp(losses) or 1.0)
    low = float(losses.min() - room)
    high = float(losses.max() + room)
    tangent = at[1] + slope * (weights - at[0])
    look = {
        "hovertemplate": "weight %{x:.4g}<br><b>%{y:.5g} nats</b><extra>%{fullData.name}</extra>"
    }
    figure.add_scatter(
        x=weights, y=losses, name="loss", mode="lines", line={"color": QUERY, "width": 2}, **look
    )
    figure.add_scatter(
        x=weights,
        y=tangent,
        name="tangent",
        mode="lines",
        line={"color": OUTPUT, "dash": "dash"},
        **look,
    )
    figure.add_scatter(
        x=[at[0]],
        y=[at[1]],
        name="as it is",
        mode="markers",
        marker={"color": WEIGHT, "size": 11},
        **look,
    )
    points = {"color": KEY, "size": 11, "symbol": "diamond"}
    figure.add_scatter(
        x=weights[[moved]], y=losses[[moved]], name="moved", mode="markers", marker=points, **look
    )
    figure.update_layout(
        yaxis={"range": [low, high]},
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.12},
    )
    return figure
