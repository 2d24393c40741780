"""What a page shows before anybody types: for each kind of model, and each task, something that it can make sense of."""

from __future__ import annotations

import json

import streamlit as st

from gptviz.learn.labelled import LabelledSource
from gptviz.learn.pairs import PairSource, PairTaskSource
from gptviz.learn.sources import TaskSource, source_from
from gptviz.model.config import Kind

# The prompt of the seed's pictures (Sinai 2024): Lysander and Hermia, A Midsummer Night's Dream, act 1, scene 1.
LINES = "LYSANDER.\nHow now, my love? Why is your cheek so pale?\nHow chanc"
REVIEW = "The plot is familiar and the ending no surprise, but the film is warm, funny and moving from beginning to end."
DATE = "the third of march 1977"
USUAL: dict[Kind, str] = {"decoder": LINES, "classifier": REVIEW, "encoder-decoder": DATE}


@st.cache_data(max_entries=32, show_spinner=False)
def example(kind: Kind, source: str) -> str:
    """An example, held out, of what a model of this kind was trained on, by the `source` in its card, as JSON; where the data
    is not here, or is a text, what the kind usually begins with."""
    content = json.loads(source)
    if not content or "corpus" in content:
        return USUAL[kind]
    try:
        found = source_from(content)
        if isinstance(found, TaskSource | PairTaskSource):
            return found.task.example_prompt()
        if isinstance(found, LabelledSource):
            return found.split()[1].texts[0]
        if isinstance(found, PairSource):
            return found.pairs.split(found.fraction, found.seed)[1][0][0]
    except (ValueError, OSError):
        pass
    return USUAL[kind]
