"""The labels of a text as bars, the likeliest first."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from gptviz.figures.kit.axes import rows
from gptviz.figures.kit.theme import OUTPUT, Theme, blend, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

from ..kit.format import percent

PITCH = 30  # pixels from one bar to the next
LONGEST_LABEL = 16


def labels(
    probabilities: LabelledArray,
    theme: Theme,
    *,
    pitch: int = PITCH,
    colours: Sequence[str] | None = None,
) -> go.Figure:
    """A bar for each of `probabilities` [label], in their order from the top, on the fixed scale 0
    … 1, with its number; `pitch` is in pixels, and the usual colour that of what a model puts out.
    """
    names = probabilities.axes[0].labels
    values = probabilities.values
    places = list(range(len(names)))
    bars = go.Bar(
        x=values,
        y=places,
        orientation="h",
        marker={"color": colours or OUTPUT},
        customdata=[
            [html.escape(name), percent(float(value))]
            for name, value in zip(names, values, strict=True)
        ],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
    )
    track = go.Bar(
        x=[1] * len(names),
        y=places,
        orientation="h",
        hoverinfo="skip",
        marker={"color": blend(theme.text, theme.background, 0.07)},
    )
    figure = themed_figure(theme, track, bars, height=pitch * len(names) + 8)
    numbers = [
        {
            "x": 1,
            "xref": "paper",
            "xanchor": "left",
            "xshift": 6,
            "y": place,
            "text": percent(float(value)),
        }
        for place, value in zip(places, values, strict=True)
    ]
    longest = max(min(len(name), LONGEST_LABEL) for name in names)
    return figure.update_layout(
        # Room is fixed and not measured, so that the picture keeps its place when its numbers
        # change.
        margin={"l": 12 + 8 * longest, "r": 62, "t": 4, "b": 4},
        annotations=numbers,
        barmode="overlay",
        bargap=0.45,
        dragmode=False,
        showlegend=False,
        xaxis={"range": [0, 1], "visible": False},
        yaxis=rows([plain_label(name, LONGEST_LABEL) for name in names])
        | {"tickfont": {"size": 14}},
    )
