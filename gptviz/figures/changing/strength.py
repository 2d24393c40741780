"""What a change of weights consists of: its singular values; and losses along the strength of an
adapter.
"""

from __future__ import annotations

import plotly.graph_objects as go

from gptviz.figures.kit.axes import MARGIN, axis, two_axes
from gptviz.figures.kit.lines import DASHES
from gptviz.figures.kit.theme import OUTPUT, QUERY, STREAM, Theme, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

COLOURS = (OUTPUT, QUERY)
LONGEST_NAME = 60


def losses(table: LabelledArray, theme: Theme, *, height: int, at: float | None) -> go.Figure:
    """A line for each text of `table` [text, strength], and lines at the base (0) and at what was
    trained (1); a point on each line marks the strength `at` which the model is elsewhere on
    screen.
    """
    texts, strengths = table.axes
    x = [float(label) for label in strengths.labels]
    figure = themed_figure(
        theme,
        height=height,
        margin=MARGIN | {"t": 30},
        legend={"orientation": "h", "x": 0, "y": -0.3},
        xaxis=axis("strength of the adapter") | {"tickformat": "~g", "dtick": 0.5},
        yaxis=axis(f"loss ({table.unit})") | {"tickformat": "~g"},
    )
    for where, name in ((0.0, "base"), (1.0, "tuned")):
        figure.add_vline(x=where, line={"color": theme.faint, "width": 1.5, "dash": "dot"})
        figure.add_annotation(
            x=where,
            y=1,
            yref="paper",
            yanchor="bottom",
            text=name,
            showarrow=False,
            font={"size": 12},
        )
    for index, (text, values) in enumerate(zip(texts.labels, table.values, strict=True)):
        look = {
            "color": COLOURS[index % len(COLOURS)],
            "width": 2,
            "dash": DASHES[index % len(DASHES)],
        }
        hover = (
            f"{plain_label(text, LONGEST_NAME)}<br>strength %{{x}}<br><b>%{{y:.3f}}</b> "
            f"{table.unit}<extra></extra>"
        )
        figure.add_scatter(
            x=x,
            y=values,
            mode="lines+markers",
            name=plain_label(text, LONGEST_NAME),
            line=look,
            hovertemplate=hover,
        )
        if at in x:
            figure.add_scatter(
                x=[at],
                y=[values[x.index(at)]],
                mode="markers",
                marker={
                    "size": 13,
                    "color": look["color"],
                    "symbol": "diamond",
                    "line": {"width": 1.5, "color": theme.text},
                },
                showlegend=False,
                hoverinfo="skip",
            )
    return figure


def singular_values(values: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """A bar for each of the singular `values` [number] of a change, the largest first, on a scale
    that begins at 0.
    """
    (numbers,) = values.axes
    figure = two_axes(
        theme,
        axis(numbers.name),
        axis(values.unit) | {"rangemode": "tozero", "tickformat": "~g"},
        height=height,
    )
    figure.add_bar(
        x=[int(label) for label in numbers.labels],
        y=values.values,
        marker={"color": STREAM},
        hovertemplate=f"{numbers.name} %{{x}}<br><b>%{{y:.4f}}</b> {values.unit}<extra></extra>",
    )
    return figure
