"""A neuron: its activations as a histogram, the tokens it speaks for and against, and a guess
before and after it is set.
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MONOSPACE, rows
from gptviz.figures.kit.theme import KEY, MLP, QUERY, Theme, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

PITCH = 22  # pixels from one token to the next
LONGEST_LABEL = 16
FROM_LOGARITHMIC = 100  # tokens in a bin


def histogram(counts: LabelledArray, theme: Theme, *, width: float) -> go.Figure:
    """How many tokens have an activation in each bin of this width; the axis is logarithmic where
    one bin has many.
    """
    lows = np.array([float(label) for label in counts.axes[0].labels])
    values = np.asarray(counts.values, float)
    bars = go.Bar(
        x=lows + width / 2,
        y=np.where(values > 0, values, np.nan),
        width=width,
        marker={"color": MLP, "line": {"width": 1, "color": theme.background}},
        customdata=np.stack([lows, lows + width], -1),
        hovertemplate="activation %{customdata[0]:.4g} … %{customdata[1]:.4g}<br><b>%{y:,}</b> "
        "tokens<extra></extra>",
    )
    top = float(values.max(initial=1.0))
    counts_axis = {"type": "log", "range": [-0.3, np.log10(top) + 0.15], "dtick": 1}
    if not is_logarithmic(counts):
        counts_axis = {"range": [0, 1.1 * top], "dtick": max(1, round(top / 4)), "tickformat": "d"}
    return themed_figure(
        theme,
        bars,
        height=220,
        margin={"l": 56, "r": 8, "t": 8, "b": 44},
        dragmode=False,
        bargap=0,
        xaxis={"title": {"text": "activation", "standoff": 6}, "zeroline": True},
        yaxis={"title": {"text": "tokens", "standoff": 4}, "showgrid": True} | counts_axis,
    )


def is_logarithmic(counts: LabelledArray) -> bool:
    """Whether the axis of a `histogram` with these numbers is logarithmic."""
    return float(np.max(counts.values, initial=0)) >= FROM_LOGARITHMIC


def promoted(
    values: LabelledArray, theme: Theme, colour: str | None = None, longest: int = LONGEST_LABEL
) -> go.Figure:
    """A bar for each of `values` [token], in their order from the top: blue is promoted, orange
    suppressed, unless all bars have one `colour`. A label has at most `longest` characters.
    """
    numbers = np.asarray(values.values, float)
    labels = values.axes[0].labels
    places = list(range(len(labels)))
    bars = go.Bar(
        x=numbers,
        y=places,
        orientation="h",
        marker={"color": colour or [QUERY if value >= 0 else KEY for value in numbers]},
        customdata=[plain_label(label, 40) for label in labels],
        hovertemplate=f"<b>%{{customdata}}</b><br>%{{x:+.4g}} {values.unit}<extra></extra>",
    )
    return themed_figure(
        theme,
        bars,
        height=PITCH * len(labels) + 60,
        margin={
            "l": 16 + 9 * max(min(len(label), longest) for label in labels),
            "r": 16,
            "t": 8,
            "b": 44,
        },
        dragmode=False,
        bargap=0.3,
        showlegend=False,
        xaxis={"title": {"text": values.unit, "standoff": 6}, "zeroline": True, "nticks": 6},
        yaxis=rows([plain_label(label, longest) for label in labels])
        | {"tickfont": MONOSPACE | {"size": 13}},
    )
