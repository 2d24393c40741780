"""The data held out of a model's training, for pages: with the tokens whose loss counts, and as
texts up to their end.
"""

from __future__ import annotations

import streamlit as st
import torch

from gptviz.data import registry
from gptviz.interp.changing.ablation import Rows
from gptviz.language_model.data import tested_rows
from gptviz.text import passages
from gptviz.text.datasets.corpora import TINY_SHAKESPEARE_SHA256, tiny_shakespeare
from gptviz.ui.shell.subject import ModelKey, language_model, scrubber
from gptviz.ui.widgets import jobs

# About how many tokens are read.
MOST_TOKENS = 2_048


@scrubber.same_at_every_step
@st.cache_data(max_entries=32, show_spinner=False)
def is_here(key: ModelKey) -> bool:
    """Whether they are on this machine."""
    try:
        return bool(language_model(key).rows(most=1))
    except (ValueError, OSError, KeyError, TypeError):
        return False


def text_to_fit(key: ModelKey) -> str | None:
    """What something is fitted to by default: None, which stands for the data held out, or for what
    the model writes itself where nobody knows its data; else passages of books.
    """
    is_known = language_model(key).card.source is not None
    if is_known and not is_here(key):
        return passages()
    return None


def describe_texts(key: ModelKey) -> str:
    """What they are, in words that go on after "over"."""
    return registry.held_out(language_model(key).card.source)


# Read-only, shared by all sessions.
@scrubber.same_at_every_step
@jobs.resource("Reading the data", max_entries=8)
def scored_rows(key: ModelKey) -> tuple[Rows, ...]:
    """The first of them, with the tokens whose prediction counts in the loss: of a task only its
    answers.

    Raises:
        ValueError: they do not fit the model, or there are none.
        OSError: they are not on this machine.
    """
    lm = language_model(key)
    if (lm.card.source or {}).get("sha256") == TINY_SHAKESPEARE_SHA256:
        tiny_shakespeare(fetch=False)  # looking at a model downloads nothing
    return tuple(tested_rows(lm, MOST_TOKENS)["loss"])


@scrubber.same_at_every_step
@jobs.resource("Reading the data", max_entries=8)
def texts(key: ModelKey) -> tuple[torch.Tensor, ...]:
    """The first of them as rows of tokens [T], each up to its end.

    Raises:
        ValueError: as in `scored_rows`.
        OSError: as in `scored_rows`.
    """
    return tuple(language_model(key).rows(most=MOST_TOKENS))
