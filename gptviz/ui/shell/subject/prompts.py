"""The first prompts of pages: for each kind of model, and each task, a text that it can process."""

from __future__ import annotations

import json

import streamlit as st

from gptviz.model.kinds import Kind

# Lysander to Hermia, A Midsummer Night's Dream, act 1, scene 1; cut where several words can follow,
# so that every shipped model has a choice (tests/app/test_examples.py). The box of the prompt shows
# two lines.
LINES = "How now, my love? Why is your cheek so pale?\nH"
# For decoders that were trained on all kinds of texts: two names, one of which is the answer (Wang
# et al. 2022).
SENTENCE = "When Mary and John went to the shop, John gave a book to"
# Prompts of the original experiment that builds its model step by step (Ge 2023).
REVIEW = (
    "The plot is familiar and the ending no surprise, but the film is warm, funny and moving from "
    "beginning to end."
)
DATE = "the third of march 1977"
USUAL: dict[Kind, str] = {"decoder": LINES, "classifier": REVIEW, "encoder-decoder": DATE}


def example(kind: Kind, source: str) -> str:
    """A text to try a model of this kind on: an example from the `source` on its card, given as
    JSON.

    If the source is a text, is not on this machine, or has no example: the usual text for this kind
    of model.
    """
    from gptviz.data.registry import kind_of
    from gptviz.data.text import TextSource

    content = json.loads(source)
    if kind_of(content) == TextSource.kind:  # it has no example, and reading it may take long
        return USUAL[kind]
    try:
        return _offered_prompt(source) or USUAL[kind]
    except (ValueError, OSError):
        return USUAL[kind]


# An error is not kept in the cache: the data may come later.
@st.cache_data(max_entries=32, show_spinner=False)
def _offered_prompt(source: str) -> str | None:
    from gptviz.data.registry import source_from

    return source_from(json.loads(source)).example
