"""The lines of Home below the map: the guess, or, of models that guess no next token, what they do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from gptviz.components.token_strip import Token
from gptviz.figures.kit.format import counted, percent
from gptviz.model.kinds import MODEL_KINDS
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject
from gptviz.ui.widgets import in_quotes


def say_guess(guesses: Sequence[Token]) -> None:
    """The likeliest next token of a decoder, and how much of all probability the list on the map has; nothing where the model's
    numbers are damaged.
    """
    shares = [guess.probability for guess in guesses if guess.probability is not None and math.isfinite(guess.probability)]
    if shares and len(shares) == len(guesses):
        st.caption(
            f"After this text {in_quotes(guesses[0].label)} is the likeliest next token, with {percent(shares[0])}. The "
            f"{counted(len(shares), 'token')} in the list have {percent(min(1.0, sum(shares)))} of all probability."
        )


def link_to_own_page(subject: Subject) -> None:
    """For a model that guesses no next token: what it does instead, and a link to the page that shows it."""
    if subject.kind == "decoder":
        return
    kind = MODEL_KINDS[subject.kind]
    st.caption(f"This model is {kind.with_article}: it {kind.does}; it does not continue a text.")
    page = frame.page_about(kind.name)
    frame.link(page, f"Look at it closely: {page.title}")
