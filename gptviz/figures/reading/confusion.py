"""What a classifier gets wrong: which labels the texts of each label were given, and how far these
are from the true ones.
"""

from __future__ import annotations

import html

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import distinct_names
from gptviz.figures.kit.heat import heatmap, numbers, scale
from gptviz.figures.kit.theme import OUTPUT, STREAM, Theme, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

from ..kit.format import percent

# With more labels than this there is no room for a number in each cell.
MOST_NUMBERED = 10
LONGEST_LABEL = 14


def confusion(counts: LabelledArray, theme: Theme, *, height: int = 360) -> go.Figure:
    """`counts` [label, predicted] as a square, coloured by the share of the row, 0 … 1; a label
    without texts is blank.
    """
    truth, predicted = counts.axes
    totals = counts.values.sum(1, keepdims=True)
    shares = np.divide(
        counts.values, totals, out=np.full(counts.values.shape, np.nan), where=totals > 0
    )
    n_label = len(truth.labels)
    numbered = n_label <= MOST_NUMBERED
    names = [plain_label(label, LONGEST_LABEL) for label in truth.labels]
    drawn = heatmap(
        shares,
        0,
        1,
        theme,
        colour=OUTPUT,
        gap=2 if numbered else 0,
        text=counts.values,
        customdata=[
            [[html.escape(row), html.escape(column)] for column in predicted.labels]
            for row in truth.labels
        ],
        hovertemplate=(
            "%{customdata[0]}, taken for %{customdata[1]}:<br><b>%{text:,}</b> "
            + f"{counts.unit}, %{{z:.2%}} of its row<extra></extra>"
        ),
        showscale=not numbered,
        colorbar=scale([0, 0.5, 1], ["0 %", "50 %", "100 %"], len=0.6, tickfont={"size": 13}),
    )
    if numbered:
        ticks = {"tickvals": list(range(n_label)), "ticktext": names}
    else:
        ticks = {"type": "category"}
    if not numbered:  # plotly then names as many as there is room for
        drawn.update(x=distinct_names(names), y=distinct_names(names))
    look = {"ticks": "", "constrain": "domain"} | ticks
    figure = themed_figure(
        theme,
        drawn,
        height=height,
        margin={"l": 8, "r": 8, "t": 26, "b": 8},
        dragmode=False,
        xaxis=look | {"title": {"text": "taken for"}, "constraintoward": "left"},
        yaxis=look
        | {
            "title": {"text": "its label"},
            "autorange": "reversed",
            "scaleanchor": "x",
            "constraintoward": "top",
        },
    )
    if numbered:
        each = zip(counts.values.tolist(), shares.tolist(), strict=True)
        texts = [
            [f"{count:,}<br>{share:.1%}" for count, share in zip(*row, strict=True)] for row in each
        ]
        figure.add_trace(numbers(drawn, texts))
    place = {
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
    }
    figure.add_annotation(text="colour: share of the row, 0 … 100 %", font={"size": 12}, **place)
    return figure


def distances(model: LabelledArray, baseline: LabelledArray | None, theme: Theme) -> go.Figure:
    """Bars of the shares [distance] of texts, 0 … 1, of the `model` and of the `baseline`, if there
    is one, next to them.
    """
    pairs = [("this model", model, OUTPUT, "")]
    if baseline is not None:
        pairs.append(("TF-IDF baseline", baseline, STREAM, "/"))
    highest = max(float(shares.values.max()) for _, shares, _, _ in pairs)
    figure = themed_figure(
        theme,
        height=230,
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        barmode="group",
        dragmode=False,
        showlegend=baseline is not None,
        xaxis={"title": {"text": "labels from its own"}},
        yaxis={
            "title": {"text": "share of the texts"},
            "tickformat": ".0%",
            "showgrid": True,
            "range": [0, min(1.0, 1.2 * highest) or 1],
        },
    )
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
    return figure
