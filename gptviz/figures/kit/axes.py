"""Axes: of numbers and of tokens, which of many labels are shown and how, and where a logarithmic
axis has its ticks.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from gptviz.figures.kit.theme import Theme, plain_label, themed_figure
from gptviz.labelled_array import Axis

# Room for ticks and titles is fixed and not measured, so that a figure keeps its place when it is
# drawn again.
MARGIN = {"l": 66, "r": 20, "t": 12, "b": 48}

# Up to this number, single characters all fit on an axis, in one row or in two staggered rows, on
# the 230 pixels that a picture has on a phone: a character of 12 pixels is 11 high, and in two rows
# each has twice the distance. With more tokens, every second or third one has its label.
MOST_IN_A_ROW = 20
MOST_STAGGERED = 40
MOST_THINNED = 64
# The letters of a token on an axis: names of more would take more room than the picture.
LONGEST_LABEL = 8

MONOSPACE = {"family": "monospace"}


def axis(name: str) -> dict[str, Any]:
    """The look of an axis of numbers called `name`, which are written as they are: 0.5 is no 1."""
    return {"title": {"text": name, "standoff": 14, "font": {"size": 13}}, "tickformat": "~f"}


def two_axes(
    theme: Theme, across: dict[str, Any], up: dict[str, Any], *, height: int, **layout: Any
) -> go.Figure:
    """An empty figure between these two axes, with room for their ticks and titles and without a
    legend.
    """
    return themed_figure(
        theme, height=height, showlegend=False, margin=MARGIN, xaxis=across, yaxis=up, **layout
    )


def span(count: int, *, down: bool = False) -> dict[str, Any]:
    """An axis of `count` cells or rows, numbered from 0, that stays as it is; `down` has the first
    at the top.
    """
    return {"range": [count - 0.5, -0.5] if down else [-0.5, count - 0.5], "fixedrange": True}


def rows(names: Sequence[str]) -> dict[str, Any]:
    """The axis of rows with these names, the first at the top."""
    return {"tickvals": list(range(len(names))), "ticktext": list(names)} | span(
        len(names), down=True
    )


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names as categories, which must differ: one that came before gets invisible characters at
    its end.
    """
    return [name + "\u200b" * names[:place].count(name) for place, name in enumerate(names)]


def labelled_places(count: int, most: int, first: int = 0) -> range:
    """The places from `first` to before `count` that have a label: all, or at most `most` at equal
    distances.
    """
    return range(first, count, max(1, math.ceil((count - first) / most)))


def token_names(axis: Axis) -> list[str]:
    """One name per index: its position, which keeps equal tokens apart, and its token; special ones
    are short on an axis.
    """
    if all_fit(axis):
        labels = axis.labels
    else:
        labels = tuple(map(short_label, axis.labels))
    return [f"{index} {plain_label(label, LONGEST_LABEL)}" for index, label in enumerate(labels)]


def token_room(axis: Axis) -> int:
    """Pixels next to the picture for the labels and the name of an axis. Plotly could measure this,
    but would then draw twice.
    """
    if all_fit(axis):
        return 54
    letters = (
        len(f"{index} ") + _cells(short_label(label)[:LONGEST_LABEL])
        for index, label in enumerate(axis.labels)
    )
    return 48 + math.ceil(7.4 * max(letters))


def token_axis(axis: Axis, down: bool = False) -> dict[str, Any]:
    """Every token where single characters fit; else plotly's choice, which never overlaps and shows
    more on zooming in.
    """
    title = {"text": axis.name, "standoff": 14}
    look = {
        "title": title,
        "ticks": "",
        "automargin": False,
        "type": "category",
        "tickfont": MONOSPACE,
    }
    if not all_fit(axis):
        return look | {"tickangle": 0 if down else -90}
    places = labelled_places(len(axis.labels), MOST_STAGGERED)
    labels = [plain_label(short_label(axis.labels[place]), LONGEST_LABEL) for place in places]
    if len(axis.labels) > MOST_IN_A_ROW:
        apart = "{}\u00a0\u00a0" if down else "<br>{}"
        labels = [apart.format(label) if index % 2 else label for index, label in enumerate(labels)]
    return look | {"tickmode": "array", "tickvals": [*places], "ticktext": labels, "tickangle": 0}


def _cells(label: str) -> int:
    """How many characters wide a label is in a monospaced font."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in label)


def all_fit(axis: Axis) -> bool:
    """Whether tokens of the axis can be shown by themselves: they are single characters or special
    tokens, and not too many.
    """
    return len(axis.labels) <= MOST_THINNED and all(
        _cells(short_label(label)) <= 1 for label in axis.labels
    )


# From this many powers of ten on, an axis is marked only at them; beyond the second number some are
# left out.
FEW_POWERS = 2.0
MANY_POWERS = 6.0
# A shorter axis has ticks at 1, 2 and 5 times a power of ten; one with fewer of them than this at
# equal distances.
FEWEST = 3


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, 0 < `low` < `high`: at least two, and at most eight."""
    powers = math.log10(high / low)
    step = max(1, math.ceil(powers / MANY_POWERS))
    digits = (1,) if powers >= FEW_POWERS else (1, 2, 5)
    first = math.floor(math.log10(low))
    every = (
        digit * 10.0**power
        for power in range(first, math.ceil(math.log10(high)) + 1, step)
        for digit in digits
    )
    ticks = [tick for tick in every if low <= tick <= high]
    if powers >= FEW_POWERS or len(ticks) >= FEWEST:
        return ticks
    return _even_ticks(low, high)


def _even_ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    step = 10.0 ** math.floor(math.log10((high - low) / 3))
    step *= next(times for times in (5, 2, 1) if (high - low) / (times * step) >= 3 or times == 1)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


# as `gptviz.text.tokenizers.special_tokens` calls them
START = "⟨start⟩"
END = "⟨end⟩"
BRIEF = {START: START[0], END: END[-1]}
MEANING = {START: f"{BRIEF[START]} is the start", END: f"{BRIEF[END]} is the end"}


def short_label(label: str) -> str:
    """The label of a token; one character for the start and the end token."""
    return BRIEF.get(label, label)


def legend(labels: Iterable[str]) -> str:
    """The meaning of the characters for the special tokens among `labels`; empty if there are
    none.
    """
    present = set(labels)
    return ", ".join(meaning for token, meaning in MEANING.items() if token in present)
