"""Attention as heatmaps: one head large with its tokens, and all heads at a glance."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.colors
import plotly.graph_objects as go

from gptviz.figures.marks import brief
from gptviz.figures.theme import PATTERN, Theme, base, plain, sequential
from gptviz.labelled import Axis, Labelled

# On the logarithmic scale everything up to here has the lowest colour.
LOG_FLOOR = 1e-3

# Up to here single characters all fit on an axis, in one row or in two staggered ones, on the 290 pixels of a phone.
MOST_IN_A_ROW = 24
MOST_STAGGERED = 64
LONGEST_LABEL = 16

# How far up the picture its legend stands, where the mask leaves the corner blank.
LEGEND_AT = 0.85

# Levels of the picture of all heads: a byte a cell has no NaN, so 0 is blank and the rest are colours. (Blank as 255
# would be all slashes in base64, and plotly's JSON spends six characters on a slash.)
BLANK = 0
SHADES = 254


def one_head(
    pattern: Labelled, theme: Theme, *, title: str, notes: Sequence[str] = (), log: bool = False, height: int = 428
) -> go.Figure:
    """A pattern [query, key] on the fixed scale 0 … 1, queries from top to bottom; NaN stays blank.

    The values travel as they are, so that the number under the pointer is the model's; only the colours are logarithmic
    where `log` asks for it. `notes` are lines for the corner that a causal mask leaves blank; without such a corner they
    are left out.
    """
    queries, keys = pattern.axes
    values = np.ascontiguousarray(pattern.values, np.float32)
    scale = sequential(PATTERN, theme)
    digits = ".3p" if log else ".2%"
    heatmap = go.Heatmap(
        z=values,
        x=_names(keys),
        y=_names(queries),
        zmin=0,
        zmax=1,
        colorscale=_logarithmic(scale) if log else scale,
        showscale=False,
        hoverongaps=False,
        hovertemplate=f"query %{{y}}<br>key %{{x}}<br><b>%{{z:{digits}}}</b><extra></extra>",
    )
    # Where the mask leaves the upper right corner blank, title and legend stand in it; else above the picture.
    corner = bool(np.isnan(values[0, -1]))
    text = "<br>".join(("blank: comes later, may not be read", "", *notes))
    lines = [
        {"text": f"<b>{title}</b>", "y": 1, "yshift": -24, "font": {"size": 15}},
        {"text": text, "y": LEGEND_AT, "yshift": -56, "font": {"size": 11}},
    ]
    place = {"xref": "paper", "yref": "paper", "x": 1, "xanchor": "right", "yanchor": "top", "showarrow": False, "align": "right"}
    unit = "share of the row, log scale" if log else "share of the row"
    above = {"text": f"{title}<br><span style='font-size: 12px'>{unit}</span>", "x": 0, "xref": "paper", "font": {"size": 15}}
    layout = base(
        theme,
        height=height,
        title=None if corner else above,
        annotations=[place | line for line in lines] if corner else [],
        showlegend=False,
        modebar={"bgcolor": "rgba(0, 0, 0, 0)", "color": theme.text, "activecolor": PATTERN},
        xaxis=_token_axis(keys, theme) | {"constrain": "domain", "constraintoward": "left"},
        yaxis=_token_axis(queries, theme, down=True)
        | {"scaleanchor": "x", "autorange": "reversed", "constrain": "domain", "constraintoward": "top"},
    )
    layout.margin = {"l": _room(queries), "r": 8, "t": 4 if corner else 58, "b": _room(keys)}
    title_and_place = {"title": {"text": unit, "side": "top", "font": {"size": 12}}, "y": LEGEND_AT}
    legend = _legend(scale, log, **title_and_place if corner else {"y": 0.95, "yref": "container"})
    return go.Figure([heatmap, legend], layout)


def all_heads(
    thumbnails: Labelled,
    theme: Theme,
    chosen: tuple[int, int],
    notes: Sequence[Sequence[str]],
    *,
    log: bool = False,
    height: int = 300,
) -> go.Figure:
    """Thumbnails [block, head, query, key] as one picture on the scale of `one_head`: blocks downwards, heads to the right.

    Args:
        chosen: block and head to outline.
        notes: what the pointer shows on the thumbnail of each block and head.
    """
    n_block, n_head, side, _ = thumbnails.values.shape
    picture, pitch = stitch(thumbnails, log=log)
    first = -(side - 1) / (2 * pitch)  # the middle of thumbnail (b, h) lies at (h, b)
    colours = [[(1 + SHADES * at) / (1 + SHADES), colour] for at, colour in sequential(PATTERN, theme)]
    scale = [[0.0, "rgba(0, 0, 0, 0)"], *colours]
    heatmap = go.Heatmap(
        z=picture,
        x0=first,
        dx=1 / pitch,
        y0=first,
        dy=1 / pitch,
        zmin=0,
        zmax=1 + SHADES,
        colorscale=scale,
        showscale=False,
        hoverinfo="skip",
    )
    # Heatmaps answer no click; an unseen marker in the middle of each thumbnail does.
    at = [(block, head) for block in range(n_block) for head in range(n_head)]
    marks = go.Scatter(
        x=[head for _, head in at],
        y=[block for block, _ in at],
        customdata=at,
        text=[f"<b>block {block}, head {head}</b><br>{notes[block][head]}" for block, head in at],
        mode="markers",
        marker={"opacity": 0, "size": 12},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="%{text}<extra></extra>",
    )
    block, head = chosen
    edge = {"type": "rect", "x0": head - 0.5, "x1": head + 0.5, "y0": block - 0.5, "y1": block + 0.5}

    def numbered(axis: Axis) -> dict[str, Any]:
        return _quiet(axis.name, theme) | {"tickvals": list(range(len(axis.labels))), "ticktext": axis.labels, "fixedrange": True}

    layout = base(
        theme,
        height=height,
        shapes=[edge | {"line": {"color": theme.text, "width": 2}}],
        showlegend=False,
        hovermode="closest",
        hoverdistance=-1,  # everywhere, the nearest marker is meant
        xaxis=numbered(thumbnails.axes[1])
        | {"range": [-0.53, n_head - 0.47], "side": "top", "constrain": "domain", "constraintoward": "left"},
        yaxis=numbered(thumbnails.axes[0])
        | {"range": [n_block - 0.47, -0.53], "scaleanchor": "x", "constrain": "domain", "constraintoward": "top"},
    )
    layout.margin = {"l": 36, "r": 4, "t": 38, "b": 4}
    return go.Figure([heatmap, marks], layout)


def stitch(thumbnails: Labelled, *, log: bool = False) -> tuple[npt.NDArray[np.uint8], int]:
    """Thumbnails [block, head, query, key] side by side as levels 1 … 1 + SHADES, BLANK between them and where they are NaN.

    Returns the picture and its pitch: how many cells lie from one thumbnail to the next.
    """
    n_block, n_head, side, _ = thumbnails.values.shape
    pitch = side + max(1, round(side / 12))
    levels = np.full((n_block, n_head, pitch, pitch), BLANK, np.uint8)
    shades = _shade(np.asarray(thumbnails.values, np.float32), log)
    levels[:, :, :side, :side] = np.where(np.isnan(shades), BLANK, 1 + np.rint(SHADES * np.nan_to_num(shades)))
    gap = pitch - side
    picture = levels.swapaxes(1, 2).reshape(n_block * pitch, n_head * pitch)
    return np.ascontiguousarray(picture[:-gap, :-gap]), pitch


def _shade(share: npt.NDArray[np.floating[Any]], log: bool) -> npt.NDArray[np.floating[Any]]:
    """How far along the colour scale, 0 … 1, a share of attention stands; NaN stays."""
    return 1 - np.log(np.maximum(share, LOG_FLOOR)) / np.log(LOG_FLOOR) if log else share


def _logarithmic(scale: list[list[Any]]) -> list[list[Any]]:
    """The stops of `scale` moved so that equal ratios of values are equal steps of colour."""
    steps = np.linspace(0, 1, 31)
    colours = plotly.colors.sample_colorscale(scale, steps.tolist())
    floor = [[0.0, colours[0]]]
    return floor + [[float(LOG_FLOOR ** (1 - step)), colour] for step, colour in zip(steps, colours, strict=True)]


def _legend(scale: list[list[Any]], log: bool, **place: Any) -> go.Scatter:
    """The colour scale with its ticks where `_shade` has them: a trace without points, since a heatmap's own is linear."""
    ticks = np.array([LOG_FLOOR, 0.01, 0.1, 1] if log else [0, 0.5, 1])
    bar = {
        "tickvals": _shade(ticks, log).tolist(),
        "ticktext": [f"≤ {LOG_FLOOR:.1%}", "1%", "10%", "100%"] if log else ["0%", "50%", "100%"],
        "tickfont": {"size": 11},
        "orientation": "h",
        "thickness": 10,
        "len": 0.42,
        "outlinewidth": 0,
        "x": 0.96,
        "xanchor": "right",
        "yanchor": "top",
        "xpad": 0,
        "ypad": 4,
    } | place
    marker = {"color": [0], "cmin": 0, "cmax": 1, "colorscale": scale, "showscale": True, "colorbar": bar}
    return go.Scatter(x=[None], y=[None], mode="markers", marker=marker, hoverinfo="skip")


