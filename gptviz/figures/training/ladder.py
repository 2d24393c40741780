"""A ladder of models: how a quantity goes up and down from one to the next, step by step."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MARGIN, axis
from gptviz.figures.kit.theme import STREAM, Theme, plain_label, themed_figure
from gptviz.figures.training.curves import COLOURS
from gptviz.labelled_array import LabelledArray

DOWN = COLOURS[0]
UP = COLOURS[1]
ROW = 34  # pixels
# pixels for a number next to a bar; they are left free between the names and the bars, and on the
# right
NUMBER = 52
TOGETHER = "all together"


def level_by_level(levels: LabelledArray, theme: Theme) -> go.Figure:
    """`levels` [step], from top to bottom: the first as a mark, then a bar from each level to the
    next, and last one over all.

    The axis does not begin at 0: bars stand only for changes.
    """
    (steps,), values = levels.axes, np.asarray(levels.values, float)
    rows = [plain_label(label, 80) for label in steps.labels]
    changes = [*np.diff(values).tolist(), float(values[-1] - values[0])]
    starts = [*values[:-1].tolist(), float(values[0])]
    names = [*rows[1:], TOGETHER]
    # the last of them is what all have done together
    shades = [DOWN if change < 0 else UP for change in changes[:-1]] + [STREAM]
    room = 0.02 * float(np.ptp(values)) or 0.1
    figure = themed_figure(
        theme,
        height=ROW * (len(rows) + 1) + MARGIN["t"] + MARGIN["b"],
        margin={**MARGIN, "l": 8, "r": NUMBER},
        bargap=0.35,
        dragmode=False,
        showlegend=False,
        xaxis=axis(levels.unit)
        | {
            "range": [float(values.min()) - room, float(values.max()) + room],
            "tickformat": ".2~f",
            "showgrid": True,
        },
        yaxis={
            "categoryorder": "array",
            "categoryarray": [*rows, TOGETHER],
            "autorange": "reversed",
            "ticklabelstandoff": NUMBER,
            "tickfont": {"size": 13},
        },
    )
    figure.add_scatter(
        x=[values[0]],
        y=[rows[0]],
        mode="markers+text",
        marker={"symbol": "line-ns", "size": 18, "line": {"width": 3, "color": theme.text}},
        text=[f"{values[0]:.3f}"],
        textposition="middle left",
        textfont={"color": theme.text, "size": 13},
        cliponaxis=False,
        hovertemplate=f"<b>%{{x:.4f}}</b> {levels.unit}<extra></extra>",
    )
    figure.add_bar(
        orientation="h",
        base=starts,
        x=changes,
        y=names,
        marker={"color": shades},
        text=[f"{change:+.3f}".replace("-", "−") for change in changes],
        textposition="outside",
        outsidetextfont={"size": 13},
        cliponaxis=False,
        customdata=[[start, start + change] for start, change in zip(starts, changes, strict=True)],
        hovertemplate="from %{customdata[0]:.4f} to <b>%{customdata[1]:.4f}</b>, "
        "%{x:+.4f}<extra></extra>",
    )
    # A thin line from the end of each row to the beginning of the next.
    names = [*rows, TOGETHER]
    for row, value in enumerate(values[:-1].tolist()):
        look = {
            "mode": "lines",
            "line": {"color": theme.text, "width": 1, "dash": "dot"},
            "hoverinfo": "skip",
        }
        figure.add_scatter(x=[value, value], y=names[row : row + 2], **look)
    return figure
