"""A text as chips, and the control `position`: the token after which the model's guess is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from gptviz.components.token_strip import Token, token_strip
from gptviz.settings.address_values import Values, whole_number
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.widgets import addresses, controls
from gptviz.ui.widgets.headings import say_chosen

from .guesses import guesses

HEIGHT = 64
# The value in the address for the guess after the last token.
END = {"position": "-1"}
_SLIDER = "position slider"


@st.cache_resource(max_entries=8, show_spinner=False)
def _chips(key: ModelKey, ids: tuple[int, ...]) -> tuple[Token, ...]:
    tokenizer = language_model(key).tokenizer
    seen = guesses(key, ids).tokens

    def chip(place: int) -> Token:
        label = tokenizer.label(ids[place])
        probability = float(seen.probability[place])
        if math.isnan(probability):
            return Token(label, note="the first token: there is nothing to guess it from")
        likely = zip(seen.likely[place], seen.likely_probability[place], strict=True)
        return Token(
            label, probability, tuple((tokenizer.label(int(i)), float(p)) for i, p in likely)
        )

    return tuple(chip(place) for place in range(len(ids)))


def position(last: int, default: int | None = None) -> int:
    """The control `position`, from 0 to `last`: the token of the text after which the next one is
    guessed, by default the last one, or `default`.

    Unlike other controls it is not bound to the link: its range depends on the text, and with a new
    range Streamlit would take the old value of the link, even if a new text asks for another.
    """
    usual = last if default is None else default
    values = whole_number(0, last)
    named = {"": usual, END["position"]: last}
    chosen = controls.linked_choice(
        "position",
        lambda asked: named[asked] if asked in named else int(asked),
        usual,
        values=Values(values.words, lambda asked: asked in named or values.has(asked)),
        instead=str(usual),
    )
    go_to(chosen if chosen != usual else None)
    st.session_state[_SLIDER] = chosen
    say_chosen("Position", str(chosen))
    if last:
        st.slider(
            "Position",
            0,
            last,
            key=_SLIDER,
            on_change=lambda: go_to(st.session_state[_SLIDER]),
            help=(
                "Shows the guess that the model makes after this token. Positions are counted "
                "from 0. You can also click a "
                "token above."
            ),
        )
    return chosen


def go_to(position: int | None) -> None:
    """Put `position` into the link; None, for the last token, removes it."""
    addresses.write("position", None if position is None else str(position))


def plain_strip(
    labels: Sequence[str | Token], position: int, *, label: str, spaced: bool, legend: str = ""
) -> None:
    """Tokens as chips, without probabilities where they are only labels; a click sets
    `position`.
    """
    token_strip(
        [each if isinstance(each, Token) else Token(each) for each in labels],
        key="tokens strip",
        selected=position,
        on_pick=go_to,
        label=label,
        legend=legend,
        height=HEIGHT,
        spaced=spaced,
    )


def strip(subject: Subject, position: int) -> None:
    """The text as chips, tinted by how likely the model found each; a click sets `position`."""
    label = "The tokens of the prompt; choose one to see the guess made after it"
    legend = "how likely each was; outlined: the guess comes after it"
    chips = _chips(subject.key, subject.seen)
    plain_strip(chips, position, label=label, legend=legend, spaced=subject.lm.tokenizer.is_spaced)
