"""The data held out of a model's training, for pages: with the tokens whose loss counts, and as texts up to their end."""

from __future__ import annotations

import streamlit as st
import torch

from gptviz.data.registry import source_from
from gptviz.interp.changing.ablation import Rows
from gptviz.interp.changing.edits import Inputs
from gptviz.text.datasets.corpora import TINY_SHAKESPEARE_SHA256, tiny_shakespeare
from gptviz.ui.shell.subject import scrubber
from gptviz.ui.shell.subject.models import ModelKey, language_model

# About how many tokens are read.
MOST_TOKENS = 2_048


def is_here(key: ModelKey) -> bool:
    """Whether they are on this machine."""
    return _is_here(scrubber.as_saved_last(key.unedited))


# All steps of one training have the same held-out data.
@st.cache_data(max_entries=32, show_spinner=False)
def _is_here(key: ModelKey) -> bool:
    try:
        return bool(language_model(key).rows(most=1))
    except (ValueError, OSError, KeyError, TypeError):
        return False


def tested(key: ModelKey) -> tuple[Rows, ...]:
    """The first of them, with the tokens whose prediction counts in the loss: of a task only its answers.

    Raises:
        ValueError: they do not fit the model, or there are none.
        OSError: they are not on this machine.
    """
    return _tested(scrubber.as_saved_last(key.unedited))


# Read-only, shared by all sessions.
@st.cache_resource(max_entries=8, show_spinner="Reading the data")
def _tested(key: ModelKey) -> tuple[Rows, ...]:
    lm = language_model(key)
    content = dict(lm.card.source or {})
    if content.get("sha256") == TINY_SHAKESPEARE_SHA256:
        tiny_shakespeare(fetch=False)  # looking at a model downloads nothing
    source = source_from(content)
    found, left = [], MOST_TOKENS
    for batch in source.data(lm.tokenizer, lm.model.config).validation():
        some = batch.rows(slice(0, max(left // batch.inputs[0].shape[1], 1))).to(lm.device)
        found.append(Rows(Inputs(*some.inputs), some.targets))
        left -= some.inputs[0].numel()
        if left <= 0:
            break
    return tuple(found)


def texts(key: ModelKey) -> tuple[torch.Tensor, ...]:
    """The first of them as rows of tokens [T], each up to its end.

    Raises:
        ValueError: as in `tested`.
        OSError: as in `tested`.
    """
    return _texts(scrubber.as_saved_last(key.unedited))


@st.cache_resource(max_entries=8, show_spinner="Reading the data")
def _texts(key: ModelKey) -> tuple[torch.Tensor, ...]:
    return tuple(language_model(key).rows(most=MOST_TOKENS))


def code_of_tested(key: ModelKey) -> str:
    """The lines of `gptviz` that read the result of `tested`, for a model `lm`, into `rows`."""
    return f"""from gptviz.data.registry import source_from

# About {sum(row.reading.ids.numel() for row in tested(key)):,} tokens of what was held out.
batches = source_from(dict(lm.card.source)).data(lm.tokenizer, lm.model.config).validation()
rows, left = [], {MOST_TOKENS}
for batch in batches:
    some = batch.rows(slice(0, max(left // batch.inputs[0].shape[1], 1)))
    rows.append(Rows(Inputs(*some.inputs), some.targets))
    left -= some.inputs[0].numel()
    if left <= 0:
        break"""
