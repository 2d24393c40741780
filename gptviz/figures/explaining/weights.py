"""Single weights as lines between what they read and what they write, from tokens to logits."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.format import format_signed
from gptviz.figures.kit.theme import KEY, QUERY, Theme, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

# With more lines than this their numbers would lie over each other.
MOST_NUMBERED = 40
# Pixels for each place of the longest column.
ROW = 26
WIDTHS = (1.0, 2.0, 3.5)
# Where along a line its number stands.
ALONG = 0.5


def weight_graph(weights: LabelledArray, stages: Sequence[int], theme: Theme) -> go.Figure:
    """`weights` [from, to], both axes with the same places, NaN where there is no weight; `stages`
    are how far each place is from the tokens. Blue lines are weights above 0, orange ones below; a
    dotted line is a number of the stream that goes on. A point carries its number, for a click.
    """
    names = weights.axes[0].labels
    sources, targets = np.nonzero(~np.isnan(weights.values))
    x, y = _places(names, stages, sources, targets)
    values = weights.values[sources, targets]
    size = float(np.abs(values).max(initial=1e-9))
    lines = [_goes_on(names, stages, x, y, theme)]
    for sign, colour in ((1, QUERY), (-1, KEY)):
        for number, width in enumerate(WIDTHS):
            wide = np.minimum((np.abs(values) / size * len(WIDTHS)).astype(int), len(WIDTHS) - 1)
            some = (np.sign(values) == sign) & (wide == number)
            lines.append(
                _segments(x, y, sources[some], targets[some], {"color": colour, "width": width})
            )
    hints = [
        f"{html.escape(names[source])} → {html.escape(names[target])}: "
        f"{format_signed(float(value))}"
        for source, target, value in zip(sources, targets, values, strict=True)
    ]
    numbers = go.Scatter(
        x=x[sources] + ALONG * (x[targets] - x[sources]),
        y=y[sources] + ALONG * (y[targets] - y[sources]),
        mode="markers+text" if len(values) <= MOST_NUMBERED else "markers",
        marker={"size": 9, "opacity": 0},
        text=[format_signed(float(value)) for value in values],
        hovertext=hints,
        hoverinfo="text",
    )
    points = go.Scatter(
        x=x,
        y=y,
        mode="markers+text",
        marker={"size": 9, "color": theme.text},
        text=[plain_label(_shorten_name(name), 12) for name in names],
        hovertext=[html.escape(name) for name in names],
        textposition="top center",
        customdata=np.arange(len(names)),
        hovertemplate="%{hovertext}<extra></extra>",
    )
    longest = max(np.bincount(np.asarray(stages)), default=1)
    return themed_figure(
        theme,
        *lines,
        numbers,
        points,
        height=max(300, 40 + ROW * int(longest)),
        margin={"l": 40, "r": 40, "t": 24, "b": 8},
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        xaxis={"visible": False},
        yaxis={"visible": False},
    )


def _shorten_name(name: str) -> str:
    """The name of a place in few letters: `s22` of the stream, `h1 v4` of a head, `n7` of
    neurons.
    """
    return re.sub(r"^(s)tream (?=\d+$)|^(n)euron (?=\d+$)|^(h)ead (?=\d+ \w+$)", r"\1\2\3", name)


def _places(
    names: Sequence[str], stages: Sequence[int], sources: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where each place stands: a column for each stage, and in it, evenly from top to bottom, first
    those that are joined to what is high in the columns before.
    """
    columns = sorted(set(stages))
    x = np.array([columns.index(stage) for stage in stages], float)
    y = np.zeros(len(names))
    for column, _ in enumerate(columns):
        here = np.flatnonzero(x == column)
        wanted = []
        for place in here:
            before = sources[targets == place]
            alike = [
                i for i, name in enumerate(names) if name == names[int(place)] and x[i] < column
            ]
            joined = [*before, *alike]
            wanted.append(float(np.mean(y[joined])) if joined else -float(place) / len(names))
        order = here[np.argsort(-np.array(wanted), kind="stable")]
        y[order] = (-np.arange(len(here)) - 0.5) / len(here)
    return x, y


def _goes_on(
    names: Sequence[str], stages: Sequence[int], x: np.ndarray, y: np.ndarray, theme: Theme
) -> go.Scatter:
    """Dotted lines from each number of the stream to where it is next."""
    last: dict[str, int] = {}
    pairs = []
    for place in np.argsort(stages, kind="stable").tolist():
        if names[place] in last and stages[place] > stages[last[names[place]]]:
            pairs.append((last[names[place]], place))
        last[names[place]] = place
    pairs = [pair for pair in pairs if names[pair[0]].startswith("stream")]
    ends = np.array(pairs, int).reshape(-1, 2)
    look = {"color": theme.faint, "width": 1, "dash": "dot"}
    return _segments(x, y, ends[:, 0], ends[:, 1], look)


def _segments(
    x: np.ndarray, y: np.ndarray, sources: np.ndarray, targets: np.ndarray, look: dict[str, object]
) -> go.Scatter:
    """Straight lines between places, as one trace."""
    gap = np.full(len(sources), np.nan)
    return go.Scatter(
        x=np.stack((x[sources], x[targets], gap), axis=1).ravel(),
        y=np.stack((y[sources], y[targets], gap), axis=1).ravel(),
        mode="lines",
        line=look,
        hoverinfo="skip",
    )
