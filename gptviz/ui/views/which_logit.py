"""The controls for a logit: of which token, or which label of a classifier, and minus the logit of
which other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st

from gptviz.language_model import scanning
from gptviz.language_model.core import answer_space_of
from gptviz.settings.address_values import ANY
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import addresses, controls

OF = "logit_of"
MINUS = "minus"
LIKELIEST = "the likeliest"
NEXT = "the next likeliest"
ALONE = "none: its logit alone"
# The wrong answer where a prompt has a known one, or the other of two names in it, else the next
# likeliest token.
RIVAL = "the rival answer"
# How many of the likeliest are listed; any other one can be typed.
LISTED = 30
# The key of the session's state with a logit, a pair of numbers, that a file asks for.
ASKED = "asked logit"
# Keys and values in links of earlier versions.
_OLD_KEYS = {"token": OF, "against": MINUS}
_OLD_VALUES = {"none": ALONE, "nothing": ALONE}


class Logit(NamedTuple):
    """A logit, or the difference of two."""

    token: int  #: the token, or the label of a classifier, whose logit it is
    against: int | None  #: whose logit is subtracted; None: nothing is subtracted


def names(subject: Subject) -> Sequence[str]:
    """The names by number of what has a logit: labels of a classifier, else tokens. No two are
    alike.
    """
    if subject.kind.guesses == "label":
        return subject.lm.labels
    return tokens(subject.key).names


def which_logit(
    subject: Subject,
    likely: Sequence[int],
    of: Any,
    less: Any,
    *,
    at_end: bool = True,
    minus: str = RIVAL,
) -> Logit:
    """The controls `logit_of` and `minus`.

    Args:
        subject: the model and the prompt.
        likely: what the model finds likeliest here, the likeliest first.
        of: the container for the first control.
        less: the container for the second one.
        at_end: whether this is the guess after the whole prompt, to which there may be a known
            answer.
        minus: what the second control shows at first.
    """
    every = names(subject)
    what = answer_space_of(subject.lm).noun
    _take_over(every)
    listed = [every[i] for i in likely[:LISTED]]
    typed = ""
    other = None
    if len(every) > LISTED:
        typed = (
            f" The {LISTED} likeliest are listed; any other one can be typed, as it is shown "
            "elsewhere."
        )
        other = every.__contains__
    with of:
        hint = (
            f"Whose logit: that of the {what} which the model finds likeliest here, or of another "
            f"one.{typed}"
        )
        chosen = controls.select(
            f"Logit of the {what}", (LIKELIEST, *listed), key=OF, help=hint, other=other
        )
    token = likely[0] if chosen == LIKELIEST else every.index(chosen)
    with less:
        hint = (
            f"A {what} to compare with: its logit is taken from the other one. Only differences "
            "of logits count: what adds the "
            f"same to every {what} changes no probability. “{RIVAL.capitalize()}” is the wrong "
            "answer where the prompt is one "
            "with a known answer, or the other of two names in it, else the next likeliest "
            f"{what}.{typed}"
        )
        if len(every) > 1:
            options = (RIVAL, NEXT, ALONE, *listed)
        else:
            options = (ALONE,)
        other_one = controls.select(
            "Minus the logit of", options, key=MINUS, help=hint, other=other, default=minus
        )
    if other_one == ALONE:
        return Logit(token, None)
    if other_one not in (RIVAL, NEXT):
        return Logit(token, every.index(other_one))
    is_asked = other_one == RIVAL and at_end and what == "token"
    rival = scanning.rival(subject.lm, subject.prompt, token) if is_asked else None
    return Logit(token, next(i for i in likely if i != token) if rival is None else rival)


def _take_over(every: Sequence[str]) -> None:
    """Let the controls show what a file asks for, or a link of an earlier version."""
    for key, number in zip((OF, MINUS), st.session_state.pop(ASKED, ()), strict=False):
        if number is not None and number < len(every):
            name = every[number]
        else:
            name = f"token {number}"
        st.session_state[key] = ALONE if number is None else name
    for key, new in (*_OLD_KEYS.items(), (MINUS, MINUS)):
        addresses.accept_values(key, ANY)
        asked = st.query_params.get(key)
        if key == new:
            is_old = asked in _OLD_VALUES
        else:
            is_old = new not in st.query_params
        if asked is not None and is_old and new not in st.session_state:
            st.session_state[new] = _OLD_VALUES.get(asked, asked)
            addresses.write(key, None)
