"""Numbers of a model over the steps of its training: all series in one picture, or a small panel
for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from gptviz.figures.kit.axes import MARGIN, axis
from gptviz.figures.kit.theme import STREAM, Theme, plain_label, themed_figure
from gptviz.labelled_array import Float64Array, LabelledArray

from .curves import DASHES, MARKERS, colour, scale

# Of more series, only so many have a colour and a name: those that change most.
MOST_NAMED = 8
# The most panels, how many stand side by side, and the height of one with its title.
MOST_PANELS = 64
COLUMNS = 4
PANEL = 110
# The letters of a name above a panel, of which the end is shown: more would overlap on a phone.
LONGEST_NAME = 11
# Pixels around all panels, and between two rows of them.
AROUND = 90
GAP = 36
# How wide the mark behind the sharpest change is.
MARK = 12


@dataclass(frozen=True)
class ChartLook:
    """How a table is drawn."""

    log_steps: bool = True  #: whether the axis of steps is logarithmic: it has no place for step 0
    #: whether the axis of values is: it has no place for what is not above 0
    log_values: bool = False
    #: a change that is marked: the index of its series, and that of the earlier of its two steps
    marked: tuple[int, int] | None = None
    at: int | None = None  #: the step that is on screen elsewhere, marked by a line
    #: what stands on the axis instead of steps: the names of revisions that say none, by step
    names: Mapping[int, str] = field(default_factory=dict)

    @property
    def axis_name(self) -> str:
        """What the axis counts."""
        return "revision" if self.names else "step"

    @property
    def axis_of_steps(self) -> dict[str, Any]:
        """The look of the axis of steps."""
        if not self.names:
            return scale("step", self.log_steps)
        places = {"tickvals": [*self.names], "ticktext": [*map(plain_label, self.names.values())]}
        return axis("revision") | {"showgrid": True, **places}

    def say_step(self, step: float) -> str:
        """A place on that axis, in words."""
        return self.names.get(int(step), f"step {int(step):,}")


def lines(
    table: LabelledArray, theme: Theme, look: ChartLook, names: Sequence[str], *, height: int
) -> go.Figure:
    """A line for each series of `table` [step, series], called by `names`; each point carries its
    step, for clicks.
    """
    steps, values = _shown(table, look)
    figure = themed_figure(
        theme,
        height=height,
        margin=MARGIN,
        hovermode="closest",
        dragmode=False,
        showlegend=values.shape[1] > 1,
        xaxis=look.axis_of_steps,
        yaxis=scale(table.unit, look.log_values),
    )
    named = [int(i) for i in np.argsort(-_ranges(values), kind="stable")[:MOST_NAMED]]
    for series in sorted(range(values.shape[1]), key=lambda index: index in named):
        rank = named.index(series) if series in named else None
        figure.add_trace(
            _line(names[series], table.unit, steps, values[:, series], theme, rank, look)
        )
    if look.marked is not None:
        figure.add_trace(_mark(steps, values, look.marked, theme))
    return _with_step(figure, look, theme)


def panels(table: LabelledArray, theme: Theme, look: ChartLook, names: Sequence[str]) -> go.Figure:
    """The same with a small panel for each series, all on the same axes; of many series the first.
    `names` stand above them.
    """
    steps, values = _shown(table, look)
    count = min(values.shape[1], MOST_PANELS)
    columns = min(COLUMNS, count)
    rows = math.ceil(count / columns)
    height = PANEL * rows + AROUND
    figure = make_subplots(
        rows,
        columns,
        shared_xaxes="all",
        shared_yaxes="all",
        subplot_titles=[
            plain_label(name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}")
            for name in names[:count]
        ],
        vertical_spacing=min(0.5 / rows, GAP / height),
        horizontal_spacing=0.03,
        x_title=look.axis_name,
        y_title=table.unit,
        figure=themed_figure(
            theme, height=height
        ),  # to update one with it takes fifty times as long
    )
    for series in range(count):
        place: dict[str, Any] = {"row": series // columns + 1, "col": series % columns + 1}
        figure.add_trace(
            _line(names[series], table.unit, steps, values[:, series], theme, 0, look), **place
        )
        if look.marked is not None and look.marked[0] == series:
            figure.add_trace(_mark(steps, values, look.marked, theme), **place)
    small = {"title": None, "fixedrange": True, "nticks": 4, "tickangle": 0}
    figure.update_xaxes(look.axis_of_steps | small | ({"dtick": 2} if look.log_steps else {}))
    figure.update_yaxes(scale(table.unit, look.log_values) | small)
    figure.update_annotations(font={"size": 12, "color": theme.text})
    figure.update_layout(
        margin=MARGIN | {"t": 28}, dragmode=False, hovermode="closest", showlegend=False
    )
    return _with_step(figure, look, theme)


def _shown(table: LabelledArray, look: ChartLook) -> tuple[Float64Array, Float64Array]:
    """The steps, and the values with gaps where an axis has no place for them."""
    steps = np.array(table.axes[0].labels, np.float64)
    values = np.where(
        (steps == 0)[:, None] & look.log_steps, np.nan, np.asarray(table.values, np.float64)
    )
    return steps, np.where(values > 0, values, np.nan) if look.log_values else values


def _ranges(values: Float64Array) -> Float64Array:
    """How far the values of each series go, [series]; 0 where there are none."""
    finite = np.isfinite(values)
    high = np.where(finite, values, -np.inf).max(0)
    return np.where(finite.any(0), high - np.where(finite, values, np.inf).min(0), 0.0)


def _line(
    name: str,
    unit: str,
    steps: Float64Array,
    values: Float64Array,
    theme: Theme,
    rank: int | None,
    look: ChartLook,
) -> go.Scatter:
    """The line of a series; `rank` is its place among those that have a colour and a name, or
    None.
    """
    name = plain_label(name, 40)
    shade = STREAM if rank is None else colour(rank, theme)
    dash = "solid" if rank is None else DASHES[rank % len(DASHES)]
    symbol = "circle" if rank is None else MARKERS[rank % len(MARKERS)]
    return go.Scatter(
        x=steps,
        y=values,
        mode="lines+markers",
        name=name,
        showlegend=rank is not None,
        opacity=0.55 if rank is None else 1,
        line={"color": shade, "width": 1 if rank is None else 2, "dash": dash},
        marker={"color": shade, "symbol": symbol, "size": 4 if rank is None else 6},
        customdata=steps,
        text=[plain_label(look.say_step(step)) for step in steps],
        hovertemplate=f"{name}<br>%{{text}}<br>{unit} <b>%{{y:.4~g}}</b><extra></extra>",
    )


def _mark(
    steps: Float64Array, values: Float64Array, marked: tuple[int, int], theme: Theme
) -> go.Scatter:
    """A pale stroke behind a change."""
    series, row = marked
    ends = slice(row, row + 2)
    return go.Scatter(
        x=steps[ends],
        y=values[ends, series],
        mode="lines",
        showlegend=False,
        line={"color": theme.text, "width": MARK},
        opacity=0.2,
        hoverinfo="skip",
        zorder=-1,
    )


def _with_step(figure: go.Figure, look: ChartLook, theme: Theme) -> go.Figure:
    """The figure with a line at the step on screen, where the axis has it."""
    if look.at is not None and (look.at > 0 or not look.log_steps):
        figure.add_vline(x=look.at, line={"color": theme.text, "width": 1, "dash": "dot"})
    return figure
