"""The visual language of every figure: one colour per role, the same scales, light and dark.

Colours are Tol's "vibrant" set, made for colour-blind readers.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

QUERY = "#0077BB"
KEY = "#EE7733"
VALUE = "#009988"
PATTERN = "#EE3377"
MLP = "#33BBEE"
OUTPUT = "#CC3311"
STREAM = "#8A8F98"
# What is learned, in contrast to what is computed from it.
WEIGHT = "#997700"

# One colour and one marker per kind of token (`gptviz.text.TOKEN_KINDS`): never colour alone.
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

    background: str
    text: str
    faint: str


LIGHT = Theme(background="#FFFFFF", text="#1F2933", faint="#D5D9DE")
DARK = Theme(background="#10151B", text="#E6E9ED", faint="#3A4450")


def blend(colour: str, ground: str, share: float) -> str:
    """`share` of `colour` over `ground`, both "#RRGGBB"."""
    pairs = zip((int(colour[i : i + 2], 16) for i in (1, 3, 5)), (int(ground[i : i + 2], 16) for i in (1, 3, 5)), strict=True)
    return "#" + "".join(f"{round(share * c + (1 - share) * g):02X}" for c, g in pairs)


def sequential(colour: str, theme: Theme) -> list[list[Any]]:
    """A scale for 0 … 1: from just off the background, so that zero still differs from a blank cell, to `colour`,
    and on to a deeper (in the dark: a lighter) shade, so that the high end stays readable.
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


def plain(label: str, longest: int = 24) -> str:
    """A token's label as plotly shows it unchanged: no markup, at most `longest` long, its direction of writing isolated."""
    short = label if len(label) <= longest else label[: longest - 1] + "…"
    escaped = html.escape(short, quote=False)
    return escaped if escaped.isascii() else f"\u2068{escaped}\u2069"


def base(theme: Theme, *, height: int, **layout: Any) -> go.Layout:
    """The layout all figures share: transparent, quiet, with room for labels only."""
    return go.Layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": theme.text, "size": 13},
        hoverlabel={"font": {"family": "monospace", "color": theme.text}, "bgcolor": theme.background},
        **layout,
    )
