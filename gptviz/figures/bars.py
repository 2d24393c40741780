"""Probabilities of the next token as bars, before and after sampling."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import plotly.graph_objects as go

from gptviz.figures.theme import OUTPUT, STREAM, Theme, base, blend, plain
from gptviz.labelled import Labelled

# On the logarithmic scale smaller values are not seen.
LOG_FLOOR = 1e-4
LONGEST_LABEL = 14
# With more bars than this there is no room for a number on each.
MOST_NUMBERED = 24
# So many labels fit on the 300 pixels a phone has: single characters in two rows, longer ones at a slant.
MOST_STAGGERED, MOST_SLANTED = 66, 24
# The upper end of the axis: steps, so that it stays where it is while bars change.
ENDS = (0.25, 0.5, 1.0)


def percent(probability: float) -> str:
    """As the interface writes probabilities: three significant digits, below 0.1 % no more than that."""
    if probability < 0.001:
        return "0 %" if probability == 0 else "< 0.1 %"
    digits = 0 if probability >= 0.9995 else 1 if probability >= 0.09995 else 2 if probability >= 0.009995 else 3
    return f"{100 * probability:.{digits}f} %"


def next_token(
    probabilities: Labelled,
    theme: Theme,
    *,
    cut: Sequence[str],
    true: int | None = None,
    by_rank: bool = True,
    log: bool = False,
    height: int = 256,
) -> go.Figure:
    """Two bars per token of `probabilities` [token, (before, after)]: an outline before sampling, filled after it.

    Args:
        cut: for each token what took it out of the draw, "" where nothing did; its outline is then hatched.
        true: the place in `probabilities` of the token that really comes next.
        by_rank: the tokens are sorted, so that the ones cut stand together and get one line that says so.
        log: logarithmic heights, from 0.01 %.
    """
    labels = probabilities.axes[0].labels
    before, after = probabilities.values[:, 0], probabilities.values[:, 1]
    places = [str(place) for place, _ in enumerate(labels)]  # labels need not differ, categories must
    kept = [not reason for reason in cut]
    common: dict[str, Any] = {"width": 0.82, "hoverinfo": "skip"}
    outline = {"color": "rgba(0, 0, 0, 0)", "line": {"color": theme.text, "width": 1.5}}
    quiet = blend(STREAM, theme.background, 0.55)
    hatched = {
        "color": "rgba(0, 0, 0, 0)",
        "line": {"color": quiet, "width": 1.5},
        "pattern": {"shape": "/", "fgcolor": quiet, "size": 6, "solidity": 0.35},
    }
    filled = go.Bar(
        x=places,
        y=after,
        name="after temperature, top-k and top-p",
        marker={"color": OUTPUT},
        text=[f"{100 * p:.0f}" if p >= 0.01 and len(labels) <= MOST_NUMBERED else "" for p in after],
        textposition="outside",
        textfont={"color": theme.text, "size": 10},
        cliponaxis=False,
        **common,
    )
    model = go.Bar(x=places, y=before * kept, name="before: the model’s own", marker=outline, **common)
    out = go.Bar(x=places, y=before * [not one for one in kept], name="cut", marker=hatched, showlegend=not all(kept), **common)
    # One unseen bar per token, as high as the axis, answers the pointer wherever it is above a token.
    end = min(end for end in ENDS if end >= min(1.0, float(probabilities.values.max(initial=0.0))))
    pointer = go.Bar(
        x=places,
        y=[1.0] * len(labels),
        width=1,
        marker={"color": "rgba(0, 0, 0, 0)"},
        showlegend=False,
        customdata=[
            [html.escape(label), percent(b), f"cut by {reason}" if reason else percent(a)]
            for label, b, a, reason in zip(labels, before, after, cut, strict=True)
        ],
        hovertemplate="<b>%{customdata[0]}</b><br>before %{customdata[1]}<br>after %{customdata[2]}<extra></extra>",
    )
    figure = go.Figure([filled, model, out, pointer], base(theme, height=height))
    figure.update_layout(
        barmode="overlay",
        bargap=0,
        margin={"l": 4, "r": 4, "t": 26, "b": 4},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "bottom"},
        dragmode=False,
        xaxis=_tokens_axis(labels, true, theme) | {"range": [-0.5, len(labels) - 0.5]},
        yaxis={
            "tickformat": "~%",
            "gridcolor": theme.faint,
            "zeroline": False,
            "fixedrange": True,
            "automargin": True,
            "nticks": 6,
        }
        | ({"type": "log", "range": [math.log10(LOG_FLOOR), 0], "dtick": 1} if log else {"range": [0, end]}),
    )
    if by_rank:
        _say_cuts(figure, cut, theme)
    return figure


def _tokens_axis(labels: Sequence[str], true: int | None, theme: Theme) -> dict[str, Any]:
    """The axis of tokens: single characters stand in two staggered rows where there are many, longer labels at a slant;
    of still more tokens every second or third is named, and the pointer names the others."""
    short = max(map(len, labels), default=0) <= 2
    step = -(-len(labels) // (MOST_STAGGERED if short else MOST_SLANTED))
    staggered = short and len(labels) > MOST_NUMBERED

    def text(place: int) -> str:
        label = labels[place]
        shown = plain(label, LONGEST_LABEL)
        down = "<br>" if staggered and place // step % 2 else ""
        return f"{down}<b>{shown}</b><br>▲" if place == true else f"{down}{shown}"

    named = range(0, len(labels), step)
    return {
        "type": "category",
        "tickvals": [str(place) for place in named],
        "ticktext": [text(place) for place in named],
        "tickangle": 0 if short else -55,
        "tickfont": {"family": "monospace", "size": 10 if staggered or not short else 13, "color": theme.text},
        "showgrid": False,
        "fixedrange": True,
    }


def _say_cuts(figure: go.Figure, cut: Sequence[str], theme: Theme) -> None:
    """A line where each cut begins, with its name; the names one below the other, so that they never meet."""
    place, height = 0, 0.99
    for reason, tokens in groupby(cut):
        if reason:
            on_right = place < len(cut) * 0.7
            figure.add_vline(x=place - 0.5, line={"color": theme.text, "width": 1, "dash": "dot"})
            figure.add_annotation(
                x=place - 0.5,
                y=height,
                yref="paper",
                yanchor="top",
                xanchor="left" if on_right else "right",
                text=f" cut by {reason} →" if on_right else f"cut by {reason} → ",
                showarrow=False,
                font={"size": 12},
                bgcolor=theme.background,
            )
            height -= 0.11
        place += len(list(tokens))
