"""A text to read for models whose own data is not here: passages that come with gptviz, or one of
the reader's.
"""

from __future__ import annotations

import streamlit as st

from gptviz.text import passages
from gptviz.ui.shell.subject import Subject
from gptviz.ui.widgets import controls

from . import held_out

HELD_OUT = "Held-out data"
PROMPT = "The prompt"
PASSAGES = "Passages of books"
OWN = "A text of yours"
# What the model writes itself, where nobody knows what it learned from.
WRITTEN = "What it writes itself"


def text_of(kind: str, prompt: str) -> str:
    """The text of one of these kinds that is none of the model's own, with the control for the
    reader's; the prompt until one is typed.
    """
    if kind == PROMPT:
        return prompt
    if kind == PASSAGES:
        return passages()
    hint = (
        "The text that is read in place of the prompt. Ctrl + Enter, or a click elsewhere, "
        "applies it."
    )
    text = controls.text(OWN, "", key="own", longest=100_000, height=120, help=hint)
    if text.strip():
        return text
    st.info("Type or paste a text above; until then the prompt is read.")
    return prompt


def text_to_fit(subject: Subject) -> str | None:
    """The control for the text that something is fitted to; None stands for the data held out of
    training, or for what the model writes itself where its data are not known.
    """
    kinds = [PASSAGES, OWN]
    if held_out.is_here(subject.key):
        kinds.insert(0, HELD_OUT)
    elif subject.lm.card.source is None:
        kinds.insert(0, WRITTEN)
    kind = controls.select(
        "Fitted to",
        kinds,
        key="fitted",
        help="The text over which this is fitted, and then measured. What the model writes itself "
        "is drawn at temperature 1, always the same.",
    )
    if kind in (HELD_OUT, WRITTEN):
        return None
    return text_of(kind, subject.prompt)
