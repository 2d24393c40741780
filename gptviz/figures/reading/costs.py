"""The costs of a model: its tensors as bars, and the costs that grow with the length of a text as
stacked areas.
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MARGIN, MONOSPACE, axis
from gptviz.figures.kit.theme import (
    KEY,
    MLP,
    OUTPUT,
    PATTERN,
    QUERY,
    STREAM,
    VALUE,
    WEIGHT,
    Theme,
    blend,
    plain_label,
    themed_figure,
)
from gptviz.labelled_array import LabelledArray

# A colour for each part of a model and for each thing that is held in memory; neighbours also
# differ in their hatching.
COLOURS = {
    "embedding": WEIGHT,
    "positions": VALUE,
    "norms": STREAM,
    "attention": PATTERN,
    "cross-attention": KEY,
    "MLP": MLP,
    "head": OUTPUT,
    "weights": WEIGHT,
    "gradients": KEY,
    "optimiser": QUERY,
    "activations": VALUE,
    "keys and values": PATTERN,
}
HATCHING = ("", "/", "", "\\", "", "x", "", ".")
ROW = 42  # pixels: a name, and its bar below it


def bars(table: LabelledArray, parts: tuple[str, ...], theme: Theme, *, unit: str) -> go.Figure:
    """A bar for each tensor of `table` [tensor], from top to bottom, in the colour of its part, a
    key of `COLOURS`: how many numbers it has, counted in `unit`; 0 for one that shares those of
    another.
    """
    names = [plain_label(name, 60) for name in table.axes[0].labels]
    values = [int(value) for value in table.values]
    whole = max(1, sum(values))
    figure = themed_figure(
        theme,
        height=ROW * len(names) + 90,
        margin={"l": 12, "r": 8, "t": 44, "b": 40},
        barmode="overlay",
        dragmode=False,
        xaxis=axis(unit)
        | {"tickformat": ".3~s", "range": [0, 1.3 * max(values, default=1)], "showgrid": True},
        yaxis={"range": [len(names) - 0.5, -0.8], "visible": False},
    )
    for part in dict.fromkeys(parts):
        rows = [row for row, own in enumerate(parts) if own == part]
        figure.add_bar(
            orientation="h",
            name=part,
            x=[values[row] for row in rows],
            y=rows,
            width=0.4,
            marker={"color": COLOURS[part]},
            text=[f"{values[row]:,}" if values[row] else "shared, counted above" for row in rows],
            textposition="outside",
            cliponaxis=False,
            customdata=[(names[row], 100 * values[row] / whole) for row in rows],
            hovertemplate=f"<b>%{{customdata[0]}}</b><br>%{{x:,}} {unit}, %{{customdata[1]:.1f}} "
            "% of "
            f"all<extra>{part}</extra>",
        )
    # Above its bar a name has room on a phone too.
    for row, name in enumerate(names):
        figure.add_annotation(
            text=name, x=0, y=row - 0.42, xanchor="left", font=MONOSPACE | {"size": 12}
        )
    return figure


def areas(
    table: LabelledArray, theme: Theme, *, height: int, at: int, apart: tuple[str, ...] = ()
) -> go.Figure:
    """The rows of `table` [what, tokens] on top of each other over the length of a text, each in
    its colour. A length is pointed out (`at`); rows that are no part of the sum are lines `apart`.
    """
    whats, tokens = table.axes
    x = [int(label) for label in tokens.labels]
    figure = themed_figure(
        theme,
        height=height,
        margin=MARGIN | {"l": 58, "t": 34},
        xaxis=axis(f"{tokens.name} of a text") | {"range": [0, max(x)], "tickformat": ",d"},
        yaxis=axis(table.unit)
        | {"rangemode": "tozero", "tickformat": None, "exponentformat": "B", "showgrid": True},
    )
    hover = (
        f"%{{fullData.name}}, {tokens.name} %{{x:,}}<br><b>%{{y:.3s}}</b> "
        f"{table.unit}<extra></extra>"
    )
    for index, (what, row) in enumerate(
        zip(whats.labels, np.asarray(table.values, float), strict=True)
    ):
        shade = COLOURS[what]
        if what in apart:
            line = {"color": shade, "width": 3, "dash": "dash"}
            figure.add_scatter(x=x, y=row, name=what, mode="lines", line=line, hovertemplate=hover)
            continue
        figure.add_scatter(
            x=x,
            y=row,
            name=what,
            mode="lines",
            stackgroup="sum",
            line={"color": shade, "width": 1},
            fillcolor=blend(shade, theme.background, 0.7),
            fillpattern={
                "shape": HATCHING[index % len(HATCHING)],
                "bgcolor": blend(shade, theme.background, 0.7),
                "fgcolor": theme.background,
                "solidity": 0.2,
                "size": 8,
            },
            hovertemplate=hover,
        )
    figure.add_vline(at, line={"color": theme.text, "width": 1.5, "dash": "dot"})
    return figure
