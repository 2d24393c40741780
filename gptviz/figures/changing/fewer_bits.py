"""The errors of matrices with fewer bits: a cell for each matrix of each block."""

from __future__ import annotations

import html

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis, some
from gptviz.figures.kit.heat import add_unit, heatmap, numbers, scale
from gptviz.figures.kit.theme import OUTPUT, Theme, base, plain
from gptviz.labelled_array import LabelledArray

ROW, AROUND, TALLEST = 30, 130, 620  # pixels
MOST_NAMED = 24
# The most rows with room for a number in each cell.
MOST_NUMBERED = 16


def matrix_errors(table: LabelledArray, theme: Theme) -> go.Figure:
    """The relative errors in `table` [block, matrix], the first block at the top, on a scale from 0 to the largest."""
    blocks, matrices = table.axes
    values = np.asarray(table.values, np.float64)
    known = values[np.isfinite(values)]
    high = float(known.max()) if len(known) and known.max() > 0 else 1.0
    count, width = values.shape
    drawn = heatmap(
        values,
        0,
        high,
        theme,
        colour=OUTPUT,
        gap=2,
        customdata=[[(html.escape(block), html.escape(matrix)) for matrix in matrices.labels] for block in blocks.labels],
        hovertemplate="block %{customdata[0]}<br>%{customdata[1]}<br>relative error <b>%{z:.2%}</b><extra></extra>",
        colorbar=scale([0, high / 2, high], [f"{100 * value:.3g}" for value in (0, high / 2, high)]) | {"len": 0.5},
    )
    figure = go.Figure([drawn], base(theme, height=min(TALLEST, AROUND + ROW * max(count, 3))))
    if count <= MOST_NUMBERED:
        figure.add_trace(numbers(drawn, [[f"{100 * value:.3g}" for value in row] for row in values]))
    # The names of a matrix's two parts stand below each other: side by side they do not fit.
    names = [
        plain(name, 40).replace(".", "<br>", 1).replace("all of the block", "all of<br>the block") for name in matrices.labels
    ]
    rows = some(count, MOST_NAMED)
    figure.update_layout(
        dragmode=False,
        showlegend=False,
        margin={"l": 62, "r": 26, "t": 44, "b": 70},
        xaxis=axis("")
        | {"tickvals": list(range(width)), "ticktext": names, "range": [-0.5, width - 0.5], "fixedrange": True, "tickangle": 0},
        yaxis=axis("block")
        | {"tickvals": list(rows), "ticktext": [plain(blocks.labels[row], 12) for row in rows]}
        | {"range": [count - 0.5, -0.5], "fixedrange": True},
    )
    add_unit(figure, "relative error, %", 18)
    return figure
