"""The suggestions for the text on the page Generate. What was written stays: as a branch, or, of another prompt, on the shelf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.subject.prompts import MENENIUS, SEA
from gptviz.ui.widgets import Try
from gptviz.ui.widgets.sampling import PLAIN

from . import beginning
from .writing import Writing

# The key of the session's state that asks for the text to be written once more, with the settings chosen.
WRITE_AGAIN = "write again"


def tries(writing: Writing, subject: Subject) -> list[Try]:
    """The suggestions for this text, and other prompts where the model was trained on texts to go on with."""
    offers = [_fork(writing)] if writing.length else []
    offers += [
        _again(
            writing,
            "Always the likeliest",
            "At temperature 0 nothing is drawn: the likeliest token is taken each time. Does the text begin to repeat itself? "
            "If it does, a line below the tree says so.",
            temperature=0.0,
        ),
        _again(
            writing,
            "Too hot",
            "At temperature 2 the probabilities are more alike, so that unlikely tokens (pale) are drawn more often. Compare the "
            "log-probability per token below the two branches.",
            temperature=2.0,
        ),
        _again(
            writing,
            "Only the two likeliest",
            "With top-k 2 a token is drawn from the two likeliest only: in the list of what may come next all others are struck "
            "out.",
            top_k=2,
        ),
    ]
    return offers if subject.on_task else [*offers, *_prompts()]


def _again(writing: Writing, title: str, notice: str, **settings: Any) -> Try:
    """The text once more from the prompt, with other settings. What was written stays as a branch; the way back leads to it."""

    def write_again() -> Callable[[], None]:
        before = writing.tree.current
        st.session_state[WRITE_AGAIN] = True
        return lambda: writing.go(before) if before in writing.tree.nodes else None

    return Try(title, notice, PLAIN | settings, act=write_again)


def _prompts() -> list[Try]:
    return [
        Try("“sea”", "A prompt of three letters: does the model end the word here, or go on with it?", {"prompt": SEA}),
        Try(
            "“What is gra”",
            "A line by a speaker of the play Coriolanus, cut in the middle of a word: the list of what may come next says how "
            "the model would go on with it.",
            {"prompt": MENENIUS},
        ),
    ]


def _fork(writing: Writing) -> Try:
    """A branch from the present text. It takes nothing away: there is nothing to take back."""
    return Try(
        "A fork",
        "Takes another token at a place where the model gave it nearly as high a probability, then goes on with the same random "
        "numbers. How soon do the two texts differ? Compare their log-probabilities per token, and click the pale branch to go "
        "over to it.",
        act=lambda: beginning.fork(writing),
    )
