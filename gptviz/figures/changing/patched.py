"""The effect that patches restore, as a heatmap: a row per block, a column per position or head,
one scale for all such maps.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MONOSPACE, labelled_places, short_label
from gptviz.figures.kit.heat import add_frame, clickable, heatmap, numbers, scale
from gptviz.figures.kit.theme import Theme, plain_label, themed_figure
from gptviz.labelled_array import Axis, LabelledArray

# From a share of −1 (as far away again as the clean answer is) to 1 (all of it).
LIMIT = 1.0
# The most cells that can be clicked: each is a separate mark in the picture.
MOST_CLICKED = 2_500
# Labels on an axis, where they are single characters, and where they are longer.
MOST_CHARACTERS = 24
MOST_WORDS = 14
LONGEST_LABEL = 16  # "10 (heads 30–32)" is a key head with the heads that it serves
# pixels: of what is above all rows, and of all rows
LEAST = 84
MOST = 340
# pixels: of a row, where there are many or few; and of the rows of few
LOWEST = 24
HIGHEST = 40
FEW = 240
MOST_WRITTEN = 8  # columns of cells with their numbers in them
# Rows that stay free above the first one for the marks of columns, and how far above it a mark
# stands.
FREE = 0.6
MARKED_AT = 0.3


def draw_restored(
    shares: LabelledArray,
    theme: Theme,
    *,
    title: str,
    words: Sequence[Sequence[str]],
    first: int = 0,
    marked: Sequence[int] = (),
    chosen: tuple[int, int] | None = None,
    has_scale: bool = True,
) -> go.Figure:
    """`shares` [block, place] from −100 % to 100 %, block 0 at the top. Where there are few columns
    each cell has its number.

    Args:
        shares: what each patch restores.
        title: what was patched.
        words: what is shown where the pointer is, [block][place], in short lines.
        first: the first column that is shown.
        marked: columns to point out, those in which the prompts differ.
        chosen: a cell to frame.
        has_scale: whether the scale of colours is drawn: once is enough for maps side by side.
    """
    blocks, places = shares.axes
    rows, columns = shares.values.shape
    x = list(range(first, columns))
    y = list(range(rows))
    escaped = [[html.escape(text).replace("\n", "<br>") for text in row] for row in words]

    # the cells
    drawn = heatmap(
        shares.values[:, first:],
        -LIMIT,
        LIMIT,
        theme,
        gap=1,
        x=x,
        y=y,
        customdata=[line[first:] for line in escaped],
        hoverongaps=True,
        hovertemplate="%{customdata}<extra></extra>",
        colorbar=_scale(),
        showscale=has_scale,
    )
    if len(x) > 64:
        drawn.xgap = 0

    # the frame around them
    above = FREE if marked else 0.0
    # Room below the cells for labels, which lean where they are long, and for the name of the axis.
    if _is_long(places):
        below = 24 + round(6.25 * min(LONGEST_LABEL, max(map(len, places.labels))))
    else:
        below = 56
    head = {"xref": "paper", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 4}}
    figure = themed_figure(
        theme,
        drawn,
        height=LEAST
        + below
        + round(min(MOST, min(HIGHEST, max(LOWEST, FEW / rows)) * (rows + above))),
        margin={"l": 44, "r": 8, "t": 52, "b": below},
        dragmode=False,
        title={"text": title, "font": {"size": 14}} | head,
        xaxis=_ticks(places, first) | {"range": [first - 0.5, columns - 0.5]},
        yaxis=_ticks(blocks) | {"range": [rows - 0.5, -0.5 - above]},
    )

    # what is drawn onto the cells: numbers, places to click, marks
    if len(x) <= MOST_WRITTEN:
        # without a minus before 0
        percents = np.round(100 * np.asarray(shares.values[:, first:], np.float64)) + 0.0
        texts = [
            ["" if np.isnan(share) else f"{share:.0f} %".replace("-", "−") for share in row]
            for row in percents.tolist()
        ]
        written = numbers(drawn, texts)
        figure.add_trace(written.update(x=[first + column for column in written.x]))
    if rows * len(x) <= MOST_CLICKED:
        where = [(row, column) for row in y for column in x]
        figure.add_trace(clickable(where, [escaped[row][column] for row, column in where], 14))
    if marked:
        figure.add_scatter(
            x=list(marked),
            y=[-0.5 - MARKED_AT] * len(marked),
            mode="markers",
            marker={"symbol": "triangle-down", "size": 9, "color": theme.text},
            hovertemplate="the prompts differ here<extra></extra>",
            cliponaxis=False,
            showlegend=False,
        )
    if chosen is not None:
        add_frame(figure, chosen, theme, 2)
    return figure


def _is_long(axis: Axis) -> bool:
    return max(map(len, axis.labels)) > 2


def _ticks(axis: Axis, first: int = 0) -> dict[str, object]:
    """The labels of an axis, as many as fit without overlapping."""
    named = labelled_places(
        len(axis.labels), MOST_WORDS if _is_long(axis) else MOST_CHARACTERS, first
    )
    return {
        "title": {"text": axis.name, "standoff": 12},
        "tickvals": list(named),
        "ticktext": [
            plain_label(short_label(axis.labels[place]), LONGEST_LABEL) for place in named
        ],
        "tickfont": MONOSPACE,
        "fixedrange": True,
        "tickangle": -60 if _is_long(axis) else 0,
    }


def _scale() -> dict[str, object]:
    # In the line of the title, where it moves no cells: maps side by side stand at the same height.
    place = {
        "x": 1,
        "xanchor": "right",
        "y": 1,
        "yref": "container",
        "yanchor": "top",
        "ypad": 8,
        "xpad": 20,
    }
    place |= {"len": 0.36, "thickness": 8, "tickangle": 0, "outlinewidth": 1}
    return scale([-LIMIT, LIMIT], ["−100 %", "100 %"]) | place
