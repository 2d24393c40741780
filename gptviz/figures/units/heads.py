"""Heads as cells: a score of every head by block, and how much each head reads of what each other one writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis, some, span
from gptviz.figures.kit.heat import add_frame, add_unit, clickable, heatmap, largest, numbers, scale
from gptviz.figures.kit.theme import PATTERN, Theme, themed
from gptviz.labelled_array import LabelledArray

# The most heads in a row with room for a number in each cell, on a phone too.
MOST_NUMBERED = 8
MOST_NAMED = 16
# Pixels of a row of cells, and of what stands around them.
ROW, AROUND = 34, 92
MARGIN = {"l": 62, "r": 22, "t": 44, "b": 56}
TALLEST = 620


def scores(table: LabelledArray, theme: Theme, *, low: float, high: float, chosen: tuple[int, int] | None = None) -> go.Figure:
    """The scores in `table` [block, head] as cells, block 0 at the top, on the scale `low` … `high`: of one colour where `low` is
    0, else of two, with zero as the background. A head without a score is blank. A point on each cell carries block and head, for
    clicks.
    """
    values = np.asarray(table.values, np.float64)
    n_block, n_head = values.shape
    height = min(TALLEST, AROUND + max(ROW * n_block, 3 * ROW))
    colour = None if low < 0 else PATTERN
    drawn = heatmap(values, low, high, theme, colour=colour, gap=2, hoverinfo="skip", colorbar=_scale(low, high))
    where = [(block, head) for block in range(n_block) for head in range(n_head)]
    says = [f"block {block}, head {head}<br>{table.unit} <b>{values[block, head]:.3f}</b>" for block, head in where]
    figure = themed(
        theme,
        drawn,
        clickable(where, says, (height - AROUND) // n_block),
        height=height,
        margin=MARGIN,
        dragmode=False,
        showlegend=False,
        xaxis=axis("head") | span(n_head) | {"tickvals": list(some(n_head, MOST_NAMED))},
        yaxis=axis("block") | span(n_block, down=True) | {"tickvals": list(some(n_block, MOST_NAMED))},
    )
    if n_head <= MOST_NUMBERED:
        figure.add_trace(numbers(drawn, [[f"{value:.2f}".replace("-", "−") for value in row] for row in values]))
    add_unit(figure, table.unit, 18)
    if chosen is not None:
        add_frame(figure, chosen, theme)
    return figure


def reads(values: LabelledArray, theme: Theme, *, chance: float, n_block: int, height: int) -> go.Figure:
    """Composition less `chance` as a matrix [reader, writer]: blue is more than chance, orange less, and heads without a way
    between them are blank. Lines part the blocks, of which there are two at least; the first one does not read, nor does the last
    one write.
    """
    per_block = len(values.axes[0].labels) // n_block
    readers, writers = values.axes[0].labels[per_block:], values.axes[1].labels[:-per_block]
    above = np.asarray(values.values, np.float64)[per_block:, :-per_block] - chance
    limit = largest(above)
    count = len(writers)
    drawn = heatmap(
        above,
        -limit,
        limit,
        theme,
        x=writers,
        y=readers,
        hovertemplate=f"head %{{y}} reads head %{{x}}<br><b>%{{z:+.3f}}</b> beside {chance:.3f} by chance<extra></extra>",
        colorbar=_scale(-limit, limit),
    )
    ticks = {"type": "category", "tickformat": None}
    columns, rows = ([names[place] for place in some(count, MOST_NAMED)] for names in (writers, readers))
    figure = themed(
        theme,
        drawn,
        height=height,
        margin=MARGIN,
        dragmode=False,
        xaxis=axis(f"{values.axes[1].name} (block.head)") | ticks | {"tickvals": columns} | span(count),
        yaxis=axis(values.axes[0].name) | ticks | {"tickvals": rows} | span(count, down=True),
    )
    add_unit(figure, "beside chance", 18)
    ends = -0.5, count - 0.5
    for at in (block * per_block - 0.5 for block in range(1, n_block - 1)):
        for line in ({"x0": at, "x1": at, "y0": ends[0], "y1": ends[1]}, {"y0": at, "y1": at, "x0": ends[0], "x1": ends[1]}):
            figure.add_shape(type="line", **line, line={"color": theme.faint, "width": 1}, layer="above")
    return figure


def _scale(low: float, high: float) -> dict[str, Any]:
    """The scale of colours, above the cells at the right."""
    return scale([low, 0, high] if low < 0 else [low, (low + high) / 2, high]) | {"len": 0.55}
