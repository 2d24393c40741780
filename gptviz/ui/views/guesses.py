"""The guesses of a decoder after every token of a text: one pass for all pages that show them."""

from __future__ import annotations

import math

import streamlit as st

from gptviz.interp.explaining.attribution import attribute_logit, stream_at
from gptviz.interp.reading import next_token
from gptviz.interp.reading.next_token import Guesses, Logits, logits_at
from gptviz.language_model.scanning import rival
from gptviz.model.costs.effort import LITTLE, effort
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


@st.cache_data(max_entries=32, show_spinner=False)
def added_by_parts(key: ModelKey, ids: tuple[int, ...]) -> dict[str, float]:
    """How much each part adds to the logit of the likeliest token after `ids`, less that of its
    rival, or else of the second, by its name. Empty where the logits are no such sum, or where
    finding it would take long.
    """
    lm = language_model(key)
    model = lm.model
    if model.config.kind != "decoder" or effort(model, len(ids)) > LITTLE:
        return {}
    try:
        stream = stream_at(model, ids)
        first, second = stream.logits.topk(2).indices.tolist()
        other = rival(lm, lm.tokenizer.decode(list(ids)), first)
        added = attribute_logit(stream, first, second if other is None else other).values
    except (ValueError, RuntimeError):
        return {}
    return added if all(map(math.isfinite, added.values())) else {}
