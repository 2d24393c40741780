"""How often a model is right at each position of a sequence: which part of a task it has
learned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from gptviz.figures.kit.theme import OUTPUT, Theme, themed_figure


def right_by_place(
    accuracy: Sequence[float | None], theme: Theme, *, height: int, name: str = ""
) -> go.Figure:
    """Bars on the fixed scale 0 … 1, `accuracy` [place]; None, which stays blank, if no prediction
    counts.
    """
    places = list(range(1, len(accuracy) + 1))
    bars = go.Bar(
        x=places,
        y=[math.nan if share is None else share for share in accuracy],
        marker={"color": OUTPUT},
        hovertemplate="token %{x} is predicted right<br><b>%{y:.1%}</b> of the time<extra></extra>",
    )
    return themed_figure(
        theme,
        bars,
        height=height,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        bargap=0.15,
        dragmode=False,
        xaxis={
            "title": {
                "text": f"place of the token predicted{f', {name}' if name else ''}",
                "standoff": 6,
            },
            "range": [0.4, len(accuracy) + 0.6],
            "dtick": max(1, -(-len(accuracy) // 16)),
            "tick0": 1,
        },
        yaxis={
            "title": {"text": "right", "standoff": 6},
            "tickformat": ".0%",
            "range": [0, 1.02],
            "showgrid": True,
        },
    )
