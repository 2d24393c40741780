"""Tokens as points: a projection in 2 or 3 dimensions, and the nearest neighbours of one token as
bars.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from gptviz.figures.kit.axes import MONOSPACE, rows
from gptviz.figures.kit.theme import KIND_COLOURS, STREAM, Theme, plain_label, themed_figure
from gptviz.labelled_array import Float64Array, LabelledArray

# One shape per kind, from those that exist in 2 and in 3 dimensions alike.
KIND_SHAPES = {
    "vowel": "circle",
    "consonant": "square",
    "capital": "diamond",
    "word": "circle-open",
    "digit": "square-open",
    "punctuation": "x",
    "space": "cross",
    "other": "diamond-open",
}
# The factors by which shapes are shrunk in 3-D to look as large as a circle of the same size.
SOLID_SIZES = {"diamond": 0.8, "diamond-open": 0.8}
# In 3-D plotly draws a shape as a letter of a font. For these it takes letters that many fonts lack
# (its cross is an emoji) or that are hardly seen: they are written as text instead, in letters that
# every font has.
SOLID_LETTERS = {"x": "×", "cross": "+"}
# More labels than this cover each other; the pointer then shows them.
MOST_LABELLED = 300
# Labels of more characters, all together, cover each other.
MOST_CHARACTERS = 400
# To cover a label is so much worse than to cover a marker.
LABEL_COUNTS = 5
# The width in pixels of the picture for which the places of labels are chosen.
WIDTH = 560

PLACES = {
    "top center": (0, 1),
    "bottom center": (0, -1),
    "middle right": (1, 0),
    "middle left": (-1, 0),
    "top right": (1, 1),
    "top left": (-1, 1),
    "bottom right": (1, -1),
    "bottom left": (-1, -1),
}


def text_positions(
    x: Float64Array,
    y: Float64Array,
    widths: Sequence[int],
    *,
    across: int,
    along: int,
    order: Sequence[int] | None = None,
) -> list[str]:
    """Where to write the label of each point x, y [token], of so many characters (`widths`), in a
    picture of `across` times `along` pixels, so that labels cover few labels and markers, and stay
    within the picture.

    Each in turn takes the best of eight places around its point: no label moves another, and a
    crowd stays a crowd. Where an `order` is given, only these points have a label, and only where
    it covers none before it; the place of all others is "".
    """
    scale = max(float(np.ptp(x)) / across, float(np.ptp(y)) / along) or 1.0
    px = x / scale
    py = y / scale
    # the markers first, labels join them
    boxes = np.stack([px - 4, py - 4, px + 4, py + 4], axis=1)
    # the edges of the picture, as of `axis_ends`
    middle = (px.min() + px.max()) / 2
    beside = 0.56 * (np.ptp(px) or across)
    chosen = [""] * len(widths)
    for i in range(len(widths)) if order is None else order:
        half = 4 * widths[i]
        best = (np.inf, "", boxes[0])
        covers = False
        for name, (dx, dy) in PLACES.items():
            cx = px[i] + dx * (7 + half)
            cy = py[i] + dy * (14 if dx == 0 else 8)
            box = np.array([cx - half, cy - 7, cx + half, cy + 7])
            wide, high = np.minimum(boxes[:, 2:], box[2:]).T - np.maximum(boxes[:, :2], box[:2]).T
            areas = np.maximum(wide, 0) * np.maximum(high, 0)
            on_labels = float(areas[len(px) :].sum())
            covered = float(areas.sum()) + LABEL_COUNTS * on_labels
            # what is cut can be read no more than what is covered
            covered += 14 * max(abs(cx - middle) + half - beside, 0.0)
            if covered < best[0]:
                best = covered, name, box
                covers = on_labels > 0
        if order is None or not covers:
            boxes = np.vstack((boxes, best[2]))
            chosen[i] = best[1]
    return chosen


def groups(kinds: Sequence[str]) -> dict[str, npt.NDArray[np.int64]]:
    """The indices of the tokens of each kind, for the kinds there are."""
    all_kinds = np.array(kinds, dtype=object)
    return {kind: np.flatnonzero(all_kinds == kind) for kind in KIND_COLOURS if kind in all_kinds}


def axis_ends(points: npt.NDArray[Any]) -> list[tuple[float, float]]:
    """Where the axis of each component begins and ends, so that all `points` [..., component] fit,
    with room for labels.
    """
    flat = points.reshape(-1, points.shape[-1])
    low = flat.min(0)
    high = flat.max(0)
    room = 0.06 * float((high - low).max()) or 1.0
    return [(float(a) - room, float(b) + room) for a, b in zip(low, high, strict=True)]


def cloud(
    points: LabelledArray,
    kinds: Sequence[str],
    theme: Theme,
    *,
    height: int,
    axes: Sequence[str] = (),
    chosen: int | None = None,
    neighbours: Sequence[int] = (),
    ends: Sequence[tuple[float, float]] = (),
    set_out: Float64Array | None = None,
    trail: LabelledArray | None = None,
    read: Sequence[int] = (),
    notes: Sequence[str] = (),
) -> go.Figure:
    """Tokens [token, component] as points, in 2 or 3 dimensions by the number of components.

    Args:
        kinds: the kind of each token, for its colour and shape.
        axes: the titles of the axes; none if coordinates mean nothing.
        chosen: index of a point to ring.
        neighbours: indices of points to join to it by a line.
        ends: where each axis begins and ends, for pictures that are to be compared; else the points
            decide.
        set_out: other coordinates [token, component] that decide on which side of its point a label
            stands, so that it stays on that side while the point moves.
        trail: where the chosen point was at other times, [time, component].
        read: indices of the points whose tokens stand in the prompt: a thin ring is around them.
            Where all labels would cover each other, those of `chosen`, `neighbours` and these are
            written.
        notes: a line on each point, which the pointer shows.
    """
    picture = _Points(points, theme, notes)
    figure = themed_figure(theme, height=height, **_layout(theme, axes, ends, picture))

    # of a crowd only the tokens that the picture is about have their label beside them, those first
    # that it is most about
    named = None
    if chosen is not None and sum(map(len, points.axes[0].labels)) > MOST_CHARACTERS:
        named = list(dict.fromkeys([chosen, *neighbours, *(read if picture.few else ())]))
    places = np.full(len(picture.labels), "top center", dtype=object)
    if not picture.solid and (picture.few or named is not None):
        x, y = (points.values if set_out is None else set_out).astype(np.float64).T
        widths = [len(label) for label in points.axes[0].labels]
        places[:] = text_positions(x, y, widths, across=WIDTH, along=height - 60, order=named)
    if named is not None:
        is_named = np.isin(np.arange(len(places)), named) & (places != "")
        picture.written = np.where(is_named, picture.written, "")
        places[places == ""] = "top center"

    # below the points: the trail, and lines to the neighbours
    if trail is not None:
        figure.add_trace(_trail(trail, picture.scatter))
    if chosen is not None and len(neighbours):
        pairs = np.column_stack(
            (np.full(len(neighbours), chosen), neighbours, np.full(len(neighbours), -1))
        ).ravel()
        lines = {
            name: np.where(pairs < 0, np.nan, values)
            for name, values in picture.coordinates(pairs).items()
        }
        line = {"color": theme.text, "width": 1}
        figure.add_trace(
            picture.scatter(**lines, mode="lines", line=line, hoverinfo="skip", showlegend=False)
        )

    # The points, with their labels. The rarest kinds come last, on top: the common ones would hide them.
    for kind, which in sorted(groups(kinds).items(), key=lambda group: -len(group[1])):
        if picture.solid and KIND_SHAPES[kind] in SOLID_LETTERS:
            figure.add_traces(_letters_of_kind(picture, kind, which))
        else:
            figure.add_trace(_tokens_of_kind(picture, kind, which, places))

    # rings around some of them
    if len(read):  # the legend says what the thin rings are, and a click there hides them
        if picture.solid:
            size = 9 if picture.few else 5
        elif picture.few:
            size = 15
        else:
            size = 9
        ring = {
            "symbol": "circle-open",
            "size": size,
            "color": theme.text,
            "opacity": 0.7,
            "line": {"width": 1},
        }
        look = {
            "name": "in the prompt",
            "legendrank": 2_000,
            "mode": "markers",
            "marker": ring,
            "hoverinfo": "skip",
        }
        figure.add_trace(picture.scatter(**picture.coordinates(np.array(read)), **look))
    if chosen is not None:
        figure.add_trace(_ring(picture, chosen, neighbours, places))
    return figure


def side_by_side(
    pictures: Sequence[LabelledArray],
    titles: Sequence[str],
    kinds: Sequence[str],
    theme: Theme,
    *,
    height: int,
) -> go.Figure:
    """Pictures [token, 2] of the same tokens in a row, each under its title, all on one scale."""
    figure = themed_figure(theme, height=height)
    most = (
        max(float(np.abs(picture.values - picture.values.mean(0)).max()) for picture in pictures)
        * 1.08
        or 1.0
    )
    share = 1 / len(pictures)
    names = [plain_label(label) for label in pictures[0].axes[0].labels]
    for index, (picture, title) in enumerate(zip(pictures, titles, strict=True)):
        place = str(index + 1) if index else ""
        domain = [index * share + 0.01, (index + 1) * share - 0.01]
        look = {"range": [-most, most], "showticklabels": False, "fixedrange": True}
        look |= {"showline": True, "mirror": True, "linecolor": theme.faint, "ticks": ""}
        figure.update_layout({f"xaxis{place}": look | {"domain": domain, "anchor": f"y{place}"}})
        figure.update_layout(
            {f"yaxis{place}": look | {"anchor": f"x{place}", "scaleanchor": f"x{place}"}}
        )
        values = picture.values - picture.values.mean(0)
        for kind, which in sorted(groups(kinds).items(), key=lambda group: -len(group[1])):
            figure.add_scatter(
                x=values[which, 0],
                y=values[which, 1],
                xaxis=f"x{place}",
                yaxis=f"y{place}",
                mode="markers",
                name=kind,
                hovertext=[names[i] for i in which],
                hovertemplate=f"<b>%{{hovertext}}</b><br>{kind}, {title}<extra></extra>",
                marker={"color": KIND_COLOURS[kind], "symbol": KIND_SHAPES[kind], "size": 5},
            )
        above = {
            "x": sum(domain) / 2,
            "y": 1,
            "xref": "paper",
            "yref": "paper",
            "yanchor": "bottom",
            "yshift": 5,
        }
        figure.add_annotation(text=title, font={"size": 12}, **above)
    return figure.update_layout(
        showlegend=False, margin={"l": 4, "r": 4, "t": 28, "b": 4}, dragmode=False
    )


class _Points:
    """The points of a cloud, and what their number and dimensions say about how they are drawn."""

    def __init__(self, points: LabelledArray, theme: Theme, notes: Sequence[str]) -> None:
        self.points = points
        self.theme = theme
        self.notes = notes
        self.solid = points.values.shape[1] == 3  #: whether the picture is in 3-D
        #: whether each point has its label next to it
        self.few = len(points.axes[0].labels) <= MOST_LABELLED
        #: plotly's kind of trace
        self.scatter: Any = go.Scatter if self.few else go.Scattergl
        if self.solid:
            self.scatter = go.Scatter3d
        #: the label of each point, as plotly shows it unchanged
        self.labels = np.array(
            [plain_label(label) for label in points.axes[0].labels], dtype=object
        )
        self.written = self.labels  #: the same, as text next to a point
        if self.solid:  # text in a 3-D scene knows tags but no entities: a tag is broken up instead
            self.written = np.array(
                [html.unescape(label).replace("<", "<\u2060") for label in self.labels],
                dtype=object,
            )
        #: of labels next to points
        self.font = {"textfont": {"family": "monospace", "size": 13, "color": theme.text}}

    def coordinates(self, which: Any) -> dict[str, Any]:
        """The coordinates of the points with these indices, as arguments of a trace."""
        values = self.points.values
        return {
            name: values[which, i].astype(np.float32)
            for i, name in enumerate("xyz"[: values.shape[1]])
        }


def _tokens_of_kind(
    picture: _Points, kind: str, which: npt.NDArray[np.int64], places: npt.NDArray[np.object_]
) -> Any:
    """The points with the indices `which`, all of one kind."""
    said = f"<b>%{{hovertext}}</b><br>{kind}"
    end = "<extra></extra>"
    return picture.scatter(
        **picture.coordinates(which),
        name=kind,
        legendrank=list(KIND_COLOURS).index(kind),
        text=picture.written[which].tolist() if picture.few else None,
        hovertext=picture.labels[which].tolist(),
        customdata=which.astype(np.int32),
        mode="markers+text" if picture.few else "markers",
        textposition=places[which].tolist() if picture.few else None,
        **picture.font,
        marker=_marker(kind, picture.theme, picture.few, picture.solid),
        hovertemplate=[f"{said}<br>{picture.notes[i]}{end}" for i in which]
        if picture.notes
        else said + end,
    )


def _letters_of_kind(picture: _Points, kind: str, which: npt.NDArray[np.int64]) -> list[Any]:
    """The points in 3-D, with a letter as the mark of each point: the legend's entry, the marks,
    and the labels next to them.
    """
    at = picture.coordinates(which)
    group = {"legendgroup": kind}
    marker = _marker(kind, picture.theme, picture.few, picture.solid)
    nowhere = {name: [None] for name in at}
    rank = list(KIND_COLOURS).index(kind)
    entry = go.Scatter3d(
        **nowhere, **group, name=kind, legendrank=rank, mode="markers", marker=marker
    )
    marks = go.Scatter3d(
        **at,
        **group,
        showlegend=False,
        name=kind,
        mode="text",
        text=[SOLID_LETTERS[KIND_SHAPES[kind]]] * len(which),
        textposition="middle center",
        textfont={
            "family": "sans-serif",
            "size": 18 if picture.few else 10,
            "color": KIND_COLOURS[kind],
        },
        hovertext=picture.labels[which].tolist(),
        customdata=which.astype(np.int32),
        hovertemplate=f"<b>%{{hovertext}}</b><br>{kind}<extra></extra>",
    )
    look = {
        "showlegend": False,
        "mode": "text",
        "textposition": "top center",
        "hoverinfo": "skip",
    } | picture.font
    labels = go.Scatter3d(**at, **group, **look, text=picture.written[which].tolist())
    return [entry, marks, *([labels] if picture.few else [])]


def _ring(
    picture: _Points, chosen: int, neighbours: Sequence[int], places: npt.NDArray[np.object_]
) -> Any:
    """A ring around the chosen point; where points have no labels, smaller ones with labels around
    its neighbours too.
    """
    marked = np.array([chosen] if picture.few else [chosen, *neighbours])
    large, small = (12, 4) if picture.solid else (20, 8)
    return picture.scatter(
        **picture.coordinates(marked),
        text=picture.written[marked].tolist(),
        mode="markers" if picture.few else "markers+text",
        textposition="top center" if picture.solid else places[marked].tolist(),
        **picture.font,
        marker={
            "symbol": "circle-open",
            "size": [large if i == chosen else small for i in marked],
            "color": picture.theme.text,
            "line": {"width": 2, "color": picture.theme.text},
        },
        hoverinfo="skip",
        showlegend=False,
    )


def _trail(trail: LabelledArray, scatter: type[Any]) -> Any:
    """The earlier places of a point, as a line with a dot for each step; the first and the last
    have labels.
    """
    times = trail.axes[0].labels
    return scatter(
        **dict(zip("xyz", trail.values.astype(np.float32).T, strict=False)),
        mode="lines+markers+text",
        line={"color": STREAM, "width": 3},
        marker={"color": STREAM, "size": 2 if scatter is go.Scatter3d else 5},
        text=[time if place in (0, len(times) - 1) else "" for place, time in enumerate(times)],
        textposition="bottom center",
        hovertext=list(times),
        hovertemplate="<b>%{hovertext}</b><extra></extra>",
        name="trail",
        showlegend=False,
    )


def _marker(kind: str, theme: Theme, few: bool, solid: bool) -> dict[str, Any]:
    """The look of a point: colour and shape say its kind, small and pale where there are many."""
    shape = KIND_SHAPES[kind]
    # in the plane, and in space
    large = 5 * SOLID_SIZES.get(shape, 1) if solid else 8
    small = 2 if solid else 4
    return {
        "color": KIND_COLOURS[kind],
        "opacity": 1 if few else 0.6,
        "symbol": shape,
        "size": large if few else small,
        "line": {
            "width": 1,
            "color": KIND_COLOURS[kind] if shape.endswith("open") else theme.background,
        },
    }


def _layout(
    theme: Theme, axes: Sequence[str], ends: Sequence[tuple[float, float]], picture: _Points
) -> dict[str, Any]:
    look: dict[str, Any] = {"showticklabels": False, "zeroline": False}
    titles = list(axes) if axes else [""] * 3
    ranges: list[dict[str, Any]] = [{"range": list(pair)} for pair in ends] or [{}] * 3
    if picture.solid or not picture.few:
        small = {"itemsizing": "constant"}
    else:
        small = {}
    layout = {"margin": {"l": 4, "r": 4, "t": 4, "b": 4}, "legend": {"font": {"size": 13}} | small}
    if picture.solid:
        look |= {
            "color": theme.text,
            "gridcolor": theme.faint,
            "showbackground": False,
            "showspikes": False,
        }
        scene: dict[str, Any] = {
            f"{name}axis": look | {"title": {"text": title, "font": {"size": 12}}} | between
            for name, title, between in zip("xyz", titles, ranges, strict=True)
        }
        camera = {"eye": {"x": 1.2, "y": 1.2, "z": 0.7}, "center": {"x": 0, "y": 0, "z": -0.15}}
        return layout | {"scene": scene | {"aspectmode": "data", "camera": camera}}
    across, up = ({"title": {"text": title, "font": {"size": 14}}} for title in titles[:2])
    # One unit is as long across as along, else the picture would show distances that are not there.
    return layout | {
        "dragmode": "pan",
        "xaxis": look | across | ranges[0],
        "yaxis": look | up | {"scaleanchor": "x"} | ranges[1],
    }


def neighbour_bars(
    similarity: LabelledArray, kinds: Sequence[str], theme: Theme, *, height: int
) -> go.Figure:
    """Cosines [token] on the fixed scale 0 … 1 (-1 … 1 where one is negative), the nearest at the
    top.
    """
    labels = [plain_label(label) for label in similarity.axes[0].labels]
    values = similarity.values.astype(np.float32)
    bars = go.Bar(
        x=values,
        y=list(range(len(labels))),
        orientation="h",
        marker={"color": [KIND_COLOURS[kind] for kind in kinds]},
        text=[f"{value:.2f}" for value in values],
        textposition="auto",
        outsidetextfont={"size": 13},
        hovertext=[
            f"<b>{label}</b><br>{kind}<br>{value:.3f}"
            for label, kind, value in zip(labels, kinds, values, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    lowest = -1 if (values < 0).any() else 0
    return themed_figure(
        theme,
        bars,
        height=height,
        margin={"l": 4, "r": 8, "t": 4, "b": 4},
        bargap=0.25,
        dragmode=False,
        xaxis={
            "range": [lowest, 1],
            "tickvals": [-1, 0, 1],
            "title": {"text": similarity.unit, "standoff": 4},
        },
        yaxis=rows(labels) | {"tickfont": MONOSPACE | {"size": 14}},
    )
