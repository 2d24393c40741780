"""How far off the labels are that texts were given, where labels have an order: the model beside its baseline."""

from __future__ import annotations

import plotly.graph_objects as go

from gptviz.figures.theme import OUTPUT, STREAM, Theme, base
from gptviz.labelled_array import LabelledArray

from .format import percent


def distances(model: LabelledArray, baseline: LabelledArray | None, theme: Theme, *, height: int = 230) -> go.Figure:
    """Bars of the shares [distance] of texts, 0 … 1, of the `model` and, where there is one, of the `baseline` beside them."""
    figure = go.Figure(layout=base(theme, height=height))
    pairs = [("this model", model, OUTPUT, "")]
    if baseline is not None:
        pairs.append(("TF-IDF baseline", baseline, STREAM, "/"))
    for name, shares, colour, pattern in pairs:
        figure.add_bar(
            name=name,
            x=list(shares.axes[0].labels),
            y=shares.values,
            marker={"color": colour, "pattern": {"shape": pattern}},
            text=[percent(float(share)) for share in shares.values],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"{name}, %{{x}}:<br><b>%{{text}}</b> of the texts<extra></extra>",
        )
    font = {"size": 12, "color": theme.text}
    highest = max(float(shares.values.max()) for _, shares, _, _ in pairs)
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        barmode="group",
        dragmode=False,
        showlegend=baseline is not None,
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "font": font},
        xaxis={"title": {"text": "labels from its own", "font": font}, "tickfont": font, "automargin": True, "fixedrange": True},
        yaxis={
            "title": {"text": "share of the texts", "font": font},
            "tickformat": ".0%",
            "range": [0, min(1.0, 1.2 * highest) or 1],
            "automargin": True,
            "fixedrange": True,
        },
    )
    return figure
