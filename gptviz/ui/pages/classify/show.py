"""The views of the Classify page, by the names that the control `view` and the link have for them."""

from __future__ import annotations

import streamlit as st

from gptviz.interp.reading.classification import has_shares
from gptviz.ui.records.attention import PAGE as ATTENTION_PAGE
from gptviz.ui.records.classify import ATTENTION, HELD_OUT, WORDS
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import attention, encoder_decoder

from . import words
from .decision import decision_by_word, text_places, words_left_out
from .held_out import held_out
from .own_file import own_file, probability_table
from .words import Folded


def show(view: str, subject: Subject) -> Folded | None:
    """The view of this name, and the details folded below it, or None if there are none."""
    if view == WORDS:
        return _by_word(subject)
    if view == ATTENTION:
        return _attention(subject)
    return (_held_out(subject) if view == HELD_OUT else None) or _own_file(subject)


def _by_word(subject: Subject) -> Folded | None:
    if has_shares(subject.lm.model):
        decision = decision_by_word(subject)
        return Folded(lambda: decision.labelled(subject.labels), words.code_words(subject, decision))
    found = words_left_out(subject)
    if found is None:
        return None
    tokens = [subject.labels[place] for place in text_places(subject)]
    code = words.code_left_out(subject, found, text_places(subject))
    return Folded(lambda: found.labelled(tokens), code, words.HOW_LEFT_OUT, words.LIMITS_LEFT_OUT)


def _attention(subject: Subject) -> Folded | None:
    """The attention between the words. None for a model without."""
    config = subject.lm.model.config
    if not config.n_layer:
        st.info("This model has no blocks and therefore no attention: each word counts by itself.")
        return None
    attention.show(subject, encoder_decoder.DECODER, default=0)
    frame.link(ATTENTION_PAGE, "On a page of its own")
    return Folded(how=attention.HOW, limits=attention.LIMITS)


def _held_out(subject: Subject) -> Folded | None:
    """The texts held out, or None if they are not here, and then a file of the user's may stand in for them."""
    evaluation = held_out(subject)
    if evaluation is None:
        return None
    return Folded(lambda: evaluation.confusion, words.code_held_out(subject), words.HOW_TEXTS, words.LIMITS_TEXTS)


def _own_file(subject: Subject) -> Folded:
    file, probabilities = own_file(subject)
    return Folded(
        lambda: probability_table(file, probabilities, subject.lm.labels),
        words.code_file(subject, file.name),
        words.HOW_TEXTS,
        words.LIMITS_TEXTS,
    )
