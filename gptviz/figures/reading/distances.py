"""How far the predicted labels are from the true ones, for labels with an order: the model next to its baseline."""

from __future__ import annotations

import plotly.graph_objects as go

from gptviz.figures.kit.theme import OUTPUT, STREAM, Theme, base
from gptviz.labelled_array import LabelledArray

from ..kit.format import percent


def distances(model: LabelledArray, baseline: LabelledArray | None, theme: Theme, *, height: int = 230) -> go.Figure:
    """Bars of the shares [distance] of texts, 0 … 1, of the `model` and of the `baseline`, if there is one, next to them."""
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
            outsidetextfont={"size": 13},
            cliponaxis=False,
            hovertemplate=f"{name}, %{{x}}:<br><b>%{{text}}</b> of the texts<extra></extra>",
        )
    highest = max(float(shares.values.max()) for _, shares, _, _ in pairs)
    return figure.update_layout(
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        barmode="group",
        dragmode=False,
        showlegend=baseline is not None,
        xaxis={"title": {"text": "labels from its own"}, "fixedrange": True},
        yaxis={
            "title": {"text": "share of the texts"},
            "tickformat": ".0%",
            "showgrid": True,
            "range": [0, min(1.0, 1.2 * highest) or 1],
            "fixedrange": True,
        },
    )
