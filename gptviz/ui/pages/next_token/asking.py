"""“Ask the class” on the page Next token: who teaches asks what comes next, the class guesses on
its phones, and the result stands beside the model's guess.

One question is asked at a time, at one address, so that the class stays where it is while who
teaches goes on from token to token.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from gptviz.lessons.votes import Question
from gptviz.settings.address_values import ON_OR_OFF
from gptviz.ui.records.next_token import PAGE
from gptviz.ui.shell.around import present
from gptviz.ui.shell.around.class_answers import (
    AskedGuess,
    draw_guesses,
    follow,
    guess_in_class,
    guessable,
    is_in_class,
    is_shown,
    show_text,
    tally,
    teaches,
)
from gptviz.ui.shell.around.lesson import address_of
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import text_position
from gptviz.ui.widgets import addresses, controls

# In the address: whether a class is asked.
ASKS = "asks"
# The prompt says what comes next, and after that.
_HIDES_PROMPT = "<style>.st-key-one-line-subject .st-key-prompt { display: none; }</style>"

# The question that the class is asked now; empty without one.
_now: list[AskedGuess] = []


def forget() -> None:
    """Ask the class nothing any more."""
    _now.clear()


def switch() -> bool:
    """For who teaches, the control that asks the class; whether it is asked."""
    if not teaches():
        controls.linked_choice(ASKS, str, "", values=ON_OR_OFF, instead="the model's guess")
        return False
    asks = controls.switch(
        "Ask the class",
        key=ASKS,
        help="The class guesses on its phones what comes next after this position; then you show "
        "its guesses beside those of the model.",
    )
    if not asks:
        forget()
    return asks


def ask(subject: Subject, position: int) -> None:
    """Ask the class which token comes after `position`: the text so far, how many have guessed, the
    result once it is shown, and the address for the class.
    """
    lm = subject.lm
    n_gone = len(subject.encoding.ids) - len(subject.seen)
    before = lm.tokenizer.decode(subject.encoding.ids[: n_gone + position + 1])
    is_last = position + 1 == len(subject.seen)
    asked = AskedGuess(
        Question(PAGE.name, "", f"{subject.key.title}: {before}"),
        subject.key,
        before,
        subject.seen[: position + 1],
        None if is_last else guessable(subject.key).names[subject.seen[position + 1]],
    )
    _now[:] = [asked]
    if not is_last:
        st.html(_HIDES_PROMPT)
    text, address = st.columns([3, 1], gap="medium")
    with text:
        show_text(before)
        tally(asked.question, partial(draw_guesses, asked, "class"))
        if not is_last:
            st.button(
                "Ask for the token after it",
                key="ask next",
                on_click=text_position.go_to,
                args=(position + 1,),
                help="The next question, one token further in the text.",
            )
    with address:
        st.caption("The class opens:")
        present.link_to(address_of(PAGE.name, {ASKS: "True"}))


def is_answered_here() -> bool:
    """Whether the visitor is one of a class, and comes to answer."""
    asks = st.query_params.get(ASKS)
    return is_in_class() and asks is not None and asks.lower() == "true"


def answer() -> None:
    """To one of a class: the question that is asked now, and then its result."""
    addresses.accept_values(ASKS, ON_OR_OFF)
    seen = _seen()
    if not seen:
        st.info("The class is asked nothing now. Stay here: the question comes by itself.")
    for asked, _ in seen:
        guess_in_class(asked)
    follow(seen, _seen)


def _seen() -> list[tuple[AskedGuess, bool]]:
    """What is asked now, and whether its result is shown."""
    return [(asked, is_shown(asked.question)) for asked in _now]
