"""What heads and MLPs do over a list of prompts: the mean of each with its spread, and what the
prompt on screen says.
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis, rows
from gptviz.figures.kit.theme import QUERY, STREAM, Theme, plain_label, themed_figure
from gptviz.labelled_array import Float64Array, LabelledArray

ROW = 27
SHOWN = 12


def over_prompts(
    spread: LabelledArray, here: Float64Array, theme: Theme, *, unit: str
) -> go.Figure:
    """The units of the largest means in `spread` [number, unit], the largest at the top: a dot with
    a line of a standard deviation to either side, and a diamond for the prompt on screen (`here`
    [unit], NaN for none).
    """
    mean, deviation = spread.values[:2]
    order = np.argsort(-np.abs(mean), kind="stable")[:SHOWN]
    places = list(range(len(order)))
    line = {"type": "data", "array": np.nan_to_num(deviation[order]), "color": STREAM}
    dots = go.Scatter(
        x=mean[order], y=places, error_x=line, mode="markers", name="mean ± standard deviation"
    )
    dots.update(marker={"color": QUERY, "size": 9}, hovertemplate="mean %{x:.4g}<extra></extra>")
    diamonds = go.Scatter(x=here[order], y=places, mode="markers", name="the prompt on screen")
    diamonds.update(
        marker={"symbol": "diamond-open", "size": 11, "color": theme.text},
        hovertemplate="on screen %{x:.4g}<extra></extra>",
    )
    names = [plain_label(spread.axes[1].labels[i], 40) for i in order]
    return themed_figure(
        theme,
        dots,
        diamonds,
        height=ROW * len(places) + 96,
        margin={"l": 8, "r": 16, "t": 36, "b": 48},
        dragmode=False,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        xaxis=axis(unit) | {"tickformat": "~g", "zeroline": True, "showgrid": True},
        yaxis=rows(names),
    )
