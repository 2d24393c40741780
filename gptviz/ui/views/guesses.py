"""The guesses of a decoder after every token of a text: one pass for all pages that show them."""

from __future__ import annotations

import streamlit as st

from gptviz.interp.reading import next_token
from gptviz.interp.reading.next_token import Guesses, Logits, logits_at
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.widgets import jobs

LIKELY = 8


# Shared by all sessions: read-only. An entry has one vector [d_model] per token, and no logits.
@jobs.resource("Reading the prompt", max_entries=4)
def guesses(key: ModelKey, ids: tuple[int, ...]) -> Guesses:
    """The guesses of the model after each of `ids`."""
    return next_token.guesses(language_model(key).model, ids, LIKELY)


@st.cache_resource(max_entries=16, show_spinner=False)
def logits_after(key: ModelKey, ids: tuple[int, ...], position: int) -> Logits:
    """The logits [vocab_size] of the token after `position` of `ids`."""
    return logits_at(
        language_model(key).model, ids, guesses(key, ids).states, slice(position, position + 1)
    )[0]