def _quiet(name: str, theme: Theme) -> dict[str, Any]:
    """An axis called `name`, without lines."""
    font = {"size": 12, "color": theme.text}
    return {
        "title": {"text": name, "standoff": 6, "font": font},
        "tickfont": font,
        "showgrid": False,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "automargin": False,
    }


def _names(axis: Axis) -> list[str]:
    """One name per index: the position, which keeps equal tokens apart, then the token. Where names are written on the axis
    too, a mark is as short on it as elsewhere."""
    shown = axis.labels if _all_fit(axis) else tuple(map(brief, axis.labels))
    return [f"{index} {plain(label, LONGEST_LABEL)}" for index, label in enumerate(shown)]


def _cells(label: str) -> int:
    """How many characters wide a label is in a monospaced font."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in label)


def _all_fit(axis: Axis) -> bool:
    """Whether every token of the axis can be shown: they are single characters, or marks, and not too many."""
    return len(axis.labels) <= MOST_STAGGERED and all(_cells(brief(label)) <= 1 for label in axis.labels)


def _room(axis: Axis) -> int:
    """Pixels beside the picture for the labels and the name of an axis. Plotly can find them, but draws all twice then."""
    return 54 if _all_fit(axis) else 40 + 7 * max(min(_cells(name), LONGEST_LABEL + 5) for name in _names(axis))


def _token_axis(axis: Axis, theme: Theme, down: bool = False) -> dict[str, Any]:
    """Every token where single characters fit; elsewhere plotly's own choice for a category axis, which never overlaps
    and shows more on zooming in."""
    count = len(axis.labels)
    look = _quiet(axis.name, theme) | {"type": "category"}
    if not _all_fit(axis):
        return look | {"tickfont": {"family": "monospace", "size": 11, "color": theme.text}, "tickangle": 0 if down else -90}
    labels = [plain(brief(label), LONGEST_LABEL) for label in axis.labels]
    staggered = count > MOST_IN_A_ROW
    if staggered:
        labels = [
            label if index % 2 == 0 else f"{label}\u00a0\u00a0" if down else f"<br>{label}" for index, label in enumerate(labels)
        ]
    font = {"family": "monospace", "size": 10 if staggered else 12, "color": theme.text}
    return look | {"tickmode": "array", "tickvals": list(range(count)), "ticktext": labels, "tickfont": font, "tickangle": 0}
