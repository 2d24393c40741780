"""The loss of single rows in A and in B, one against the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.theme import KEY, QUERY, STREAM, Theme, plain, themed
from gptviz.labelled_array import LabelledArray

# The groups of rows, their colours and their signs.
READ, NEVER, UNKNOWN = "read in training", "never read", "not known"
GROUPS = {READ: (QUERY, "circle"), NEVER: (KEY, "diamond"), UNKNOWN: (STREAM, "circle")}
LONGEST_ROW = 80


def rows(a: LabelledArray, b: LabelledArray, groups: Sequence[str], theme: Theme, *, height: int) -> go.Figure:
    """A point for each row [row], its loss in B to the right and in A upwards; below the dashed line A finds it easier than B.

    Args:
        a: the losses in A.
        b: the losses in B.
        groups: for each row, one of `GROUPS`.
        theme: light or dark.
        height: in pixels.
    """
    end = 1.05 * max(float(np.nanmax(one.values, initial=1e-3)) for one in (a, b))
    figure = themed(
        theme,
        height=height,
        margin={"l": 8, "r": 12, "t": 34, "b": 8},
        xaxis={"title": {"text": "loss in B, nats per token"}, "range": [-0.03 * end, end]},
        yaxis={"title": {"text": "loss in A, nats per token"}, "range": [-0.03 * end, end]},
        showlegend=True,
    )
    figure.add_scatter(
        x=[0, end],
        y=[0, end],
        mode="lines",
        line={"dash": "dash", "width": 1, "color": theme.text},
        hoverinfo="skip",
        showlegend=False,
    )
    for name, (colour, symbol) in GROUPS.items():
        which = [i for i, group in enumerate(groups) if group == name]
        if which:
            figure.add_scatter(
                x=b.values[which],
                y=a.values[which],
                mode="markers",
                name=name,
                marker={"color": colour, "symbol": symbol, "size": 8, "opacity": 0.8},
                customdata=[plain(a.axes[0].labels[i].strip(), LONGEST_ROW) for i in which],
                hovertemplate="%{customdata}<br>A <b>%{y:.3f}</b>, B <b>%{x:.3f}</b> nats per token<extra></extra>",
            )
    return figure
