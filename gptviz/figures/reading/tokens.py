"""How texts are cut into tokens: the merges of a word as a tree, what languages cost, and how a
text shrinks merge by merge.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MARGIN, MONOSPACE, axis, two_axes
from gptviz.figures.kit.theme import KEY, OUTPUT, QUERY, Theme, blend, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

FIELDS = ("start", "middle", "end", "rank")
"""What a merge has in `tree`."""
LONGEST_LABEL = 14


def tree(
    symbols: Sequence[str], merges: LabelledArray, theme: Theme, *, height: int, shown: int
) -> go.Figure:
    """The `merges` [merge, `FIELDS`] of a word as a tree: below the `symbols` that the word begins
    as, and above any two neighbours the token that they become, which labels the merge. `shown` of
    them are drawn; the others have their room.
    """
    # Where the token stands that each symbol is a part of by now, in symbols from the left and
    # merges above each other.
    places: list[tuple[float, int]] = [(float(place), 0) for place in range(len(symbols))]
    nodes = [
        (*place, symbol, "before all merges") for place, symbol in zip(places, symbols, strict=True)
    ]
    x: list[float | None] = []
    y: list[float | None] = []
    for number, (start, middle, end, rank) in enumerate(merges.values[:shown].astype(int).tolist()):
        (left, low), (right, high) = places[start], places[middle]
        here = (left + right) / 2, 1 + max(low, high)
        x += [left, here[0], right, None]
        y += [low, here[1], high, None]
        places[start:end] = [here] * (end - start)
        nodes.append(
            (
                *here,
                merges.axes[0].labels[number],
                f"merge {number + 1}: number {rank + 1:,} of the list",
            )
        )
    figure = themed_figure(
        theme,
        height=height,
        showlegend=False,
        dragmode=False,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        xaxis={"range": [-0.6, len(symbols) - 0.4], "visible": False},
        yaxis={"range": [-0.5, height_of(merges, len(symbols)) + 0.5], "visible": False},
    )
    figure.add_scatter(
        x=x, y=y, mode="lines", line={"color": theme.faint, "width": 2}, hoverinfo="skip"
    )
    figure.add_scatter(
        x=[node[0] for node in nodes],
        y=[node[1] for node in nodes],
        mode="markers",
        marker={"size": 22, "opacity": 0},
        customdata=[[html.escape(node[2]), node[3]] for node in nodes],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
    )
    for number, (across, up, label, _) in enumerate(nodes):
        colour, share = (OUTPUT, 0.25) if shown and number == len(nodes) - 1 else (QUERY, 0.12)
        look = {
            "font": MONOSPACE | {"size": 14},
            "bgcolor": blend(colour, theme.background, share),
            "borderpad": 3,
        }
        figure.add_annotation(x=across, y=up, text=plain_label(label, LONGEST_LABEL), **look)
    return figure


def height_of(merges: LabelledArray, symbols: int) -> int:
    """How many merges stand above each other in the whole tree."""
    levels = [0] * symbols
    for start, _, end, _ in merges.values.astype(int):
        levels[start:end] = [1 + max(levels[start:end])] * (end - start)
    return max(levels, default=0)


def costs(times: LabelledArray, theme: Theme, *, height: int) -> go.Figure:
    """How many times as many tokens as the first text each text takes: bars [text, tokenizer],
    beside each other per text.
    """
    texts, tokenizers = times.axes
    figure = themed_figure(
        theme,
        height=height,
        showlegend=True,
        margin=MARGIN | {"t": 40},
        bargap=0.25,
        dragmode=False,
        # where bars are too narrow for their numbers, the pointer shows them
        uniformtext={"minsize": 12, "mode": "hide"},
        yaxis=axis(times.unit) | {"rangemode": "tozero", "showgrid": True},
    )
    for column, (name, colour) in enumerate(zip(tokenizers.labels, (QUERY, KEY), strict=False)):
        figure.add_bar(
            x=list(texts.labels),
            y=times.values[:, column],
            name=plain_label(name, 32),
            marker={"color": colour, "pattern": {"shape": "" if column == 0 else "/"}},
            text=["" if np.isnan(value) else f"{value:.1f}×" for value in times.values[:, column]],
            textposition="outside",
            textangle=0,
            cliponaxis=False,
            hovertemplate=f"%{{x}}, {plain_label(name)}<br><b>%{{y:.2f}} times</b> the tokens of "
            f"{texts.labels[0]}<extra></extra>",
        )
    figure.add_hline(1, line={"color": theme.text, "width": 1, "dash": "dot"})
    return figure


def shrinking(tokens: LabelledArray, theme: Theme, *, height: int, chosen: int) -> go.Figure:
    """How many bytes a token stands for after each number of merges [merges], with the chosen
    number pointed out.
    """
    x = np.arange(len(tokens.values))
    figure = two_axes(
        theme,
        axis(tokens.axes[0].name) | {"tickformat": ","},
        axis(tokens.unit) | {"rangemode": "tozero", "showgrid": True},
        height=height,
        dragmode=False,
    )
    figure.add_scatter(
        x=x,
        y=tokens.values,
        mode="lines",
        line={"color": OUTPUT, "width": 2},
        hovertemplate="after %{x:,} merges<br><b>%{y:.2f} bytes per token</b><extra></extra>",
    )
    figure.add_scatter(
        x=[chosen],
        y=[tokens.values[chosen]],
        mode="markers",
        marker={"color": theme.text, "size": 11},
        hoverinfo="skip",
    )
    return figure
