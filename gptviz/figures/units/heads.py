"""Heads as cells: how much each head reads of what each other one writes."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis, labelled_places, span
from gptviz.figures.kit.heat import add_unit, heatmap, largest_size, scale
from gptviz.figures.kit.theme import Theme, themed_figure
from gptviz.labelled_array import LabelledArray

MOST_NAMED = 16
MARGIN = {"l": 62, "r": 22, "t": 44, "b": 56}


def reads(
    values: LabelledArray, theme: Theme, *, chance: float, n_block: int, height: int
) -> go.Figure:
    """Composition less `chance` as a matrix [reader, writer]: blue is more than chance, orange
    less, and heads without a way between them are blank. Lines part the blocks, of which there are
    two at least; the first one does not read, nor does the last one write.
    """
    per_block = len(values.axes[0].labels) // n_block
    readers = values.axes[0].labels[per_block:]
    writers = values.axes[1].labels[:-per_block]
    above = np.asarray(values.values, np.float64)[per_block:, :-per_block] - chance
    limit = largest_size(above)
    count = len(writers)
    drawn = heatmap(
        above,
        -limit,
        limit,
        theme,
        x=writers,
        y=readers,
        hovertemplate=f"head %{{y}} reads head %{{x}}<br><b>%{{z:+.3f}}</b> beside {chance:.3f} by "
        "chance<extra></extra>",
        colorbar=scale([-limit, 0, limit]) | {"len": 0.55},
    )
    ticks = {"type": "category", "tickformat": None}
    columns, rows = (
        [names[place] for place in labelled_places(count, MOST_NAMED)]
        for names in (writers, readers)
    )
    figure = themed_figure(
        theme,
        drawn,
        height=height,
        margin=MARGIN,
        dragmode=False,
        xaxis=axis(f"{values.axes[1].name} (block.head)")
        | ticks
        | {"tickvals": columns}
        | span(count),
        yaxis=axis(values.axes[0].name) | ticks | {"tickvals": rows} | span(count, down=True),
    )
    add_unit(figure, "beside chance", 18)
    ends = -0.5, count - 0.5
    for at in (block * per_block - 0.5 for block in range(1, n_block - 1)):
        for line in (
            {"x0": at, "x1": at, "y0": ends[0], "y1": ends[1]},
            {"y0": at, "y1": at, "x0": ends[0], "x1": ends[1]},
        ):
            figure.add_shape(
                type="line", **line, line={"color": theme.faint, "width": 1}, layer="above"
            )
    return figure
