"""Probabilities before and after a change: two bars for each token, on one scale."""

from __future__ import annotations

import plotly.graph_objects as go

from gptviz.figures.kit.axes import MONOSPACE, distinct_names
from gptviz.figures.kit.format import percent
from gptviz.figures.kit.theme import OUTPUT, STREAM, Theme, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

LINE = 36
LONGEST_LABEL = 40


def before_after(change: LabelledArray, theme: Theme) -> go.Figure:
    """`change` [before or after, guess]: a grey hatched bar for before, and one in the colour of
    the output for after, with their numbers; the first guess at the top, the scale from 0 on.
    """
    _, tokens = change.axes
    names = distinct_names([plain_label(label, 18) for label in tokens.labels])
    figure = themed_figure(
        theme,
        height=70 + LINE * len(names),
        margin={"l": 8, "r": 16, "t": 28, "b": 36},
        barmode="group",
        bargap=0.25,
        dragmode=False,
        legend={"traceorder": "normal"},
        xaxis={
            "title": {"text": change.unit, "standoff": 6},
            "range": [0, max(0.05, 1.2 * float(change.values.max()))],
            "tickformat": ".0%",
        },
        yaxis={"type": "category", "autorange": "reversed", "tickfont": MONOSPACE},
    )
    looks = (("before", STREAM, "/"), ("after", OUTPUT, ""))
    for row, (name, colour, hatched) in zip(change.values, looks, strict=True):
        figure.add_bar(
            y=names,
            x=row,
            orientation="h",
            name=name,
            marker={"color": colour, "pattern": {"shape": hatched, "size": 5, "solidity": 0.4}},
            text=[percent(float(share)) for share in row],
            textposition="outside",
            cliponaxis=False,
            customdata=[plain_label(label, LONGEST_LABEL) for label in tokens.labels],
            hovertemplate=f"<b>%{{customdata}}</b><br>{name} %{{x:.4f}}<extra></extra>",
        )
    return figure
