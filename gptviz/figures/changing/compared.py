"""Two subjects side by side: cells or bars of A and of B on one scale, their difference on a scale
around 0, and what moved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MONOSPACE
from gptviz.figures.kit.format import percent as in_percent
from gptviz.figures.kit.format import side_by_side
from gptviz.figures.kit.labelled import LONGEST_LABEL, names_of
from gptviz.figures.kit.theme import KEY, QUERY, STREAM, Theme, blend, plain_label, themed_figure
from gptviz.labelled_array import LabelledArray

LONGEST_NAME = 48
# Longer names stand above their bars instead of beside them: on a phone too there is room for both.
# characters, pixels
LONGEST_BESIDE = 12
ABOVE = 18
# pixels
ROW = 30
ROW_OF_TWO = 40
# A and B differ in colour and in hatching; neither is a colour of the differences, which are blue
# and orange.
SIDES = {"A": ("#009988", ""), "B": ("#AA3377", "/")}
MOST_LABELLED = 14


def pairs(
    a: LabelledArray,
    b: LabelledArray,
    theme: Theme,
    *,
    limit: float,
    percent: bool,
    called: Sequence[str] = tuple(SIDES),
) -> go.Figure:
    """Two bars for each label of `a` and `b` [label], from top to bottom: A above, B below, on one
    scale that ends at `limit`. The legend has what they are `called`.
    """
    names = names_of(a.axes[0], LONGEST_NAME)
    figure = themed_figure(
        theme,
        height=(ROW_OF_TWO + _room(names)) * len(names) + 90,
        dragmode=False,
        barmode="group",
        bargap=0.5 if _room(names) else 0.2,
        bargroupgap=0.05,
        legend={"font": {"size": 13}},
    )
    pattern = {"fgcolor": theme.background, "solidity": 0.2, "size": 6}
    for side, one, name in zip(SIDES, (a, b), called, strict=True):
        shade, hatching = SIDES[side]
        figure.add_bar(
            orientation="h",
            name=plain_label(name, LONGEST_NAME),
            x=_nan_as_zero(one),
            y=names,
            marker={"color": shade, "pattern": pattern | {"shape": hatching, "bgcolor": shade}},
            text=[_format_value(value, percent) for value in one.values.tolist()],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"%{{y}}, {side}<br><b>%{{x:.4f}}</b> {one.unit}<extra></extra>",
        )
    low = min(0.0, *(float(np.nanmin(side.values, initial=0.0)) for side in (a, b)))
    # the number of the longest bar to the left stands beside it
    room = 0.25 * (limit - low) if low < 0 else 0.0
    _lay_out(
        figure,
        names,
        a.axes[0].name,
        a.unit,
        (low - room, 1.25 * limit),
        percent,
    )
    return figure


def with_shares(
    figure: go.Figure, sides: Sequence[Sequence[tuple[float, float, float]]], theme: Theme
) -> go.Figure:
    """The figure of `pairs`, in percent, with a mark on each bar: a share, and the range that
    chance gives it; none for NaN.
    """
    bars = list(figure.data)
    count = len(sides[0])
    apart = (1 - figure.layout.bargap) / 4  # from the middle of a row to that of a bar
    for side, shares, at in zip(bars, sides, (-apart, apart), strict=True):
        middle, low, high = (np.array([share[i] for share in shares], float) for i in range(3))
        reach = {
            "array": high - middle,
            "arrayminus": middle - low,
            "thickness": 2,
            "width": 4,
            "color": theme.text,
        }
        figure.add_scatter(
            x=middle,
            y=[row + at for row in range(count)],
            yaxis="y2",
            mode="markers",
            name="share in its data",
            showlegend=side is bars[0],
            marker={"symbol": "line-ns", "size": 13, "line": {"width": 3, "color": theme.text}},
            error_x=reach | {"type": "data", "symmetric": False},
            customdata=np.stack((low, high), axis=-1),
            hovertemplate=f"{side.name}, its data<br><b>%{{x:.4f}}</b> (chance: "
            f"%{{customdata[0]:.4f}} to "
            f"%{{customdata[1]:.4f}})"
            "<extra></extra>",
        )
    for side, shares, at in zip(bars, sides, (-apart, apart), strict=True):
        # At the end of a bar its number would lie on the mark.
        figure.add_scatter(
            x=[np.nanmax([value, *share]) for value, share in zip(side.x, shares, strict=True)],
            y=[row + at for row in range(count)],
            yaxis="y2",
            mode="text",
            text=[f"&nbsp;{text}" for text in side.text],
            textposition="middle right",
            cliponaxis=False,
            hoverinfo="skip",
            showlegend=False,
        )
    span = [count - 0.5, -0.5]
    figure.update_layout(
        yaxis2={"overlaying": "y", "range": span, "visible": False, "fixedrange": True}
    )
    figure.update_layout(yaxis={"autorange": False, "range": span})
    figure.update_traces(text=None, selector={"type": "bar"})
    return figure


def differences(
    difference: LabelledArray, theme: Theme, *, limit: float, percent: bool, signed: bool = True
) -> go.Figure:
    """A bar for each label of `difference` [label], on a scale up to `limit`: to the right and blue
    where B has more, to the left and orange where A has. A distance is not `signed`: it has one
    side. With `percent` the numbers are written so.
    """
    names = names_of(difference.axes[0], LONGEST_NAME)
    values = difference.values.tolist()
    texts = [_format_value(value, percent, "only in one") for value in values]
    if signed:  # as a reader compares them
        together = side_by_side([100 * value if percent else value for value in values])
        texts = [f"{text} %" if text and percent else text or "only in one" for text in together]
    colours = [STREAM] * len(values)
    if signed:
        colours = [QUERY if value >= 0 else KEY for value in values]
    # As high as the pair of bars next to it.
    figure = themed_figure(
        theme,
        height=((ROW_OF_TWO if signed else ROW) + _room(names)) * len(names) + 90,
        dragmode=False,
    )
    figure.add_bar(
        orientation="h",
        x=_nan_as_zero(difference),
        y=names,
        marker={"color": colours},
        text=texts,
        textposition="outside",
        cliponaxis=False,
        hovertemplate=f"%{{y}}<br><b>%{{x:.4f}}</b> {difference.unit}<extra></extra>",
    )
    reach = (1.4 if signed else 1.2) * (limit or 1.0)
    _lay_out(
        figure,
        names,
        difference.axes[0].name,
        difference.unit,
        (-reach if signed else 0.0, reach),
        percent,
    )
    figure.update_layout(xaxis={"zeroline": True}, showlegend=False)
    return figure.update_layout(bargap=0.5 if _room(names) else 0.3)


def _room(names: Sequence[str]) -> int:
    """How much higher a row is whose name stands above it."""
    if max(map(len, names), default=0) > LONGEST_BESIDE:
        return ABOVE
    return 0


def _nan_as_zero(side: LabelledArray) -> list[float]:
    """NaN as 0: a bar of no length, whose text says what it is."""
    return [float(value) for value in np.nan_to_num(side.values)]


def _format_value(value: float, percent: bool, none: str = "has none") -> str:
    if math.isnan(value):
        return none
    if percent:
        return in_percent(value)
    return f"{value:.3f}".replace("-", "−")


def _lay_out(
    figure: go.Figure,
    names: Sequence[str],
    name: str,
    unit: str,
    span: tuple[float, float],
    percent: bool,
) -> None:
    if _room(names):
        for row in names:
            place = {"x": 0, "xref": "paper", "xanchor": "left", "y": row, "yshift": 23}
            figure.add_annotation(text=row, font=MONOSPACE | {"size": 12}, **place)
    figure.update_layout(
        margin={"l": 8, "r": 12, "t": 34, "b": 8},
        xaxis={"title": {"text": unit, "standoff": 8}, "range": list(span), "nticks": 5}
        | ({"tickformat": ".4~%"} if percent else {}),
        yaxis={
            "title": {"text": name, "standoff": 6},
            "type": "category",
            "categoryorder": "array",
            "categoryarray": list(names),
            "autorange": "reversed",
            "tickfont": MONOSPACE,
            "showticklabels": not _room(names),
        },
    )


def movers(
    a: LabelledArray, b: LabelledArray, distance: LabelledArray, theme: Theme, *, height: int
) -> go.Figure:
    """Tokens [token, component] in one picture: where each lies in A and in B; those that moved
    most have a line and a name.
    """
    far = np.asarray(distance.values, float)
    most = [
        index
        for index in np.argsort(-far, kind="stable")[:MOST_LABELLED].tolist()
        if far[index] > 0
    ]
    labels = [plain_label(label, LONGEST_LABEL) for label in a.axes[0].labels]
    figure = themed_figure(
        theme,
        height=height,
        margin={"l": 8, "r": 8, "t": 34, "b": 8},
        legend={"font": {"size": 13}},
        xaxis={"title": {"text": "component 1"}},
        yaxis={"title": {"text": "component 2"}, "scaleanchor": "x"},
    )
    apart: list[Any] = [[], []]
    for index in most:
        for component in (0, 1):
            apart[component] += [
                float(a.values[index, component]),
                float(b.values[index, component]),
                None,
            ]
    figure.add_scatter(
        x=apart[0],
        y=apart[1],
        mode="lines",
        line={"color": STREAM, "width": 1.5},
        hoverinfo="skip",
        showlegend=False,
    )
    middle = np.concatenate((a.values, b.values)).mean(axis=0)
    outer = np.linalg.norm(b.values - middle, axis=1) >= np.linalg.norm(a.values - middle, axis=1)
    rest = [index for index in range(len(labels)) if index not in set(most)]
    for side, one, symbol, names_here in (
        ("A", a, "circle-open", ~outer),
        ("B", b, "diamond", outer),
    ):
        shade = SIDES[side][0]
        for which, colour, size in (
            (rest, blend(shade, theme.background, 0.5), 5),
            (most, shade, 9),
        ):
            figure.add_scatter(
                x=one.values[which, 0],
                y=one.values[which, 1],
                mode="markers+text",
                name=side,
                legendgroup=side,
                showlegend=size == 9,
                marker={"color": colour, "symbol": symbol, "size": size, "line": {"width": 1.5}},
                # A token has its name where it lies farther out: there is more room.
                text=[labels[index] if size == 9 and names_here[index] else "" for index in which],
                textposition="top center",
                textfont={"family": "monospace", "size": 13, "color": theme.text},
                customdata=[(labels[index], float(far[index])) for index in which],
                hovertemplate=f"<b>%{{customdata[0]}}</b>, {side}<br>moved by "
                f"%{{customdata[1]:.3f}}<extra></extra>",
            )
    return figure
