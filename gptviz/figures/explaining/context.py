"""How much context a model uses: what each earlier token is worth, and the loss by window and by
position.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MARGIN, axis, token_axis, token_names, token_room, two_axes
from gptviz.figures.kit.format import percent
from gptviz.figures.kit.heat import heatmap, largest_size, scale
from gptviz.figures.kit.theme import OUTPUT, STREAM, Theme, blend, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

# The most tokens that have their names below their bars.
MOST_NAMED = 40


def left_out(rise: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """The rise of the loss [token guessed, token left out] as a heatmap, on a scale that is
    symmetric about zero.

    Blue: the guess is worse without the token; orange: it is better. What was not measured stays
    blank.
    """
    guessed, left = rise.axes
    limit = largest_size(rise.values)
    place = {
        "orientation": "h",
        "len": 0.42,
        "x": 0.96,
        "xanchor": "right",
        "y": 0.97,
        "yanchor": "top",
    }
    drawn = heatmap(
        rise.values,
        -limit,
        limit,
        theme,
        x=token_names(left),
        y=token_names(guessed),
        hovertemplate="guess of %{y}<br>without %{x}<br><b>%{z:+.3f} nats</b><extra></extra>",
        colorbar=scale(
            [-limit, 0, limit],
            [f"−{limit:.3g}", "0", f"+{limit:.3g}"],
            title={"text": rise.unit, "side": "top"},
            **place,
        ),
    )
    return themed_figure(
        theme,
        drawn,
        height=height,
        margin={"l": token_room(guessed), "r": 8, "t": 4, "b": token_room(left)},
        xaxis=token_axis(left),
        yaxis=token_axis(guessed, down=True) | {"autorange": "reversed"},
    )


def by_window(
    loss: LabelledArray, theme: Theme, *, height: int, enough: int, told: Sequence[int]
) -> go.Figure:
    """The loss [guess, tokens read] of the guess after the text and the mean over all guesses, the
    windows on a logarithmic axis where they double. The window that is `enough` for the guess is pointed out, and at
    the windows `told` stands its probability.
    """
    guesses, windows = loss.axes
    x = [int(label) for label in windows.labels]
    if x[-1] == len(x):  # every number
        across: dict[str, Any] = {"nticks": 15}
    else:
        spaced = _spaced_windows(x)
        across = {"type": "log", "tickvals": spaced, "ticktext": list(map(str, spaced))}
    figure = two_axes(
        theme,
        axis(windows.name) | across,
        axis(f"surprise: {loss.unit}") | {"rangemode": "tozero", "tickformat": ".3~g"},
        height=height,
        legend={"x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom", "orientation": "h"},
    )
    figure.update_layout(showlegend=True, margin={"t": 32})
    chances = [percent(math.exp(-nats)) for nats in loss.values[0]]
    looks = ({"color": OUTPUT, "width": 3}, {"color": STREAM, "width": 1.5, "dash": "dash"})
    texts = ([text if at in told else "" for at, text in zip(x, chances, strict=True)], None)
    for label, values, line, text in zip(guesses.labels, loss.values, looks, texts, strict=True):
        figure.add_scatter(
            x=x,
            y=values,
            mode="lines+markers" if text is None else "lines+markers+text",
            text=text,
            textposition=["bottom left"] * (len(x) - 1) + ["middle right"],
            textfont={"color": theme.text},
            cliponaxis=False,
            line=line,
            marker={"size": 7},
            name=plain_label(label),
            customdata=chances if text is not None else [""] * len(x),
            hovertemplate="the last %{x} tokens<br><b>%{y:.3f} nats</b> %{customdata}"
            "<extra></extra>",
        )
    figure.add_vline(enough, line={"color": theme.text, "width": 1.5, "dash": "dot"})
    return figure


def _spaced_windows(windows: Sequence[int]) -> list[int]:
    """Windows whose numbers can stand next to each other on a logarithmic axis: the last, and those
    well below it.
    """
    return [window for window in windows if window == windows[-1] or window * 1.5 < windows[-1]]


def by_position(loss: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """The loss of each token [token] as bars, and their running mean from the beginning as a
    line.
    """
    (tokens,) = loss.axes
    places = list(range(len(tokens.labels)))
    known = np.isfinite(loss.values)
    mean = np.cumsum(np.where(known, loss.values, 0)) / np.maximum(np.cumsum(known), 1)
    names = {
        "tickvals": places,
        "ticktext": [plain_label(label, 10) for label in tokens.labels],
        "tickangle": -90,
    }
    figure = themed_figure(
        theme,
        height=height,
        showlegend=True,
        legend={"x": 1, "xanchor": "right"},
        margin=MARGIN | {"t": 32},
        bargap=0.15,
        xaxis=axis("position") | (names if len(places) <= MOST_NAMED else {}),
        yaxis=axis(loss.unit) | {"rangemode": "tozero", "tickformat": ".3~g"},
    )
    figure.add_bar(
        x=places,
        y=loss.values,
        marker={"color": blend(OUTPUT, theme.background, 0.7)},
        customdata=[html.escape(label) for label in tokens.labels],
        hovertemplate="%{customdata} at position %{x}<br><b>%{y:.3f} nats</b><extra></extra>",
        name="this token",
    )
    figure.add_scatter(
        x=places[1:],
        y=mean[1:],
        mode="lines",
        line={"color": theme.text, "width": 2},
        hovertemplate="mean up to position %{x}<br><b>%{y:.3f} nats</b><extra></extra>",
        name="mean of all up to here",
    )
    return figure


def over_data(loss: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """The mean loss [position] over many texts, as a line."""
    (positions,) = loss.axes
    figure = two_axes(
        theme,
        axis(positions.name),
        axis("mean loss (nats)") | {"rangemode": "tozero", "tickformat": ".3~g"},
        height=height,
    )
    figure.add_scatter(
        x=[int(label) for label in positions.labels],
        y=loss.values,
        mode="lines+markers" if len(positions.labels) <= MOST_NAMED else "lines",
        line={"color": OUTPUT, "width": 2},
        hovertemplate="position %{x}<br><b>%{y:.3f} nats</b><extra></extra>",
    )
    return figure
