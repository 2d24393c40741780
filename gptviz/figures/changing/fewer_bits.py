"""What a model takes with fewer bits, a bar for each way to keep it, and the errors of its
matrices, a cell for each matrix of each block.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis, labelled_places, rows, span
from gptviz.figures.kit.heat import add_unit, from_to, heatmap, numbers, scale
from gptviz.figures.kit.theme import OUTPUT, STREAM, Theme, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

# pixels
BAR = 44
ROW = 34
AROUND = 100
MOST_NAMED = 16
# The most blocks side by side with room for a number in each cell, on a phone too.
MOST_NUMBERED = 8


def memory_bars(sizes: LabelledArray, written: Sequence[str], theme: Theme) -> go.Figure:
    """`sizes` [how it is kept], in bytes: a bar for each, with its size as it is `written`, from 0
    on.
    """
    values = [int(size) for size in sizes.values]
    figure = themed_figure(
        theme,
        height=BAR * len(values) + 46,
        dragmode=False,
        showlegend=False,
        margin={"l": 8, "r": 16, "t": 4, "b": 40},
        xaxis=axis("memory of the weights")
        | {"range": [0, 1.25 * max(values)], "tickformat": ".3~s", "ticksuffix": "B"},
        yaxis={"type": "category", "autorange": "reversed", "tickfont": {"size": 14}},
    )
    figure.add_bar(
        orientation="h",
        y=list(sizes.axes[0].labels),
        x=values,
        width=0.6,
        marker={
            "color": [STREAM, *[OUTPUT] * (len(values) - 1)],
            "pattern": {"shape": ["/", ""], "size": 5, "solidity": 0.4},
        },
        text=list(written),
        textfont={"size": 16},
        textposition="outside",
        cliponaxis=False,
        hovertemplate="<b>%{y}</b><br>%{x:,} bytes<extra></extra>",
    )
    return figure


def matrix_errors(table: LabelledArray, theme: Theme) -> go.Figure:
    """The relative errors in `table` [block, matrix], blocks side by side, on a scale as `from_to`
    has it.
    """
    blocks, matrices = table.axes
    values = np.asarray(table.values, np.float64).T  # [matrix, block]
    low, high = from_to(values)
    ticks = (low, (low + high) / 2, high)
    count = len(blocks.labels)
    drawn = heatmap(
        values,
        low,
        high,
        theme,
        colour=OUTPUT,
        gap=2,
        customdata=[
            [(html.escape(block), html.escape(matrix)) for block in blocks.labels]
            for matrix in matrices.labels
        ],
        hovertemplate="block %{customdata[0]}<br>%{customdata[1]}<br>relative error "
        "<b>%{z:.2%}</b><extra></extra>",
        colorbar=scale(ticks, [f"{100 * value:.3g}" for value in ticks]) | {"len": 0.45},
    )
    names = [plain_label(name, 40) for name in matrices.labels]
    named = labelled_places(count, MOST_NAMED)
    figure = themed_figure(
        theme,
        drawn,
        height=AROUND + ROW * len(values),
        dragmode=False,
        showlegend=False,
        margin={"l": 24 + 7 * max(map(len, names)), "r": 26, "t": 44, "b": 56},
        xaxis=axis("block")
        | {
            "tickvals": list(named),
            "ticktext": [plain_label(blocks.labels[place], 12) for place in named],
        }
        | span(count),
        yaxis=axis("") | rows(names),
    )
    if count <= MOST_NUMBERED:
        figure.add_trace(
            numbers(drawn, [[f"{100 * value:.3g}" for value in row] for row in values])
        )
    add_unit(figure, "error, %" + (" (not from 0)" if low else ""), 18)
    return figure
