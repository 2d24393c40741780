"""Sizes by depth: a line per model over its blocks, each power of ten as high as the next."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MARGIN, axis
from gptviz.figures.kit.theme import Theme, themed_figure
from gptviz.figures.training.curves import colour, stroke
from gptviz.labelled_array import LabelledArray

# Between these a float32 has numbers: the numbers that training computes with.
SMALLEST = 2.0**-149
LARGEST = (2 - 2.0**-23) * 2.0**127
# Some decades more, so that one can see a line leave this range.
LOWEST = -50
HIGHEST = 45
# The powers of ten away from 1 from which on a line may leave the close-up.
FAR = 8
MOST_NAMED = 9
MOST_MARKED = 17

Decades = tuple[int, int]


def decades(table: LabelledArray) -> Decades:
    """The powers of ten that hold all sizes of the table, in steps of five, as far as float32
    reaches and a little beyond.
    """
    with np.errstate(divide="ignore"):
        powers = np.log10(table.values[~np.isnan(table.values)])  # -inf for 0
    low, high = (float(powers.min()), float(powers.max())) if len(powers) else (0.0, 0.0)
    # After a norm sizes are 1: a size just above 1 is no reason for five more decades.
    ends = (
        5 * math.floor(max(low, LOWEST) / 5),
        5 * math.ceil(min(max(high - 0.02, LOWEST), HIGHEST) / 5),
    )
    if ends[0] < ends[1]:
        return ends
    return (ends[1] - 5, ends[1])


def close_up(table: LabelledArray) -> tuple[Decades, tuple[str, ...]]:
    """The powers of ten that hold the lines of `table` [quantity, line, place] that stay near 1,
    and the names of the others, which leave such an axis: with them on it, the lines that stay
    could not be told apart.

    Where all lines stay, or none does, the axis holds all of them: see `decades`.
    """
    _, lines, _ = table.axes
    with np.errstate(divide="ignore"):
        powers = np.abs(np.log10(np.where(np.isnan(table.values), 1.0, table.values)))
    far: npt.NDArray[np.bool_] = np.asarray((powers > FAR).any(axis=(0, 2)))
    if far.all() or not far.any():
        return decades(table), ()
    near = np.log10(table.values[:, ~far][~np.isnan(table.values[:, ~far])])
    span = math.floor(near.min() - 0.02), math.ceil(near.max() + 0.02)
    return span, tuple(name for name, is_far in zip(lines.labels, far, strict=True) if is_far)


def by_depth(
    lines: LabelledArray, theme: Theme, *, height: int, name: str, span: Decades
) -> go.Figure:
    """A line for each row of `lines` [line, place] over its places, on a logarithmic axis called
    `name` from 10^span[0] to 10^span[1]. A size of 0 lies below any axis and an infinite one above;
    what is no number is left out.
    """
    kinds, places = lines.axes
    figure = themed_figure(theme, height=height)
    for index, (kind, sizes) in enumerate(zip(kinds.labels, lines.values, strict=True)):
        figure.add_scatter(
            x=list(range(len(places.labels))),
            # As a logarithmic axis can place them.
            y=[
                None if math.isnan(size) else min(max(size, 1e-300), 1e300)
                for size in np.asarray(sizes, float).tolist()
            ],
            mode="lines+markers",
            name=kind,
            **stroke(index, theme, MOST_MARKED),
            customdata=[
                [place, f"{size:.3g}"] for place, size in zip(places.labels, sizes, strict=True)
            ],
            hovertemplate=f"{kind}<br>{places.name} "
            f"%{{customdata[0]}}<br><b>%{{customdata[1]}}</b><extra></extra>",
        )
    _say_what_leaves(figure, lines, span, theme)
    if 10.0 ** span[0] < SMALLEST:
        limits = [(SMALLEST, "below: 0 in float32", "top")]
    else:
        limits = []
    limits += (
        [(LARGEST, "above: infinite in float32", "bottom")] if 10.0 ** span[1] > LARGEST else []
    )
    for size, text, side in limits:
        line = {"color": theme.text, "width": 1, "dash": "dot"}
        figure.add_shape(type="line", xref="paper", x0=0, x1=1, y0=size, y1=size, line=line)
        look = {"bgcolor": theme.background, "yanchor": side, "font": {"size": 12}}
        figure.add_annotation(text=text, xref="paper", x=0.5, y=math.log10(size), **look)
    length = span[1] - span[0]
    last = len(places.labels) - 1
    pad = 0.03 * length
    grid = 1 if length <= 10 else 5 * math.ceil(length / 60)
    step = math.ceil(last / MOST_NAMED) or 1
    named = [*range(0, last - step // 2, step), last]
    return figure.update_layout(
        margin=MARGIN | {"l": 58, "r": 10, "t": 28},
        showlegend=True,
        xaxis=axis(f"{places.name} ({places.labels[0]} is the first)")
        | {
            "tickvals": named,
            "ticktext": [places.labels[place] for place in named],
            "range": [-0.04 * last, 1.04 * last],
        },
        yaxis=axis(name)
        | {
            "type": "log",
            "range": [span[0] - pad, span[1] + pad],
            "dtick": grid,
            "exponentformat": "power",
        }
        | {"tickformat": None, "showgrid": True},
    )


def _say_what_leaves(figure: go.Figure, lines: LabelledArray, span: Decades, theme: Theme) -> None:
    """At the edge where a line leaves the axis, its name and how far it goes."""
    kinds, places = lines.axes
    with np.errstate(divide="ignore"):
        powers = np.log10(np.where(np.isnan(lines.values), 1.0, lines.values).astype(float))
    for index, (kind, row) in enumerate(zip(kinds.labels, powers, strict=True)):
        # Where the axis goes beyond float32, a line there says what leaves it.
        below = row.min() < span[0] and 10.0 ** span[0] > SMALLEST
        if not below and not (row.max() > span[1] and 10.0 ** span[1] < LARGEST):
            continue
        place = int(row.argmin() if below else row.argmax())
        if math.isinf(row[place]) and below:
            far = "0"
        elif math.isinf(row[place]):
            far = "∞"
        else:
            far = f"10<sup>{row[place]:.0f}</sup>"
        inside = np.flatnonzero((row >= span[0]) & (row <= span[1]))
        at = min(inside.tolist(), key=lambda other: abs(other - place), default=place)
        figure.add_annotation(
            x=at,
            y=span[0] if below else span[1],
            text=f"{'↓' if below else '↑'} {kind}: to {far.replace('-', '−')} at block "
            f"{places.labels[place]}",
            xanchor="right" if at > len(places.labels) / 2 else "left",
            yanchor="bottom" if below else "top",
            bgcolor=theme.background,
            font={"size": 12, "color": colour(index, theme)},
        )
