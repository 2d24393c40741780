"""Where a neuron of a model of sums on a clock is active: by the first and the second number."""

from __future__ import annotations

import plotly.graph_objects as go

from gptviz.figures.kit import heat
from gptviz.figures.kit.axes import axis
from gptviz.figures.kit.format import brief
from gptviz.figures.kit.theme import Theme, base
from gptviz.labelled_array import LabelledArray


def over_sums(activations: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """The activations [first number, second number] as cells, on a scale that 0 is in the middle of."""
    first, second = activations.axes
    limit = heat.largest(activations.values)
    drawn = heat.heatmap(
        activations.values,
        -limit,
        limit,
        theme,
        x=[int(label) for label in second.labels],
        y=[int(label) for label in first.labels],
        colorbar=heat.scale((-limit, 0, limit), (brief(-limit), f"0 ({activations.unit})", brief(limit))),
        hovertemplate="%{y} + %{x}<br><b>%{z:.3g}</b><extra></extra>",
    )
    figure = go.Figure(drawn, layout=base(theme, height=height))
    return figure.update_layout(
        xaxis=axis(second.name),
        yaxis=axis(first.name) | {"autorange": "reversed"},
        margin={"l": 8, "r": 28, "t": 64, "b": 44},
    )
