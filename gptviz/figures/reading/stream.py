"""The residual stream by layer: what each sublayer writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MONOSPACE, labelled_places
from gptviz.figures.kit.format import brief
from gptviz.figures.kit.theme import KEY, MLP, PATTERN, STREAM, Theme, themed_figure
from gptviz.labelled_array import LabelledArray

# How many names of sublayers fit on an axis.
MOST_ACROSS = 20
# How many bars side by side have room for their numbers.
MOST_NUMBERED = 16
# The looks of sublayers, and of mixes with earlier states, by the ends of their names: colour,
# hatching, name.
WRITERS = {
    "cross_attention": (KEY, "x", "cross-attention"),
    "attention": (PATTERN, "/", "attention"),
    "mlp": (MLP, "", "MLP"),
    "mix": (STREAM, ".", "mix"),
    "backout": (STREAM, "-", "backout"),
}


def draw_written(shares: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """The sizes (above) and projections on the stream of what sublayers write: `shares` [quantity,
    sublayer].
    """
    _, writers = shares.axes
    size, along = shares.values
    line = {"showgrid": True, "tickformat": ".3~g"}
    title = {"font": {"size": 13}}
    figure = themed_figure(
        theme,
        height=height,
        margin={"l": 66, "r": 10, "t": 34, "b": 120},
        bargap=0.25,
        legend={"font": {"size": 13}},
        xaxis=_layers([short(label) for label in writers.labels])
        | {"tickangle": -60, "anchor": "y2"},
        yaxis=line
        | {
            "domain": [0.5, 1],
            "rangemode": "tozero",
            "title": title | {"text": "added (token = 1)"},
        },
        yaxis2=line
        | {
            "domain": [0, 0.4],
            "zeroline": True,
            "title": title | {"text": "along the token"},
        },
    )
    for end, (colour, hatch, name) in WRITERS.items():
        which = [i for i, writer in enumerate(writers.labels) if _kind(writer) == end]
        if not which:
            continue
        pattern = {"shape": hatch, "fillmode": "overlay", "fgcolor": theme.background, "size": 6}
        look = {
            "name": name,
            "legendgroup": name,
            "x": which,
            "marker": {"color": colour, "pattern": pattern},
        }
        figure.add_bar(
            **look,
            y=size[which],
            # numbers only where the bars have room for them
            text=[brief(value) for value in size[which]] if len(size) <= MOST_NUMBERED else None,
            textposition="outside",
            textfont={"size": 13},
            cliponaxis=False,
            **_said(writers.labels, size, which, "size"),
        )
        figure.add_bar(
            **look,
            y=along[which],
            yaxis="y2",
            showlegend=False,
            **_said(writers.labels, along, which, "along the stream"),
        )
    # As long as the stream itself.
    figure.add_hline(y=1, line={"color": theme.text, "width": 1, "dash": "dot"}, yref="y")
    return figure


def _said(
    names: Sequence[str], values: npt.NDArray[Any], which: Sequence[int], quantity: str
) -> dict[str, Any]:
    """The words for a point or a bar under the pointer."""
    return {
        "customdata": [[names[i], brief(values[i])] for i in which],
        "hovertemplate": f"%{{customdata[0]}}<br><b>{quantity} %{{customdata[1]}}</b> of the "
        "stream<extra></extra>",
    }


def short(writer: str) -> str:
    """The name of a sublayer on an axis, as in "MLP 3"."""
    return f"{WRITERS[_kind(writer)][-1]} {writer.split('.')[1]}"


def _kind(writer: str) -> str:
    return writer.rsplit(".", 1)[-1]


def _layers(names: Sequence[str]) -> dict[str, Any]:
    """An axis of sublayers, which end in the number of their block; if not all fit, it names
    blocks, each in its middle.
    """
    if len(names) <= MOST_ACROSS:
        return {"tickvals": list(range(len(names))), "ticktext": list(names), "tickfont": MONOSPACE}
    blocks: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        blocks.setdefault(f"block {name.rpartition(' ')[-1]}", []).append(place)
    shown = [list(blocks)[i] for i in labelled_places(len(blocks), MOST_ACROSS)]
    return {
        "tickvals": [sum(blocks[name]) / len(blocks[name]) for name in shown],
        "ticktext": shown,
        "tickfont": MONOSPACE,
    }
