"""The residual stream by layer: how long its vectors are, how far they point the same way, and what each sublayer writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MONOSPACE, log_ticks, some
from gptviz.figures.kit.format import brief
from gptviz.figures.kit.heat import heatmap, scale
from gptviz.figures.kit.theme import KEY, MLP, PATTERN, STREAM, Theme, plain, themed
from gptviz.labelled_array import LabelledArray

# How many names fit on an axis: of positions, and of layers.
MOST_ACROSS, MOST_LAYERS_ACROSS, MOST_DOWN = 40, 20, 26
# The looks of sublayers, and of mixes with earlier states, by the ends of their names: colour, marker, hatching, name.
WRITERS = {
    "cross_attention": (KEY, "diamond", "x", "cross-attention"),
    "attention": (PATTERN, "circle", "/", "attention"),
    "mlp": (MLP, "square", "", "MLP"),
    "mix": (STREAM, "triangle-up", ".", "mix"),
    "backout": (STREAM, "triangle-down", "-", "backout"),
}
# The length as which zero is drawn on a logarithmic scale.
SMALLEST = 1e-6


def sizes(lengths: LabelledArray, layers: Sequence[str], theme: Theme, *, height: int, first: int = 0) -> go.Figure:
    """`lengths` [layer, position] as a heatmap on a logarithmic scale, the first layer on top.

    Args:
        lengths: above 0.
        layers: the names of the layers on the axis.
        theme: light or dark.
        height: in pixels.
        first: the position of the first column.
    """
    _, positions = lengths.axes
    values = np.log10(np.maximum(lengths.values, 1e-12))
    low, high = float(values.min()), float(values.max())
    ticks = np.linspace(low, high, 4) if high > low else np.array([low])
    names = [f"{first + i} {plain(label)}" for i, label in enumerate(positions.labels)]
    drawn = heatmap(
        values,
        low,
        high,
        theme,
        colour=STREAM,
        customdata=[
            [[layer, name, brief(size)] for name, size in zip(names, row, strict=True)]
            for layer, row in zip(lengths.axes[0].labels, lengths.values, strict=True)
        ],
        hovertemplate="after %{customdata[0]}<br>position %{customdata[1]}<br><b>length %{customdata[2]}</b><extra></extra>",
        colorbar=scale([*ticks], [brief(10**tick) for tick in ticks], **_beside("length (log scale)")),
    )
    return themed(
        theme,
        drawn,
        height=height,
        margin={"l": 130, "r": 10, "t": 8, "b": 60},
        xaxis=_named(names, MOST_ACROSS, "position") | {"tickangle": -90},
        yaxis=_layers([plain(one) for one in layers], MOST_DOWN) | {"autorange": "reversed"},
    )


def directions(cosines: LabelledArray, layers: Sequence[str], theme: Theme, *, height: int) -> go.Figure:
    """`cosines` [layer, layer] from −1 to 1: orange below zero, blue above."""
    names = [plain(one) for one in layers]
    drawn = heatmap(
        cosines.values,
        -1,
        1,
        theme,
        customdata=[[[one, other] for other in cosines.axes[1].labels] for one in cosines.axes[0].labels],
        hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br><b>cosine %{z:.3f}</b><extra></extra>",
        colorbar=scale([-1, 0, 1], **_beside("cosine")),
    )
    return themed(
        theme,
        drawn,
        height=height,
        margin={"l": 130, "r": 10, "t": 8, "b": 110},
        xaxis=_layers(names, MOST_LAYERS_ACROSS) | {"tickangle": -60},
        yaxis=_layers(names, MOST_DOWN) | {"autorange": "reversed"},
    )


def written(shares: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """The vectors that sublayers write, `shares` [quantity, sublayer]: above their sizes, on a logarithmic scale; below their
    projections on the stream.
    """
    _, writers = shares.axes
    size, along = shares.values
    line = {"showgrid": True, "tickformat": ".3~g"}
    title = {"font": {"size": 13}}
    figure = themed(
        theme,
        height=height,
        margin={"l": 66, "r": 10, "t": 34, "b": 120},
        bargap=0.25,
        legend={"font": {"size": 13}},
        xaxis=_layers([short(one) for one in writers.labels], MOST_LAYERS_ACROSS) | {"tickangle": -60, "anchor": "y2"},
        yaxis=line
        | _log_axis(np.maximum(size, SMALLEST))
        | {"domain": [0.55, 1], "title": title | {"text": "length ÷ stream’s (log)"}},
        yaxis2=line | {"domain": [0, 0.45], "zeroline": True, "title": title | {"text": "part along the stream"}},
    )
    for end, (colour, symbol, hatch, name) in WRITERS.items():
        which = [i for i, writer in enumerate(writers.labels) if _kind(writer) == end]
        if not which:
            continue
        look = {"name": name, "legendgroup": name, "x": which}
        figure.add_scatter(
            **look,
            y=np.maximum(size[which], SMALLEST),
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 11},
            **_said(writers.labels, size, which, "size"),
        )
        figure.add_bar(
            **look,
            y=along[which],
            yaxis="y2",
            showlegend=False,
            marker={"color": colour, "pattern": {"shape": hatch, "fillmode": "overlay", "fgcolor": theme.background, "size": 6}},
            **_said(writers.labels, along, which, "along the stream"),
        )
    # As long as the stream itself.
    figure.add_hline(y=1, line={"color": theme.text, "width": 1, "dash": "dot"}, yref="y")
    return figure


def _log_axis(values: npt.NDArray[Any]) -> dict[str, Any]:
    """A logarithmic axis with room for all `values` and for 1, what they are compared with."""
    low, high = 0.8 * min(1.0, max(float(values.min()), SMALLEST)), 1.25 * max(1.0, float(values.max()))
    return {"type": "log", "range": [math.log10(low), math.log10(high)], "tickvals": log_ticks(low, high)}


def _said(names: Sequence[str], values: npt.NDArray[Any], which: Sequence[int], quantity: str) -> dict[str, Any]:
    """The words for a point or a bar under the pointer."""
    return {
        "customdata": [[names[i], brief(values[i])] for i in which],
        "hovertemplate": f"%{{customdata[0]}}<br><b>{quantity} %{{customdata[1]}}</b> of the stream<extra></extra>",
    }


def short(writer: str) -> str:
    """The name of a sublayer on an axis, as in "MLP 3"."""
    return f"{WRITERS[_kind(writer)][-1]} {writer.split('.')[1]}"


def _kind(writer: str) -> str:
    return writer.rsplit(".", 1)[-1]


def _beside(title: str) -> dict[str, Any]:
    """The place and the name of a scale of colours next to its cells."""
    return {"thickness": 12, "title": {"text": title, "side": "right"}}


def _layers(names: Sequence[str], most: int) -> dict[str, Any]:
    """An axis of layers or sublayers, which end in the number of their block. Where they are more than fit, it names blocks: each
    in the middle of its own.
    """
    if len(names) <= most:
        return _ticks(range(len(names)), names)
    blocks: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        number = name.rpartition(" ")[-1]
        blocks.setdefault(f"block {number}" if number.isdecimal() else name, []).append(place)
    shown = [list(blocks)[i] for i in some(len(blocks), most)]
    return _ticks([sum(blocks[name]) / len(blocks[name]) for name in shown], shown)


def _named(names: Sequence[str], most: int, title: str) -> dict[str, Any]:
    """An axis with these names, or some of them where they are more than fit."""
    shown = some(len(names), most)
    return _ticks(shown, [names[i] for i in shown]) | {"title": {"text": title, "standoff": 6, "font": {"size": 13}}}


def _ticks(places: Sequence[float], names: Sequence[str]) -> dict[str, Any]:
    return {"tickvals": list(places), "ticktext": list(names), "tickfont": MONOSPACE}
