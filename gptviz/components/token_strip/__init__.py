"""Tokens as chips in flowing text, tinted by probability; each opens a card with other tokens that
were likely there.

Hovering, moving with the keyboard and opening a card happen in the browser; Python is told only
which token was chosen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import streamlit as st

from gptviz.components.kit import pack, register
from gptviz.components.kit.events import read_event
from gptviz.figures.kit.theme import OUTPUT

_mount = register(Path(__file__).parent)


@dataclass(frozen=True)
class Token:
    """A chip."""

    label: str  #: the visible form of the token; shown as it is, never as HTML or Markdown
    probability: float | None = None  #: it tints the chip; None leaves it neutral (a prompt)
    #: labels and probabilities of the tokens that were likely at this place, the likeliest first
    alternatives: tuple[tuple[str, float], ...] = ()
    note: str = ""  #: a line for the card
    mark: bool = False  #: underline the chip
    faint: bool = False  #: cross it out
    kind: str = ""  #: one of the kinds that the strip is given, which say how it looks
    below: str = ""  #: a short text below it

    @cached_property
    def json_text(self) -> str:
        """The token as JSON, as it is sent to the browser; made only once, however often the token
        is shown.
        """
        alternatives = [[label, _brief(probability)] for label, probability in self.alternatives]
        look = int(self.mark), int(self.faint), self.kind, self.below
        return json.dumps([self.label, _brief(self.probability), alternatives, self.note, *look])


def _brief(probability: float | None) -> float | None:
    """Four significant digits, one more than is shown; JSON has no NaN."""
    if probability is None or not math.isfinite(probability):
        return None
    return float(f"{probability:.4g}")


def token_strip(
    tokens: Sequence[Token],
    *,
    key: str,
    colour: str = OUTPUT,
    selected: int | None = None,
    on_pick: Callable[[int], None] | None = None,
    label: str = "Tokens",
    legend: str = "probability",
    height: int | None = None,
    spaced: bool = False,
    kinds: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> None:
    """Show `tokens` as chips.

    Args:
        key: tells the strips of one page apart.
        colour: the role's colour that probabilities are tinted with.
        selected: the chip to outline and bring into view.
        on_pick: called with the index of a chip that was clicked.
        label: the name of the strip for people who cannot see it.
        legend: the words next to the scale that say what a probability is; empty for no legend.
        height: pixels on a page of usual size; the strip scrolls, and follows its end while its
            text goes on. None: the height of its text.
        spaced: a gap between tokens, for vocabularies whose text has one there.
        kinds: for each kind of token its colour and the line below it, `solid`, `dotted`, `dashed`
            or `double`; they are listed below the strip, as far as they are there.
    """
    events: dict[str, Any] = {}
    if on_pick is not None:
        events["pick"] = lambda value: _answer(value, key, on_pick)
    settings = {
        "generation": _generation(key, tuple(tokens)),
        "colour": colour,
        "selected": selected,
        "picks": on_pick is not None,
        "label": label,
        "legend": legend,
        "height": height,
        "spaced": spaced,
        "kinds": dict(kinds),
    }
    _mount(key=key, data=payload(tokens, settings), **events)


def payload(tokens: Sequence[Token], settings: Mapping[str, Any]) -> bytes:
    """The bytes that the browser gets. The tokens are one array, the bytes of a list in JSON: so
    each is packed only once.
    """
    listed = f"[{','.join(token.json_text for token in tokens)}]".encode("ascii")
    return pack(settings, tokens=np.frombuffer(listed, np.uint8))


def _show_key(key: str) -> str:
    return f"{key} shown"


def _generation(key: str, tokens: tuple[Token, ...]) -> int:
    """The number of the text on screen: a new number, unless the text continues the last one.

    A click carries the number of the text it was made on, so that a click on an earlier text is not
    mistaken for a click on this one.
    """
    generation, before = st.session_state.get(_show_key(key), (0, ()))
    if tokens[: len(before)] != before:
        generation += 1
    st.session_state[_show_key(key)] = (generation, tokens)
    return int(generation)


def _answer(value: object, key: str, act: Callable[[int], None]) -> None:
    """Act on a click in the strip `key`, unless it was made on an earlier text."""
    if (at := read_click(value, *st.session_state[_show_key(key)])) is not None:
        act(at)


def read_click(value: object, generation: int, tokens: Sequence[Token]) -> int | None:
    """The index of the chip in an event from the browser; None if it is stale or not what this
    component sends.

    An event is JSON: {"at": chip, "generation": number of the text it was made on}.
    """
    fields = read_event(value, generation=generation, at=range(len(tokens)))
    if fields is None:
        return None
    return fields["at"]
