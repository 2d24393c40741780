"""How often tokens come in a text, as bars, the most frequent first."""

from __future__ import annotations

import plotly.graph_objects as go

from gptviz.figures.kit.axes import MONOSPACE, rows, short_label
from gptviz.figures.kit.theme import Theme, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

MOST = 20  # bars
PITCH = 17  # pixels from one bar to the next
LONGEST_LABEL = 12


def frequencies(shares: LabelledArray, theme: Theme) -> go.Figure:
    """A bar for each of the first `MOST` of `shares` [token], which are sorted, from the top."""
    (tokens,) = shares.axes
    values = shares.values[:MOST]
    labels = tokens.labels[:MOST]
    names = [plain_label(short_label(label), LONGEST_LABEL) for label in labels]
    bars = go.Bar(
        x=values,
        y=list(range(len(labels))),
        orientation="h",
        marker={"color": theme.text},
        opacity=0.7,
        customdata=[plain_label(label) for label in labels],
        hovertemplate="<b>%{customdata}</b><br>%{x:.3~%} of all tokens<extra></extra>",
    )
    rest = len(tokens.labels) - len(labels)
    if rest:
        more = f", the {len(labels)} most frequent of {len(tokens.labels):,}"
    else:
        more = ""
    return themed_figure(
        theme,
        bars,
        height=PITCH * len(labels) + 52,
        margin={
            "l": 20 + 8 * max(min(len(short_label(label)), LONGEST_LABEL) for label in labels),
            "r": 20,
            "t": 4,
            "b": 48,
        },
        bargap=0.25,
        dragmode=False,
        showlegend=False,
        xaxis={
            "title": {"text": f"share of all tokens{more}"},
            "tickformat": "~%",
            "rangemode": "tozero",
        },
        yaxis=rows(names) | {"tickfont": MONOSPACE},
    )
