"""What a page shows before anybody types: for each kind of model, and each task, something that it can make sense of."""

from __future__ import annotations

import json

import streamlit as st

from gptviz.data.classification import LabelledSource
from gptviz.data.seq2seq import PairSource, PairTaskSource
from gptviz.data.source import TaskSource, source_from
from gptviz.model.kinds import Kind
from gptviz.text import words_of

# The prompt of the seed's pictures (Sinai 2024): Lysander and Hermia, A Midsummer Night's Dream, act 1, scene 1.
LINES = "LYSANDER.\nHow now, my love? Why is your cheek so pale?\nHow chanc"
REVIEW = "The plot is familiar and the ending no surprise, but the film is warm, funny and moving from beginning to end."
DATE = "the third of march 1977"
USUAL: dict[Kind, str] = {"decoder": LINES, "classifier": REVIEW, "encoder-decoder": DATE}


def example(kind: Kind, source: str) -> str:
    """An example, held out, of what a model of this kind was trained on, by the `source` in its card, as JSON; where the data
    is not here, or is a text, what the kind usually begins with."""
    content = json.loads(source)
    if not content or "corpus" in content:
        return USUAL[kind]
    try:
        return _held_out(kind, source)
    except (ValueError, OSError):
        return USUAL[kind]


# An error is not kept: the texts may come.
@st.cache_data(max_entries=32, show_spinner=False)
def _held_out(kind: Kind, source: str) -> str:
    """The first example with something in it for a model to read."""
    found = source_from(json.loads(source))
    if isinstance(found, TaskSource | PairTaskSource):
        return found.task.example_prompt()
    if isinstance(found, LabelledSource):
        return next((text for text in found.split()[1].texts if words_of(text)), USUAL[kind])
    if isinstance(found, PairSource):
        return next((text for text, _ in found.split()[1] if text.strip()), USUAL[kind])
    return USUAL[kind]
