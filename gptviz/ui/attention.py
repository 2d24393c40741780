"""What the Attention page computes, once for all sessions that read the same text with the same model."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gptviz.interp import attention
from gptviz.labelled import Labelled

from .cache import ModelKey, language_model


@dataclass(frozen=True)
class View:
    """All the page shows of one text: the patterns, their thumbnails, and where each head looks on average."""

    patterns: attention.Patterns
    thumbnails: Labelled
    facts: attention.Facts | None


# Two entries: GPT-2's patterns over 1,024 tokens alone take 600 MB. Read-only, other sessions share it.
@st.cache_resource(max_entries=2, show_spinner="Reading the prompt")
def view(key: ModelKey, ids: tuple[int, ...]) -> View:
    """The attention of every head of the model over `ids`."""
    patterns = attention.patterns(language_model(key).model, ids)
    return View(patterns, attention.thumbnails(patterns), attention.facts(patterns))


def pick(chart: str) -> None:
    """Set the controls `block` and `head` to the thumbnail clicked in the chart with that key.

    As a callback, so that it acts on a click once, and not again on every rerun, as the chart's selection would. A
    second click on the same thumbnail selects nothing, and changes nothing.
    """
    points = st.session_state[chart].selection.points
    if points:
        st.session_state["block"], st.session_state["head"] = points[0]["customdata"]
