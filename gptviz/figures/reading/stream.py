"""The residual stream by layer: what each sublayer writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MONOSPACE, labelled_places
from gptviz.figures.kit.format import brief
from gptviz.figures.kit.theme import KEY, MLP, PATTERN, STREAM, Theme, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

# How many names of sublayers fit on an axis.
MOST_ACROSS = 20
# The names of so few sublayers lie level where there is room.
FEW = 8
# Where the largest size is more than so many times the smallest, the axis is logarithmic.
WIDE = 50
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


def draw_written(
    shares: LabelledArray, theme: Theme, *, height: int, guesses: Sequence[str] = ()
) -> go.Figure:
    """The sizes of what sublayers write: `shares` [quantity, sublayer]; below each what the model
    would guess after it, where `guesses` [sublayer] are given. Sizes that differ very much stand
    on a logarithmic axis.
    """
    _, writers = shares.axes
    size = shares.values[0]
    names = [short(label) for label in writers.labels]
    known = size[size > 0]
    is_wide = known.size > 0 and known.max() > WIDE * known.min()
    figure = themed_figure(
        theme,
        height=height,
        margin={"l": 66, "r": 10, "t": 34, "b": 30},
        bargap=0.25,
        legend={"font": {"size": 13}},
        xaxis=_layers(names, list(map(plain_label, guesses)))
        | {"automargin": True}
        | ({"tickangle": -60} if len(names) > FEW else {}),
        yaxis={
            "showgrid": True,
            "tickformat": ".3~g",
            "rangemode": "tozero",
            "title": {"font": {"size": 13}, "text": "added (token = 1)"},
        }
        | ({"type": "log", "dtick": 1} if is_wide else {}),
    )
    for end, (colour, hatch, name) in WRITERS.items():
        which = [i for i, writer in enumerate(writers.labels) if _kind(writer) == end]
        if not which:
            continue
        pattern = {"shape": hatch, "fillmode": "overlay", "fgcolor": theme.background, "size": 6}
        figure.add_bar(
            name=name,
            x=which,
            y=size[which],
            marker={"color": colour, "pattern": pattern},
            # numbers only where the bars have room for them
            text=[brief(value) for value in size[which]] if len(size) <= MOST_NUMBERED else None,
            textposition="outside",
            textfont={"size": 13},
            cliponaxis=False,
            **_said(writers.labels, size, which, "size"),
        )
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


def _layers(names: Sequence[str], guesses: Sequence[str]) -> dict[str, Any]:
    """An axis of sublayers, which end in the number of their block, with the guess after each; if
    not all fit, it names blocks, each in its middle, with the guess after the block.
    """
    if len(names) <= MOST_ACROSS:
        if guesses:
            names = [f"{name}<br>→ {guess}" for name, guess in zip(names, guesses, strict=True)]
        return {"tickvals": list(range(len(names))), "ticktext": list(names), "tickfont": MONOSPACE}
    blocks: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        blocks.setdefault(name.rpartition(" ")[-1], []).append(place)
    shown = [list(blocks)[i] for i in labelled_places(len(blocks), MOST_ACROSS)]
    shown[-1] = list(blocks)[-1]  # what comes out is always named
    return {
        "tickvals": [sum(blocks[name]) / len(blocks[name]) for name in shown],
        "ticktext": [
            f"block {name}" + (f" → {guesses[blocks[name][-1]]}" if guesses else "")
            for name in shown
        ],
        "tickfont": MONOSPACE,
    }
