"""Sizes by depth: a line per model over its blocks, each power of ten as high as the next."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from gptviz.figures.curves import DASHES, MARKERS, colour
from gptviz.figures.matrix import MARGIN, axis
from gptviz.figures.theme import Theme, base
from gptviz.labelled_array import LabelledArray

# Between these a float32 has numbers: the numbers that training computes with.
SMALLEST, LARGEST = 2.0**-149, (2 - 2.0**-23) * 2.0**127
# Some decades more, so that one can see a line leave this range.
LOWEST, HIGHEST = -50, 45
MOST_NAMED, MOST_MARKED = 9, 17

Decades = tuple[int, int]


def decades(table: LabelledArray) -> Decades:
    """The powers of ten that hold all sizes of the table, in steps of five, as far as float32 reaches and a little beyond."""
    with np.errstate(divide="ignore"):
        powers = np.log10(table.values[~np.isnan(table.values)])  # -inf for 0
    low, high = (float(powers.min()), float(powers.max())) if len(powers) else (0.0, 0.0)
    # After a norm sizes are 1: a size just above 1 is no reason for five more decades.
    ends = 5 * math.floor(max(low, LOWEST) / 5), 5 * math.ceil(min(max(high - 0.02, LOWEST), HIGHEST) / 5)
    return ends if ends[0] < ends[1] else (ends[1] - 5, ends[1])


def by_depth(lines: LabelledArray, theme: Theme, *, height: int, name: str, span: Decades) -> go.Figure:
    """A line for each row of `lines` [line, place] over its places, on a logarithmic axis called `name` from 10^span[0] to
    10^span[1]. A size of 0 lies below any axis and an infinite one above; what is no number is left out.
    """
    kinds, places = lines.axes
    figure = go.Figure(layout=base(theme, height=height))
    for index, (kind, sizes) in enumerate(zip(kinds.labels, lines.values, strict=True)):
        shade = colour(index, theme)
        figure.add_scatter(
            x=list(range(len(places.labels))),
            y=_drawable(sizes),
            mode="lines+markers",
            name=kind,
            line={"color": shade, "width": 2.5, "dash": DASHES[index % len(DASHES)]},
            # Markers that touch would hide which line is which.
            marker={"color": shade, "symbol": MARKERS[index % len(MARKERS)], "size": 7, "maxdisplayed": MOST_MARKED},
            customdata=[[place, f"{size:.3g}"] for place, size in zip(places.labels, sizes, strict=True)],
            hovertemplate=f"{kind}<br>{places.name} %{{customdata[0]}}<br><b>%{{customdata[1]}}</b><extra></extra>",
        )
    if 10.0 ** span[0] < SMALLEST:
        _limit(figure, SMALLEST, "below: 0 in float32", "top", theme)
    if 10.0 ** span[1] > LARGEST:
        _limit(figure, LARGEST, "above: infinite in float32", "bottom", theme)
    last, pad = len(places.labels) - 1, 0.03 * (span[1] - span[0])
    step = math.ceil(last / MOST_NAMED) or 1
    named = [*range(0, last - step // 2, step), last]
    figure.update_layout(
        margin=MARGIN | {"l": 58, "r": 10, "t": 28},
        showlegend=True,
        # As small as type is here, so that four names stand in one row where two figures stand side by side.
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 12, "color": theme.text}},
        modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)", "color": theme.text},
        xaxis=axis(places.name, theme)
        | {"tickvals": named, "ticktext": [places.labels[place] for place in named], "range": [-0.04 * last, 1.04 * last]},
        yaxis=axis(name, theme)
        | {"type": "log", "range": [span[0] - pad, span[1] + pad], "dtick": _tick(span), "exponentformat": "power"}
        | {"tickformat": None, "showgrid": True, "gridcolor": theme.faint},
    )
    return figure


def _tick(span: Decades) -> int:
    """Decades from one line of the grid to the next."""
    length = span[1] - span[0]
    return 1 if length <= 10 else 5 * math.ceil(length / 60)


def _drawable(sizes: npt.NDArray[np.generic]) -> list[float | None]:
    """The sizes as a logarithmic axis can place them."""
    return [None if math.isnan(size) else min(max(size, 1e-300), 1e300) for size in np.asarray(sizes, float).tolist()]


def _limit(figure: go.Figure, size: float, text: str, side: str, theme: Theme) -> None:
    figure.add_shape(
        type="line", xref="paper", x0=0, x1=1, y0=size, y1=size, line={"color": theme.text, "width": 1, "dash": "dot"}
    )
    figure.add_annotation(
        text=text,
        xref="paper",
        x=0.5,
        y=math.log10(size),
        bgcolor=theme.background,
        yanchor=side,
        showarrow=False,
        font={"size": 12, "color": theme.text},
    )
