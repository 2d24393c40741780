"""Tokens as chips in flowing text, tinted by probability; each opens a card that says what else was likely there.

Hovering, walking and opening a card happen in the browser; Python hears of a choice alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import streamlit as st

from gptviz.components.kit import register
from gptviz.figures.theme import OUTPUT

_mount = register(Path(__file__).parent)


@dataclass(frozen=True)
class Token:
    """A chip.

    Attributes:
        label: the visible form of the token; shown as it is, never as HTML or Markdown.
        probability: what tints the chip; None leaves it neutral (a prompt).
        alternatives: labels and probabilities of what was likely at this place, the likeliest first.
        note: a line for the card.
        mark: underline the chip.
        faint: show it as something that is out of the question.
    """

    label: str
    probability: float | None = None
    alternatives: tuple[tuple[str, float], ...] = ()
    note: str = ""
    mark: bool = False
    faint: bool = False

    @cached_property
    def packed(self) -> str:
        """The token as it travels to the browser, as JSON, made once however often it is shown."""
        alternatives = [[label, _brief(probability)] for label, probability in self.alternatives]
        return json.dumps([self.label, _brief(self.probability), alternatives, self.note, int(self.mark), int(self.faint)])


def _brief(probability: float | None) -> float | None:
    """Four significant digits, one more than is shown; JSON has no NaN."""
    return None if probability is None or not math.isfinite(probability) else float(f"{probability:.4g}")


def token_strip(
    tokens: Sequence[Token],
    *,
    key: str,
    colour: str = OUTPUT,
    selected: int | None = None,
    on_pick: Callable[[int], None] | None = None,
    on_alternative: Callable[[int, int], None] | None = None,
    label: str = "Tokens",
    legend: str = "probability",
    height: int | None = None,
    bars: bool = False,
    spaced: bool = False,
) -> None:
    """Show `tokens` as chips.

    Args:
        key: tells the strips of one page apart.
        colour: the role's colour that probabilities are tinted with.
        selected: the chip to outline and bring into view.
        on_pick: called with the index of a chip that was clicked.
        on_alternative: called with the indices of a chip and of the alternative that was clicked in its card.
        label: the name of the strip for who cannot see it.
        legend: what a probability is, beside the scale; empty for no legend.
        height: pixels; the strip then scrolls and stays at its end while it grows. None: as high as its text.
        bars: one token a line, with its probability as a bar and a number.
        spaced: a gap between tokens, for vocabularies whose text has one there.
    """
    events: dict[str, Any] = {}
    if on_pick is not None:
        events["on_pick_change"] = lambda: _answer(key, "pick", lambda event: on_pick(event[0]))
    if on_alternative is not None:
        events["on_alternative_change"] = lambda: _answer(key, "alternative", lambda event: on_alternative(event[0], event[1]))
    settings = {
        "generation": _generation(key, tuple(tokens)),
        "colour": colour,
        "selected": selected,
        "picks": on_pick is not None,
        "takes": on_alternative is not None,
        "label": label,
        "legend": legend,
        "height": height,
        "bars": bars,
        "spaced": spaced,
    }
    _mount(key=key, data=payload(tokens, settings), **events)


def payload(tokens: Sequence[Token], settings: Mapping[str, Any]) -> bytes:
    """What the browser gets, as JSON. In bytes: a dictionary Streamlit would pack anew, twice, at every tick."""
    return f'{{"tokens": [{",".join(token.packed for token in tokens)}], "settings": {json.dumps(settings)}}}'.encode("ascii")


def _shown(key: str) -> str:
    return f"{key} shown"


def _generation(key: str, tokens: tuple[Token, ...]) -> int:
    """The number of the text on screen: a new one unless it is the last one, gone on with.

    A click carries the number of the text it was made on, so that one on a text that is gone is not taken for another.
    """
    generation, before = st.session_state.get(_shown(key), (0, ()))
    if tokens[: len(before)] != before:
        generation += 1
    st.session_state[_shown(key)] = (generation, tokens)
    return int(generation)


def _answer(key: str, name: str, act: Callable[[list[int]], None]) -> None:
    """Act on the event `name` of the strip `key`, unless it is none of the text now shown."""
    event = clicked(st.session_state[key].get(name), *st.session_state[_shown(key)])
    if event is not None:
        act(event)


def clicked(value: object, generation: int, tokens: Sequence[Token]) -> list[int] | None:
    """The indices in an event from the browser, None if it is stale or not what this component sends.

    An event is JSON: {"at": [chip] or [chip, alternative], "generation": number of the text it was made on}.
    """
    fields = json.loads(value) if isinstance(value, str) else value
    if not isinstance(fields, dict) or fields.get("generation") != generation:
        return None
    at = fields.get("at")
    if not isinstance(at, list) or not 1 <= len(at) <= 2 or not all(type(index) is int for index in at):
        return None
    chip, *alternative = at
    if not 0 <= chip < len(tokens) or any(not 0 <= index < len(tokens[chip].alternatives) for index in alternative):
        return None
    return at
