"""The logit lens at one place of a text: how the likeliest tokens rose and fell from layer to
layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MARGIN, axis
from gptviz.figures.kit.format import percent
from gptviz.figures.kit.theme import Theme, blend, plain_label, themed_figure
from gptviz.figures.training.curves import stroke
from gptviz.labelled_array import LabelledArray

# How many tokens have a colour and a name; the others are thin lines that say their name under the
# pointer.
NAMED = 5
MOST_TICKS = 14
MOST_MARKED = 20
# Where small probabilities are shown, the scale begins here.
SMALLEST = 1e-4


def rise_and_fall(
    course: LabelledArray,
    layers: Sequence[str],
    theme: Theme,
    *,
    height: int,
    opened: int,
    logarithmic: bool = False,
) -> go.Figure:
    """The probabilities `course` [token, layer] as a line for each token, the first tokens in
    colour; the first of all is the likeliest in the cell that was opened, whose layer `opened` a
    line marks. `layers` are the names on the axis. On a `logarithmic` scale equal ratios have equal
    lengths, so that small probabilities show.
    """
    tokens, places = course.axes
    across = list(range(len(places.labels)))
    if logarithmic:
        scale = {
            "type": "log",
            "range": [math.log10(SMALLEST), 0.02],
            "tickvals": [1e-4, 1e-3, 1e-2, 0.1, 1],
        } | {"ticktext": ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"]}
    else:
        scale = {"range": [-0.02, 1.04], "tickformat": ".0%"}
    lines = []
    for index in reversed(range(len(tokens.labels))):  # the likeliest come last, on top
        is_named = index < NAMED
        name = plain_label(tokens.labels[index])
        values = course.values[index]
        thin = {"line": {"color": blend(theme.text, theme.background, 0.25), "width": 1}}
        line = go.Scatter(
            x=across,
            y=np.maximum(values, SMALLEST / 10) if logarithmic else values,
            mode="lines+markers" if is_named else "lines",
            name=name,
            showlegend=is_named,
            **(stroke(index, theme, MOST_MARKED) if is_named else thin),
            customdata=[
                [name, place, percent(float(value))]
                for place, value in zip(places.labels, values, strict=True)
            ],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<extra></extra>",
            legendrank=index,
        )
        lines.append(line)
    here = {
        "type": "line",
        "x0": opened,
        "x1": opened,
        "xref": "x",
        "y0": 0,
        "y1": 1,
        "yref": "y domain",
    }
    return themed_figure(
        theme,
        *lines,
        height=height,
        margin=MARGIN | {"b": _foot(layers), "t": 36},
        shapes=[here | {"line": {"color": theme.text, "width": 1, "dash": "dot"}}],
        showlegend=True,
        legend={"font": {"size": 13}},
        xaxis=axis("layer") | _ticks(layers),
        yaxis=axis("probability after the layer") | {"showgrid": True} | scale,
    )


def by_layer(
    lines: LabelledArray, layers: Sequence[str], theme: Theme, *, height: int
) -> go.Figure:
    """A line for each row of `lines` [line, layer], or of another axis than layers, from 0 up.
    `layers` are the names on it.
    """
    kinds, places = lines.axes
    figure = themed_figure(
        theme,
        height=height,
        margin=MARGIN | {"b": _foot(layers), "t": 36},
        showlegend=True,
        legend={"font": {"size": 13}},
        xaxis=axis(places.name) | _ticks(layers),
        yaxis=axis(lines.unit) | {"showgrid": True, "rangemode": "tozero", "tickformat": ".3~g"},
    )
    for index, (kind, values) in enumerate(zip(kinds.labels, lines.values, strict=True)):
        figure.add_scatter(
            x=list(range(len(places.labels))),
            y=values,
            mode="lines+markers",
            name=plain_label(kind),
            **stroke(index, theme, MOST_MARKED),
            customdata=[
                [place, f"{value:.3g}"] for place, value in zip(places.labels, values, strict=True)
            ],
            hovertemplate=f"<b>{plain_label(kind)}</b><br>%{{customdata[0]}}<br>%{{customdata[1]}}<extra></extra>",
        )
    return figure


def _foot(layers: Sequence[str]) -> int:
    """The pixels below the picture for these slanted names, and the title below them."""
    return 46 + 4 * max(map(len, layers), default=0)


def _ticks(layers: Sequence[str]) -> dict[str, Any]:
    """The names of some of the layers, evenly spaced, the last among them."""
    last = len(layers) - 1
    step = math.ceil(len(layers) / MOST_TICKS)
    ticks = [*range(0, max(1, last - step // 2), step), *([last] if last else [])]
    return {
        "tickvals": ticks,
        "ticktext": [plain_label(layers[i]) for i in ticks],
        "tickangle": -45,
        "range": [-0.3, last + 0.3],
    }
