"""Parts of a sum: a waterfall from nothing to the whole, the largest part first."""

from __future__ import annotations

import html
import math

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis, rows
from gptviz.figures.kit.format import format_signed
from gptviz.figures.kit.theme import KEY, OUTPUT, QUERY, STREAM, Theme, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

ROW = 27  # pixels
SHOWN = 12
LONGEST_LABEL = 40
# Pixels beside a bar for its number, as long as +0.000584.
BESIDE = 56
MARGIN = {"l": 8, "r": BESIDE, "t": 28, "b": 44}


def waterfall(
    parts: LabelledArray, theme: Theme, *, whole: str, above: str, below: str, shown: int = SHOWN
) -> go.Figure:
    """`parts` [part] as bars that begin where the last one ended, the largest first: `shown` of
    them, and one for all others. The last bar is their sum, called `whole`. A part that adds speaks
    for what is `above`, one that takes away for what is `below`.
    """
    # the parts that are shown, the largest first, and the sum of the others
    values = np.asarray(parts.values, float)
    names = parts.axes[0].labels
    order = np.argsort(-np.abs(values), kind="stable")
    few = len(order) <= shown + 1
    first = order if few else order[:shown]
    labels = [plain_label(names[i], LONGEST_LABEL) for i in first]
    sizes = values[first].tolist()
    if not few:
        labels.append(f"the other {len(order) - shown} parts")
        sizes.append(math.fsum(values[order[shown:]]))
    starts = [math.fsum(sizes[:row]) for row in range(len(sizes))]
    total = math.fsum(sizes)
    shades = [QUERY if size >= 0 else KEY for size in sizes]
    if not few:
        shades[-1] = STREAM

    # a bar for each, which begins where the last one ended
    count = len(sizes) + 1
    bars = go.Bar(
        orientation="h",
        base=[*starts, 0.0],
        x=[*sizes, total],
        y=list(range(count)),
        marker={"color": [*shades, OUTPUT]},
        text=[format_signed(size) for size in (*sizes, total)],
        textposition="outside",
        cliponaxis=False,
        customdata=[
            [html.escape(label), start + size]
            for label, start, size in zip(labels, starts, sizes, strict=True)
        ]
        + [[html.escape(whole), total]],
        hovertemplate="<b>%{customdata[0]}</b><br>%{x:+.5g}, together "
        "%{customdata[1]:.5g}<extra></extra>",
    )

    # a dotted line from each bar to the next
    ends = [0.0, *(start + size for start, size in zip(starts, sizes, strict=True))]
    dotted = {"color": theme.text, "width": 1, "dash": "dot"}
    to_the_next = [
        {"type": "line", "x0": end, "x1": end, "y0": row, "y1": row + 1, "line": dotted}
        for row, end in enumerate(ends[1:])
    ]

    # the frame
    span = max(ends) - min(ends) or 1.0
    # The number of a bar that takes away stands at its left: before those at the edge the names
    # step back.
    is_at_edge = any(
        size < 0 and start + size < min(ends) + 0.25 * span
        for start, size in zip(starts, sizes, strict=True)
    )
    room = 0.02 * span
    figure = themed_figure(
        theme,
        bars,
        height=ROW * count + MARGIN["t"] + MARGIN["b"],
        shapes=to_the_next,
        margin=MARGIN,
        bargap=0.3,
        dragmode=False,
        showlegend=False,
        xaxis=axis(parts.unit)
        | {
            "range": [min(ends) - room, max(ends) + room],
            "tickformat": "~g",
            "nticks": 6,
            "zeroline": True,
            "showgrid": True,
        },
        yaxis=rows([*labels, f"<b>{plain_label(whole, LONGEST_LABEL)}</b>"])
        | (
            {"ticks": "outside", "ticklen": BESIDE, "tickcolor": "rgba(0,0,0,0)"}
            if is_at_edge or total < 0
            else {}
        ),
    )
    # The meaning of the two colours ends at the figure's right edge, so that it may be wider than
    # the picture.
    text = (
        f"<span style='color: {QUERY}'>■</span> {plain_label(above, 30)}   <span style='color: "
        f"{KEY}'>■</span> {plain_label(below, 30)}"
    )
    place = {"xref": "paper", "x": 1, "xshift": figure.layout.margin.r - 8, "xanchor": "right"}
    return figure.add_annotation(
        text=text, font={"size": 12}, **place, yref="paper", y=1, yanchor="bottom"
    )
