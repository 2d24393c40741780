"""The visual language of every figure: one colour per role, the same scales, light and dark.

Colours are Tol's "vibrant" set, made for colour-blind readers.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import plotly.graph_objects as go

QUERY = "#0077BB"
KEY = "#EE7733"
VALUE = "#009988"
PATTERN = "#EE3377"
MLP = "#33BBEE"
OUTPUT = "#CC3311"
STREAM = "#8A8F98"
# Learned weights, in contrast to the values computed from them.
WEIGHT = "#997700"

# One colour and one marker per kind of token (`gptviz.text.TOKEN_KINDS`): never only a colour.
KIND_COLOURS = {
    "vowel": "#EE3377",
    "consonant": "#0077BB",
    "capital": "#009988",
    "word": "#33BBEE",
    "digit": "#EE7733",
    "punctuation": "#CC3311",
    "space": "#8A8F98",
    "other": "#AA8800",
}


@dataclass(frozen=True)
class Theme:
    """The page a figure stands on."""

    background: str  #: its own colour
    text: str  #: of type, and of lines that are read as type is
    faint: str  #: of grids
    tick: str  #: of the marks of an axis at heat maps


LIGHT = Theme(background="#FFFFFF", text="#0F1720", faint="#D5D9DE", tick="#E6EAF1")
DARK = Theme(background="#10151B", text="#E6E9ED", faint="#3A4450", tick="#31333F")
# The typeface of the app, which Streamlit brings along.
FONT = '"Source Sans", sans-serif'


def blend(colour: str, ground: str, share: float) -> str:
    """`share` of `colour` over `ground`, both "#RRGGBB"."""
    pairs = zip(
        (int(colour[i : i + 2], 16) for i in (1, 3, 5)),
        (int(ground[i : i + 2], 16) for i in (1, 3, 5)),
        strict=True,
    )
    return "#" + "".join(f"{round(share * c + (1 - share) * g):02X}" for c, g in pairs)


def luminance(colour: Sequence[float]) -> float:
    """How light a colour of red, green and blue from 0 to 1 is: from 0, black, to 1, white (WCAG
    2.2, relative luminance).
    """
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ink(ground: Sequence[float]) -> str:
    """Black or white, whichever is read better on a colour of red, green and blue from 0 to 1: its
    contrast is 4.5 at least.
    """
    light = luminance(ground) + 0.05
    if light / 0.05 > 1.05 / light:
        return "#000000"
    return "#FFFFFF"


def sequential(colour: str, theme: Theme) -> list[list[Any]]:
    """A scale for 0 … 1: from just off the background, so that zero still differs from a blank
    cell, to `colour`, and on to a deeper (in the dark: a lighter) shade, so that the high end stays
    readable.
    """
    end = "#000000" if theme == LIGHT else "#FFFFFF"
    return [
        [0.0, blend(colour, theme.background, 0.07)],
        [0.65, colour],
        [1.0, blend(colour, end, 0.6)],
    ]


def diverging(theme: Theme) -> list[list[Any]]:
    """A scale symmetric about zero, which is the background: orange below, blue above."""
    end = "#000000" if theme == LIGHT else "#FFFFFF"
    return [
        [0.0, blend(KEY, end, 0.6)],
        [0.2, KEY],
        [0.5, theme.background],
        [0.8, QUERY],
        [1.0, blend(QUERY, end, 0.6)],
    ]


def plain_label(label: str, longest: int = 24) -> str:
    """A token's label as plotly shows it unchanged: no markup, at most `longest` long, its
    direction of writing isolated.
    """
    escaped = html.escape(
        label if len(label) <= longest else label[: longest - 1] + "…", quote=False
    )
    if escaped.isascii():
        return escaped
    return f"\u2068{escaped}\u2069"


def themed_figure(theme: Theme, *traces: Any, height: int, **layout: Any) -> go.Figure:
    """The figure of these traces, with the layout that all figures share and the one that is given.
    Without `dragmode` its axes stay as they are, too.

    All of it is given at once: plotly takes twice as long to change the layout of a figure as to
    make one with it.
    """
    if layout.get("dragmode") is False:
        layout |= {name: {"fixedrange": True} | layout.get(name, {}) for name in ("xaxis", "yaxis")}
    return go.Figure(list(traces), {"template": _template(theme), "height": height, **layout})


@cache
def _template(theme: Theme) -> dict[str, Any]:
    """The layout of all figures: transparent, with room for labels only; type in the colour of
    text; a legend above.
    """
    clear = "rgba(0,0,0,0)"
    small = {"size": 12, "color": theme.text}
    axis = {
        "tickfont": small,
        "tickcolor": theme.tick,
        "gridcolor": theme.faint,
        "showgrid": False,
        "zeroline": False,
        "zerolinecolor": theme.text,
        "zerolinewidth": 1,
        "automargin": True,
    }
    bar = {
        "thickness": 10,
        "outlinewidth": 0,
        "outlinecolor": theme.faint,
        "tickfont": small,
        "title": {"font": small},
    }
    layout = {
        "paper_bgcolor": clear,
        "plot_bgcolor": clear,
        "margin": {"l": 8, "r": 8, "t": 28, "b": 8, "pad": 8},
        "font": {"family": FONT, "color": theme.text, "size": 13},
        "title": {"x": 0, "xanchor": "left", "pad": {"l": 4}, "font": {"weight": "bold"}},
        "hoverlabel": {
            "font": {"family": "monospace"} | small,
            "bgcolor": theme.background,
            "bordercolor": theme.faint,
        },
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1,
            "yanchor": "bottom",
            "valign": "top",
            "font": small,
        },
        "annotationdefaults": {"showarrow": False},
        "xaxis": axis | {"title": {"standoff": 20, "font": small}},
        "yaxis": axis | {"title": {"standoff": 24, "font": small}},
    }
    traces = {
        # beside a bar numbers keep their size, however low the bar is
        "bar": [{"outsidetextfont": small, "constraintext": "inside"}],
        "heatmap": [{"hoverongaps": False, "colorbar": bar}],
        "scatter": [{"marker": {"line": {"width": 0}, "colorbar": bar}}],
    }
    return {"layout": layout, "data": traces}


# The sizes of a figure in pixels, by the names plotly gives them. A size that is a list has one
# value per point.
PIXELS = {
    *(
        "height",
        "size",
        "minsize",
        "width",
        "thickness",
        "standoff",
        "ticklen",
        "tickwidth",
        "xshift",
        "yshift",
        "ax",
        "ay",
    ),
    *("l", "r", "t", "b", "pad", "xpad", "ypad", "borderpad"),
    *("zerolinewidth", "gridwidth", "borderwidth", "outlinewidth", "arrowwidth"),
}
# Below these the names above mean something else: places along an axis, shares of the figure.
OTHER_UNITS = {
    "x",
    "y",
    "z",
    "z0",
    "domain",
    "xbins",
    "ybins",
    "customdata",
    "text",
    "colorscale",
    "aspectratio",
}
_SIZE_IN_TEXT = re.compile(r"(font-size: )([\d.]+)(?=px)")


def enlarge_figure(figure: go.Figure, scale: float) -> go.Figure:
    """The figure with all that it measures in pixels `scale` times as large; its width is that of
    its place on the page.
    """
    if scale == 1:
        return figure
    made = figure.to_plotly_json()
    bars = {
        i for i, trace in enumerate(figure.data) if trace.type in ("bar", "histogram", "heatmap")
    }
    for i, trace in enumerate(made["data"]):
        # The width of a bar, as the size of a bin, is measured along its axis.
        width = trace.pop("width", None) if i in bars else None
        _enlarge(trace, scale)
        if width is not None:
            trace["width"] = width
    _enlarge(made["layout"], scale)
    return go.Figure(made["data"], made["layout"])


def _enlarge(part: Any, scale: float) -> None:
    """Make all that `part` of a figure measures in pixels larger, in place."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "text" and isinstance(value, str):
                part[name] = _SIZE_IN_TEXT.sub(
                    lambda found: f"{found[1]}{scale * float(found[2]):g}", value
                )
            elif name in PIXELS and isinstance(value, int | float) and not isinstance(value, bool):
                part[name] = scale * value
            elif name in PIXELS and (sizes := _numbers(value)) is not None:
                part[name] = [scale * float(size) for size in sizes]
            elif name not in OTHER_UNITS:
                _enlarge(value, scale)
    elif isinstance(part, list | tuple):
        for one in part:
            _enlarge(one, scale)


def _numbers(value: Any) -> Any:
    """Numbers that stand in a list, or as bytes, which plotly makes of an array; None for anything
    else.
    """
    if isinstance(value, dict) and "bdata" in value:
        return np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    if isinstance(value, list | tuple):
        return value
    return None
