"""Numbers along a row of positions or distances, as lines."""

from __future__ import annotations

import plotly.graph_objects as go

from gptviz.figures.kit.axes import axis, two_axes
from gptviz.figures.kit.theme import KEY, PATTERN, QUERY, Theme, blend
from gptviz.labelled_array import LabelledArray

# Strokes distinguish the lines without colours.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MOST_DOTTED = 64


def wave(column: LabelledArray, theme: Theme, *, height: int, limit: float = 1.0) -> go.Figure:
    """One column of a table, `column` [position], from -`limit` to `limit`: blue above zero, orange
    below, as in the table.
    """
    (positions,) = column.axes
    x = [int(label) for label in positions.labels]
    dotted = len(x) <= MOST_DOTTED
    figure = two_axes(
        theme,
        axis(positions.name),
        axis(column.unit)
        | {
            "range": [-1.08 * limit, 1.08 * limit],
            "tickvals": [-limit, 0, limit],
            "tickformat": ".3~g",
            "zeroline": True,
        }
        | {"zerolinecolor": theme.faint},
        height=height,
    )
    for colour, part in ((QUERY, column.values.clip(min=0)), (KEY, column.values.clip(max=0))):
        # a quarter of the colour
        look = {"fill": "tozeroy", "fillcolor": f"{colour}40", "line": {"width": 0}}
        figure.add_scatter(x=x, y=part, mode="lines", hoverinfo="skip", **look)
    figure.add_scatter(
        x=x,
        y=column.values,
        mode="lines+markers" if dotted else "lines",
        line={"color": theme.text, "width": 1.5},
        marker={"size": 5},
        hovertemplate=f"{positions.name} %{{x}}<br><b>%{{y:.3f}}</b><extra></extra>",
    )
    return figure


def fan(lines: LabelledArray, theme: Theme, *, height: int, floor: float) -> go.Figure:
    """Lines [line, distance] that fall from 0, cut off at `floor`, each named where it ends."""
    names, distances = lines.axes
    x = [int(label) for label in distances.labels]
    figure = two_axes(
        theme,
        axis(distances.name),
        axis(lines.unit) | {"range": [floor * 1.04, -floor * 0.03], "tickformat": ".3~g"},
        height=height,
    )
    for index, (name, values) in enumerate(zip(names.labels, lines.values, strict=True)):
        share = index / max(1, len(names.labels) - 1)
        colour = blend(PATTERN, theme.text, 1 - 0.8 * share)
        figure.add_scatter(
            x=x,
            y=values,
            mode="lines",
            line={"color": colour, "width": 2, "dash": DASHES[index % len(DASHES)]},
            hovertemplate=f"{names.name} {name}<br>{distances.name} "
            f"%{{x}}<br><b>%{{y:.3f}}</b><extra></extra>",
        )
        end = next((i for i, value in enumerate(values) if value < floor), len(x) - 1)
        figure.add_annotation(
            x=x[end],
            y=max(float(values[end]), floor),
            text=f"{names.name} {name}",
            xanchor="right" if end == len(x) - 1 else "center",
            bgcolor=theme.background,
            font={"size": 12},
        )
    return figure
