"""Models of sums on a clock: how much follows each frequency."""

from __future__ import annotations

import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis
from gptviz.figures.kit.theme import MLP, OUTPUT, STREAM, Theme, themed_figure
from gptviz.labelled_array import LabelledArray

# Colour and pattern of each part: they can be told apart without colours.
LOOKS = {"embedding": (STREAM, ""), "neurons": (MLP, "/"), "logits": (OUTPUT, "x")}


def powers(shares: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """A bar for each of the `shares` [part, frequency], those of one frequency side by side."""
    parts, frequencies = shares.axes
    figure = themed_figure(
        theme,
        height=height,
        barmode="group",
        bargap=0.15,
        legend={"orientation": "h", "x": 0, "y": 1.12},
        margin={"l": 8, "r": 8, "t": 30, "b": 44},
        xaxis=axis(frequencies.name),
        yaxis=axis(shares.unit) | {"tickformat": "~%", "rangemode": "tozero"},
    )
    for part, values in zip(parts.labels, shares.values, strict=True):
        colour, pattern = LOOKS[part]
        figure.add_bar(
            name=part,
            x=[int(label) for label in frequencies.labels],
            y=values,
            marker={"color": colour, "pattern": {"shape": pattern, "size": 5, "solidity": 0.35}},
            hovertemplate=f"<b>{part}</b>, frequency %{{x}}<br>%{{y:.1%}} of its "
            "variance<extra></extra>",
        )
    return figure
