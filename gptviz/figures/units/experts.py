"""Experts: which ones the router chooses for each token of a text, and how often each is chosen, in
every block.
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis, labelled_places, token_axis, token_names, token_room
from gptviz.figures.kit.heat import add_frame, add_unit, heatmap, numbers, scale
from gptviz.figures.kit.theme import MLP, Theme, themed_figure
from gptviz.labelled_array import LabelledArray

MOST_NAMED = 16
# The most experts in a row with room for a number in each cell.
MOST_NUMBERED = 10
SHORT = {"len": 0.4}  # the unit stands beside the scale
ROW = 34
AROUND = 92
TALLEST = 620


def routing(
    weights: LabelledArray, theme: Theme, *, chosen: int | None = None, height: int
) -> go.Figure:
    """The `weights` [token, expert] of a block, the first token at the top, blank where not chosen;
    `chosen` is framed.
    """
    tokens, experts = weights.axes
    values = np.asarray(weights.values, np.float64)
    count = len(experts.labels)
    drawn = heatmap(
        np.where(values != 0, values, np.nan),
        0,
        1,
        theme,
        colour=MLP,
        y=token_names(tokens),
        colorbar=scale((0, 0.5, 1)) | SHORT,
        customdata=np.broadcast_to(np.array(experts.labels, dtype=object), values.shape),
        hovertemplate="%{y}<br>expert %{customdata}<br>weight <b>%{z:.3f}</b><extra></extra>",
    )
    shown = labelled_places(count, MOST_NAMED)
    figure = themed_figure(
        theme,
        drawn,
        height=height,
        margin={"l": token_room(tokens), "r": 12, "t": 48, "b": 48},
        xaxis=axis(experts.name)
        | {
            "tickvals": list(shown),
            "ticktext": [experts.labels[place] for place in shown],
            "range": [-0.5, count - 0.5],
        },
        yaxis=token_axis(tokens, down=True) | {"autorange": "reversed"},
    )
    add_unit(figure, "weight", 18)
    if chosen is not None:
        corners = {
            "x0": chosen - 0.5,
            "x1": chosen + 0.5,
            "y0": -0.5,
            "y1": len(tokens.labels) - 0.5,
        }
        figure.add_shape(
            type="rect",
            **corners,
            line={"color": theme.text, "width": 2},
            fillcolor="rgba(0,0,0,0)",
        )
    return figure


def load(
    shares: LabelledArray, theme: Theme, *, chosen: tuple[int, int] | None = None
) -> go.Figure:
    """The shares [block, expert] as cells, block 0 at the top; `chosen` is the cell that is
    framed.
    """
    blocks, experts = shares.axes
    values = np.asarray(shares.values, np.float64)
    n_block, count = values.shape
    drawn = heatmap(
        values,
        0,
        1,
        theme,
        colour=MLP,
        gap=2,
        colorbar=scale((0, 0.5, 1)) | SHORT,
        customdata=np.broadcast_to(np.array(experts.labels, dtype=object), values.shape),
        hovertemplate="block %{y}, expert %{customdata}<br><b>%{z:.1%}</b> of the "
        "tokens<extra></extra>",
    )
    shown = labelled_places(count, MOST_NAMED)
    rows = labelled_places(n_block, MOST_NAMED)
    figure = themed_figure(
        theme,
        drawn,
        height=min(TALLEST, AROUND + max(ROW * n_block, 3 * ROW)),
        margin={"l": 62, "r": 12, "t": 44, "b": 56},
        showlegend=False,
        xaxis=axis(experts.name)
        | {
            "tickvals": list(shown),
            "ticktext": [experts.labels[place] for place in shown],
            "range": [-0.5, count - 0.5],
        },
        yaxis=axis(blocks.name) | {"tickvals": list(rows), "range": [n_block - 0.5, -0.5]},
    )
    if count <= MOST_NUMBERED:
        figure.add_trace(
            numbers(
                drawn, [[f"{100 * value:.0f}\u202f%" for value in row] for row in values.tolist()]
            )
        )
    add_unit(figure, "share of tokens", 18)
    if chosen is not None:
        add_frame(figure, chosen, theme)
    return figure
