"""Heads as cells: a score of every head by block, and how much each head reads of what each other one writes."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.cells import clickable, written
from gptviz.figures.matrix import axis
from gptviz.figures.theme import PATTERN, Theme, base, diverging, sequential
from gptviz.labelled_array import LabelledArray

# Up to so many heads in a row there is room for a number in each cell, on a phone too.
MOST_NUMBERED = 8
MOST_NAMED = 16
# Pixels of a row of cells, and of what stands around them.
ROW, AROUND = 34, 92
MARGIN = {"l": 62, "r": 22, "t": 44, "b": 56}
TALLEST = 620


def grid(scores: LabelledArray, theme: Theme, *, low: float, high: float, chosen: tuple[int, int] | None = None) -> go.Figure:
    """`scores` [block, head] as cells, block 0 at the top, on the scale `low` … `high`: of one colour where `low` is 0, else of
    two, with zero as the background. A head without a score is blank. A point on each cell carries block and head, for clicks.
    """
    values = np.asarray(scores.values, np.float64)
    n_block, n_head = values.shape
    height = min(TALLEST, AROUND + max(ROW * n_block, 3 * ROW))
    heatmap = go.Heatmap(
        z=values,
        zmin=low,
        zmax=high,
        colorscale=diverging(theme) if low < 0 else sequential(PATTERN, theme),
        xgap=2,
        ygap=2,
        hoverinfo="skip",
        colorbar=_scale(low, high),
    )
    where = [(block, head) for block in range(n_block) for head in range(n_head)]
    says = [f"block {block}, head {head}<br>{scores.unit} <b>{values[block, head]:.3f}</b>" for block, head in where]
    figure = go.Figure([heatmap, clickable(where, says, (height - AROUND) // n_block)], base(theme, height=height))
    if n_head <= MOST_NUMBERED:
        figure.add_trace(written(heatmap, [[f"{value:.2f}".replace("-", "−") for value in row] for row in values]))
    figure.update_layout(
        margin=MARGIN,
        dragmode=False,
        showlegend=False,
        xaxis=axis("head", theme) | {"tickvals": _some(n_head), "range": [-0.5, n_head - 0.5], "fixedrange": True},
        yaxis=axis("block", theme) | {"tickvals": _some(n_block), "range": [n_block - 0.5, -0.5], "fixedrange": True},
    )
    _name(figure, scores.unit)
    if chosen is not None:
        block, head = chosen
        corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": block - 0.5, "y1": block + 0.5}
        figure.add_shape(type="rect", **corners, line={"color": theme.text, "width": 2.5}, fillcolor="rgba(0,0,0,0)")
    return figure


def reads(values: LabelledArray, theme: Theme, *, chance: float, n_block: int, height: int) -> go.Figure:
    """Composition less `chance` as a matrix [reader, writer]: blue is more than chance, orange less, and heads without a way
    between them are blank. Lines part the blocks, of which there are two at least; the first one does not read, nor does the last
    one write.
    """
    per_block = len(values.axes[0].labels) // n_block
    readers, writers = values.axes[0].labels[per_block:], values.axes[1].labels[:-per_block]
    above = np.asarray(values.values, np.float64)[per_block:, :-per_block] - chance
    known = above[~np.isnan(above)]
    limit = float(np.abs(known).max()) if len(known) else 1.0
    limit = limit or 1.0
    count = len(writers)
    heatmap = go.Heatmap(
        z=np.asarray(above, np.float32),
        x=writers,
        y=readers,
        zmin=-limit,
        zmax=limit,
        colorscale=diverging(theme),
        hoverongaps=False,
        hovertemplate=f"head %{{y}} reads head %{{x}}<br><b>%{{z:+.3f}}</b> beside {chance:.3f} by chance<extra></extra>",
        colorbar=_scale(-limit, limit),
    )
    figure = go.Figure([heatmap], base(theme, height=height))
    ticks = {"type": "category", "fixedrange": True, "tickformat": None}
    columns, rows = ([names[place] for place in _some(count)] for names in (writers, readers))
    figure.update_layout(
        margin=MARGIN,
        dragmode=False,
        xaxis=axis(f"{values.axes[1].name} (block.head)", theme) | ticks | {"tickvals": columns, "range": [-0.5, count - 0.5]},
        yaxis=axis(values.axes[0].name, theme) | ticks | {"tickvals": rows, "range": [count - 0.5, -0.5]},
    )
    _name(figure, "beside chance")
    ends = -0.5, count - 0.5
    for at in (block * per_block - 0.5 for block in range(1, n_block - 1)):
        for line in ({"x0": at, "x1": at, "y0": ends[0], "y1": ends[1]}, {"y0": at, "y1": at, "x0": ends[0], "x1": ends[1]}):
            figure.add_shape(type="line", **line, line={"color": theme.faint, "width": 1}, layer="above")
    return figure


def _name(figure: go.Figure, name: str) -> None:
    """The name of the scale, beside it: plotly would set it on top."""
    place = {"x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 18}
    figure.add_annotation(text=name, showarrow=False, **place)


def _scale(low: float, high: float) -> dict[str, object]:
    """The scale of colours, above the cells at the right."""
    ticks = [low, 0, high] if low < 0 else [low, (low + high) / 2, high]
    return {
        "tickvals": ticks,
        "ticktext": [f"{tick:.3g}".replace("-", "−") for tick in ticks],
        "tickfont": {"size": 12},
        "orientation": "h",
        "thickness": 10,
        "len": 0.55,
        "outlinewidth": 0,
        "x": 1,
        "xanchor": "right",
        "xpad": 0,
        "yref": "container",
        "y": 1,
        "yanchor": "top",
        "ypad": 0,
    }


def _some(count: int) -> list[int]:
    """The places that are named: all, or some at equal distances."""
    return list(range(0, count, max(1, math.ceil(count / MOST_NAMED))))
