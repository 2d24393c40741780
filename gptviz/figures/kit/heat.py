"""Heat maps: cells on a scale of colours, the scale itself, numbers in cells, and what plotly's
cells lack: to answer a click.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from gptviz.figures.kit.axes import MARGIN, axis, labelled_places
from gptviz.figures.kit.theme import (
    QUERY,
    Theme,
    diverging,
    ink,
    plain_label,
    sequential,
    themed_figure,
)
from gptviz.labelled_array import Axis, LabelledArray

# A tick with the name of a token takes a line.
MOST_NAMED = 12
# Where a scale of colours stands: lying above the cells, at the right.
ABOVE = {
    "orientation": "h",
    "x": 1,
    "xanchor": "right",
    "xpad": 0,
    "yref": "container",
    "y": 1,
    "yanchor": "top",
    "ypad": 0,
}


def heatmap(
    values: npt.ArrayLike,
    low: float,
    high: float,
    theme: Theme,
    *,
    colour: str | None = None,
    gap: int = 0,
    **look: Any,
) -> go.Heatmap:
    """`values` [row, column] as cells on the scale `low` … `high`, with a `gap` of so many pixels;
    NaN stays blank. Without a `colour` the scale is of two, orange and blue, with the background in
    the middle. `look` are other arguments of `go.Heatmap`, as `colorbar` (see `scale`).
    """
    if colour is None:
        shades = diverging(theme)
    else:
        shades = sequential(colour, theme)
    shown = np.ascontiguousarray(values, np.float32)
    return go.Heatmap(z=shown, zmin=low, zmax=high, colorscale=shades, xgap=gap, ygap=gap, **look)


def scale(ticks: Sequence[float], texts: Sequence[str] = (), **place: Any) -> dict[str, Any]:
    """A scale of colours with these ticks, a `colorbar` of plotly's; its place is `ABOVE`, or what
    is given.
    """
    words = list(texts) or [f"{tick:.3g}".replace("-", "−") for tick in ticks]
    return {"tickvals": list(ticks), "ticktext": words} | (place or ABOVE)


def clickable(where: Sequence[tuple[int, int]], says: Sequence[str], side: float) -> go.Scatter:
    """Points on cells, which are not seen. A point that said nothing under the pointer could not be
    clicked either, so they say what the cells are, in escaped words. Row and column of a cell are
    the `customdata` of a click; `side` is that of a cell, in pixels.
    """
    return go.Scatter(
        x=[column for _, column in where],
        y=[row for row, _ in where],
        customdata=list(where),
        text=list(says),
        mode="markers",
        marker={"size": max(6, side), "symbol": "square", "color": "rgba(0,0,0,0)"},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def numbers(drawn: go.Heatmap, texts: Sequence[Sequence[str]]) -> go.Scatter:
    """Texts [row][column] in the cells of a heat map, whose rows and columns are numbered from 0;
    blank cells have none.

    Plotly's own texts are grey on cells that are not dark, and all of one colour where a colour is
    given. Here each has the colour that is read best on its cell.
    """
    values = np.asarray(drawn.z, np.float64)
    places = [(row, column) for row, column in np.argwhere(np.isfinite(values)).tolist()]
    shares = (values[np.isfinite(values)] - drawn.zmin) / (drawn.zmax - drawn.zmin)
    if places:
        colours = sample_colorscale(
            [*map(list, drawn.colorscale)], shares.clip(0, 1).tolist(), colortype="tuple"
        )
    else:
        colours = []
    return go.Scatter(
        x=[column for _, column in places],
        y=[row for row, _ in places],
        text=[texts[row][column] for row, column in places],
        mode="text",
        textfont={"size": 12, "color": [ink(colour) for colour in colours]},
        # Where a cell is chosen, plotly dims the texts of all others, unless the chosen one has its
        # own colour.
        selected={"textfont": {"color": "#000000"}},
        hoverinfo="skip",
        showlegend=False,
    )


def largest_size(values: npt.NDArray[Any]) -> float:
    """Where a scale of these values ends: the largest size of any; 1 where none is more than 0.
    What is no number is left out.
    """
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0


def from_to(values: npt.NDArray[Any]) -> tuple[float, float]:
    """Where a scale of these values, none below 0, begins (at 0, or the smallest if all lie in its
    upper half) and ends.
    """
    shown = values[np.isfinite(values)]
    high = largest_size(values)
    low = float(shown.min(initial=high))
    if high / 2 < low < high:
        return (low, high)
    return (0.0, high)


def add_frame(figure: go.Figure, cell: tuple[int, int], theme: Theme, width: float = 2.5) -> None:
    """Draw a frame around the cell in this row and column."""
    row, column = cell
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    figure.add_shape(
        type="rect",
        **corners,
        line={"color": theme.text, "width": width},
        fillcolor="rgba(0,0,0,0)",
    )


def add_unit(figure: go.Figure, unit: str, up: int) -> None:
    """Write the unit of a scale next to it, `up` pixels above the cells: plotly would set it on top
    of a lying scale.
    """
    figure.add_annotation(
        text=unit, x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom", yshift=up
    )


def signed_matrix(
    values: LabelledArray,
    theme: Theme,
    *,
    height: int,
    limit: float = 1.0,
    square: bool = False,
    column: int | None = None,
    tokens: Sequence[str] = (),
    own_scale: bool = False,
) -> go.Figure:
    """Signed `values` [row, column] from -`limit` to `limit`, first row at the top: zero is the
    background, orange below, blue above. Its labels are numbers in equal steps.

    Args:
        own_scale: where no value is below 0, the scale goes from the smallest value to the largest.
        square: a cell is as high as wide.
        column: a column to point out.
        tokens: of a square, what stands at the first places, 0, 1, …: a frame is around them, and
            ticks there name them.
    """
    rows, columns = values.axes
    shown = values.values[np.isfinite(values.values)]
    low, high = -limit, limit
    ticks = [-limit, 0, limit]
    about = values.unit
    colour = None
    if own_scale and shown.size and 0 <= shown.min() < shown.max():
        low, high = float(shown.min()), float(shown.max())
        ticks = [low, high]
        about = f"{values.unit}, smallest to largest"
        colour = QUERY
    drawn = heatmap(
        values.values,
        low,
        high,
        theme,
        colour=colour,
        x=_numbers(columns),
        y=_numbers(rows),
        hovertemplate=f"{rows.name} %{{y}}<br>{columns.name} "
        f"%{{x}}<br><b>%{{z:.3f}}</b><extra></extra>",
        colorbar=scale(ticks)
        | {"len": 0.6, "outlinewidth": 1, "title": {"text": about, "side": "top"}}
        | {"yref": "paper", "yanchor": "bottom", "ypad": 4},
    )
    figure = themed_figure(
        theme,
        drawn,
        height=height,
        margin=MARGIN | {"t": 54},
        xaxis=axis(columns.name) | {"constrain": "domain", "constraintoward": "right"},
        yaxis=axis(rows.name)
        | {"autorange": "reversed", "constrain": "domain", "constraintoward": "top"}
        | ({"scaleanchor": "x"} if square else {}),
    )
    if tokens:
        _point_out(figure, tokens, rows, theme)
    if column is not None:
        if len(columns.labels) > 1:
            step = _numbers(columns)[1] - _numbers(columns)[0]
        else:
            step = 1
        at = _numbers(columns)[column]
        figure.add_vrect(
            at - step / 2,
            at + step / 2,
            line={"color": theme.text, "width": 1.5},
            fillcolor="rgba(0,0,0,0)",
        )
    return figure


def _point_out(figure: go.Figure, tokens: Sequence[str], rows: Axis, theme: Theme) -> None:
    """A frame around the places that the tokens take, with ticks that say which of them stands
    there.
    """
    places = _numbers(rows)
    step = places[1] - places[0] if len(places) > 1 else 1
    last = max(place for place in places if place < len(tokens))
    ends = {"x0": -step / 2, "x1": last + step / 2, "y0": -step / 2, "y1": last + step / 2}
    figure.add_shape(
        type="rect",
        **ends,
        line={"color": theme.text, "width": 1.5, "dash": "dot"},
        fillcolor="rgba(0,0,0,0)",
    )
    named = [places[i] for i in labelled_places(len(places), MOST_NAMED)]
    text = [
        f"{place} {plain_label(tokens[place], 8)}" if place < len(tokens) else str(place)
        for place in named
    ]
    for name in ("xaxis", "yaxis"):
        figure.update_layout(
            {
                name: {
                    "tickvals": named,
                    "ticktext": text,
                    "tickangle": 0 if name == "yaxis" else -90,
                }
            }
        )


def _numbers(axis: Axis) -> list[int]:
    return [int(label) for label in axis.labels]
