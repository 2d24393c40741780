"""A text as chips, and the control `position`: after which of its tokens the model's guess is looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from gptviz.address_values import Values, whole
from gptviz.components.token_strip import Token, token_strip
from gptviz.ui.shell.models import ModelKey, language_model
from gptviz.ui.shell.subject import Subject
from gptviz.ui.widgets import addresses
from gptviz.ui.widgets.headings import say_chosen
from gptviz.ui.widgets.markdown import escaped

from .guesses import guesses

HEIGHT = 92
# What the address says where the guess after the last token is shown.
END = {"position": "-1"}
_SLIDER = "position slider"


@st.cache_resource(max_entries=8, show_spinner=False)
def _chips(key: ModelKey, ids: tuple[int, ...]) -> tuple[Token, ...]:
    tokenizer, seen = language_model(key).tokenizer, guesses(key, ids).tokens

    def chip(place: int) -> Token:
        label, probability = tokenizer.label(ids[place]), float(seen.probability[place])
        if math.isnan(probability):
            return Token(label, note="the first token: there is nothing to guess it from")
        likely = zip(seen.likely[place], seen.likely_probability[place], strict=True)
        return Token(label, probability, tuple((tokenizer.label(int(i)), float(p)) for i, p in likely))

    return tuple(chip(place) for place in range(len(ids)))


def position(last: int, default: int | None = None) -> int:
    """The control `position`, from 0 to `last`: after which token of the text the next one is guessed; unless there is another
    `default`, after the last.

    Not bound to the link as other controls are: its range is the text's length, and with a new range Streamlit would take
    the value of the link as it was before, whatever a new text asks for.
    """
    asked = st.query_params.get("position", "")
    values = whole(0, last)
    addresses.takes("position", Values(values.words, lambda text: text in ("", END["position"]) or values.has(text)))
    possible = values.has(asked)
    usual = last if default is None else default
    chosen = int(asked) if possible else last if asked == END["position"] else usual
    if asked not in ("", "-1") and not possible and _SLIDER not in st.session_state:
        st.warning(
            f"The link asks for position = “{escaped(asked[:80])}”, which is not available here; showing {usual}.",
            icon=":material/link_off:",
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
                "Shows the guess that the model makes after this token. Positions are counted from 0. You can also click a "
                "token above."
            ),
        )
    return chosen


def go_to(position: int | None) -> None:
    """Put `position` into the link; None, the last, leaves the link without one."""
    if position is not None:
        st.query_params["position"] = str(position)
    elif "position" in st.query_params:
        del st.query_params["position"]


def plain_strip(labels: Sequence[str], position: int, *, label: str, spaced: bool) -> None:
    """Tokens as chips without probabilities; a click sets `position`."""
    token_strip(
        [Token(each) for each in labels],
        key="tokens strip",
        selected=position,
        on_pick=go_to,
        label=label,
        legend="",
        height=HEIGHT,
        spaced=spaced,
    )


def strip(subject: Subject, position: int) -> None:
    """The text as chips, tinted by how likely the model found each; a click sets `position`."""
    token_strip(
        _chips(subject.key, subject.seen),
        key="tokens strip",
        selected=position,
        on_pick=go_to,
        label="The tokens of the prompt; choose one to see the guess made after it",
        legend="how likely the model found each token; outlined: the guess below comes after it",
        height=HEIGHT,
        spaced=subject.lm.tokenizer.is_spaced,
    )
