"""What plotly's heatmaps lack: cells that answer a click, and numbers in cells that can be read on every colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from gptviz.figures.theme import ink


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


def written(heatmap: go.Heatmap, texts: Sequence[Sequence[str]]) -> go.Scatter:
    """Texts [row][column] in the cells of a heatmap, whose rows and columns are numbered from 0; blank cells have none.

    Plotly's own texts are grey on cells that are not dark, and all of one colour where a colour is given. Here each has the
    colour that is read best on its cell.
    """
    values = np.asarray(heatmap.z, np.float64)
    places = [(row, column) for row, column in np.argwhere(np.isfinite(values)).tolist()]
    shares = (values[np.isfinite(values)] - heatmap.zmin) / (heatmap.zmax - heatmap.zmin)
    colours = sample_colorscale([*map(list, heatmap.colorscale)], shares.clip(0, 1).tolist(), colortype="tuple") if places else []
    return go.Scatter(
        x=[column for _, column in places],
        y=[row for row, _ in places],
        text=[texts[row][column] for row, column in places],
        mode="text",
        textfont={"size": 12, "color": [ink(colour) for colour in colours]},
        # Where a cell is chosen, plotly dims the texts of all others, unless the chosen one has a colour of its own.
        selected={"textfont": {"color": "#000000"}},
        hoverinfo="skip",
        showlegend=False,
    )
