"""Cells of a heatmap that answer a click, which plotly's own do not."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go


def clickable(where: Sequence[tuple[int, int]], says: Sequence[str], side: float) -> go.Scatter:
    """Points on cells, which are not seen. A point that said nothing under the pointer could not be clicked either, so they say
    what the cells are, and the heatmap below them says nothing.

    Args:
        where: row and column of each cell; the `customdata` of a point that was clicked.
        says: what stands beside the pointer, escaped.
        side: of a cell, in pixels.
    """
    return go.Scatter(
        x=[column for _, column in where],
        y=[row for row, _ in where],
        customdata=list(where),
        text=list(says),
        mode="markers",
        marker={"size": max(6, side), "symbol": "square", "color": "rgba(0,0,0,0)", "line": {"width": 0}},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="%{text}<extra></extra>",
    )
