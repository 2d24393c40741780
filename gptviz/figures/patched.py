"""What patches restore, as a heatmap: a row for each block, a column for each position or head, one scale for all such maps."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures.special_tokens import short_label
from gptviz.figures.theme import Theme, base, diverging, plain
from gptviz.labelled_array import Axis, LabelledArray

# From a share of −1 (as far away again as the clean answer is) to 1 (all of it).
LIMIT = 1.0
# The most cells that can be clicked: each is a mark of its own in the picture.
MOST_CLICKED = 2_500
# Labels on an axis, where they are single characters, and where they are longer.
MOST_CHARACTERS, MOST_WORDS = 24, 14
LONGEST_LABEL = 16  # "10 (heads 30–32)" is a key head with the heads that it serves
PITCH, LEAST, MOST = 24, 84, 420  # pixels: of a row, of what is above all rows, and of all rows
# Rows that stay free above the first one for the marks of columns, and how far above it a mark stands.
FREE, MARKED_AT = 0.6, 0.3


def heatmap(
    shares: LabelledArray,
    theme: Theme,
    *,
    title: str,
    words: Sequence[Sequence[str]],
    first: int = 0,
    marked: Sequence[int] = (),
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """`shares` [block, place] from −100 % to 100 %, block 0 at the top.

    Args:
        shares: what each patch restores.
        theme: of the page.
        title: what was patched.
        words: what is shown where the pointer is, [block][place], in short lines.
        first: the first column that is shown.
        marked: columns to point out, those in which the prompts differ.
        chosen: a cell to frame.
    """
    blocks, places = shares.axes
    rows, columns = shares.values.shape
    x, y = list(range(first, columns)), list(range(rows))
    escaped = [[html.escape(text).replace("\n", "<br>") for text in row] for row in words]
    drawn = go.Heatmap(
        z=np.ascontiguousarray(shares.values[:, first:], np.float32),
        x=x,
        y=y,
        zmin=-LIMIT,
        zmax=LIMIT,
        colorscale=diverging(theme),
        customdata=[line[first:] for line in escaped],
        hovertemplate="%{customdata}<extra></extra>",
        colorbar=_legend(theme),
        xgap=1 if len(x) <= 64 else 0,
        ygap=1,
    )
    above = FREE if marked else 0.0
    below = _below(places)
    figure = go.Figure([drawn], base(theme, height=LEAST + below + round(min(MOST, PITCH * (rows + above)))))
    if rows * len(x) <= MOST_CLICKED:
        _add_clicked(figure, escaped, range(first, columns))
    if marked:
        _add_marks(figure, marked, theme)
    if chosen is not None:
        _add_frame(figure, chosen, theme)
    look = {"showgrid": False, "zeroline": False, "fixedrange": True}
    figure.update_layout(
        margin={"l": 44, "r": 8, "t": 52, "b": below},
        dragmode=False,
        title=_title(title),
        modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)", "color": theme.text},
        xaxis=look | _ticks(places, theme, first) | {"range": [first - 0.5, columns - 0.5]},
        yaxis=look | _ticks(blocks, theme) | {"range": [rows - 0.5, -0.5 - above]},
    )
    return figure


def _add_clicked(figure: go.Figure, words: Sequence[Sequence[str]], columns: range) -> None:
    """A mark that cannot be seen on every cell: cells of a heatmap do not answer clicks, marks do."""
    cells = [(row, column) for row in range(len(words)) for column in columns]
    figure.add_scatter(
        x=[column for _, column in cells],
        y=[row for row, _ in cells],
        mode="markers",
        marker={"size": 14, "symbol": "square", "opacity": 0},
        customdata=[[words[row][column], row, column] for row, column in cells],
        hovertemplate="%{customdata[0]}<extra></extra>",
        showlegend=False,
    )


def _add_marks(figure: go.Figure, columns: Sequence[int], theme: Theme) -> None:
    """A triangle above each of the columns in which the prompts differ."""
    figure.add_scatter(
        x=list(columns),
        y=[-0.5 - MARKED_AT] * len(columns),
        mode="markers",
        marker={"symbol": "triangle-down", "size": 9, "color": theme.text},
        hovertemplate="the prompts differ here<extra></extra>",
        cliponaxis=False,
        showlegend=False,
    )


def _add_frame(figure: go.Figure, cell: tuple[int, int], theme: Theme) -> None:
    """A frame around a cell."""
    row, column = cell
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    figure.add_shape(type="rect", **corners, line={"color": theme.text, "width": 2}, fillcolor="rgba(0,0,0,0)")


def _title(text: str) -> dict[str, object]:
    place = {"x": 0, "xref": "paper", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 4}}
    return {"text": text, "font": {"size": 14}, **place}


def _is_long(axis: Axis) -> bool:
    return max(map(len, axis.labels)) > 2


def _below(axis: Axis) -> int:
    """Pixels below the cells for labels, which lean where they are long, and for the name of the axis."""
    return 24 + round(6.25 * min(LONGEST_LABEL, max(map(len, axis.labels)))) if _is_long(axis) else 56


def _ticks(axis: Axis, theme: Theme, first: int = 0) -> dict[str, object]:
    """The labels of an axis, so many of them that they do not overlap."""
    count = len(axis.labels) - first
    step = -(-count // (MOST_WORDS if _is_long(axis) else MOST_CHARACTERS))
    named = range(first, first + count, step)
    return {
        "title": {"text": axis.name, "standoff": 12, "font": {"size": 12, "color": theme.text}},
        "tickvals": list(named),
        "ticktext": [plain(short_label(axis.labels[place]), LONGEST_LABEL) for place in named],
        "tickfont": {"size": 12, "family": "monospace", "color": theme.text},
        "tickangle": -60 if _is_long(axis) else 0,
    }


def _legend(theme: Theme) -> dict[str, object]:
    return {
        "tickvals": [-LIMIT, 0, LIMIT],
        "ticktext": ["−100 %", "0", "100 %"],
        "tickangle": 0,
        "tickfont": {"size": 12},
        "orientation": "h",
        "thickness": 8,
        "len": 0.9,
        "outlinewidth": 1,
        "outlinecolor": theme.faint,
        "x": 0,
        "xanchor": "left",
        "xpad": 0,
        "yref": "container",
        "y": 1,
        "yanchor": "top",
        "ypad": 26,
    }
