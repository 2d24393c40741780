"""What to try with a classifier and a text: a negation, a word less, a confident mistake, a selective head."""

from __future__ import annotations

import streamlit as st
import torch

from gptviz.figures.format import percent
from gptviz.interp.classification import Numbers
from gptviz.interp.decision import decisive_token, left_out
from gptviz.interp.overview import strongest
from gptviz.text import words_of
from gptviz.ui.shell.models import ModelKey, language_model
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import attention, encoder_decoder
from gptviz.ui.widgets.markdown import escaped
from gptviz.ui.widgets.tries import Try

from .held_out import worst
from .view_names import ATTENTION, WORDS
from .words import classified

# A text is read again without each of its words in turn: with more words than this, it takes too long for a button.
MOST_LEFT_OUT = 128


def tries(subject: Subject) -> list[Try]:
    """What to try with this model and text."""
    offers: list[Try] = []
    if _is_of_sentiment(subject.lm.labels):
        notice = (
            "To a reader this is praise. Does the model see that? Compare the bars of “never” and “dull”, then take “never” away."
        )
        offers.append(Try("A negation", notice, {"prompt": "the film was never dull", "view": WORDS}))
    if 2 <= len(subject.seen) <= MOST_LEFT_OUT and (turned := _turning(subject)) is not None:
        offers.append(turned)
    if (wrong := worst(subject)) is not None:
        text, label, taken = wrong
        notice = f"Its label is {escaped(label)}; the fully trained model says {escaped(taken)}. Which words mislead it?"
        offers.append(Try("A confident mistake", notice, {"prompt": text, "view": WORDS}))
    if subject.lm.model.config.n_layer and len(subject.seen) > 1:
        offers.append(_selective(subject))
    return offers


def _is_of_sentiment(names: tuple[str, ...]) -> bool:
    return sorted(name.lower()[:3] for name in names) == ["neg", "pos"]


@st.cache_resource(max_entries=64, show_spinner=False)
def _left_out(key: ModelKey, ids: tuple[int, ...]) -> Numbers:
    lm = language_model(key)
    return left_out(lm.model, torch.tensor(ids, device=lm.device))


def _turning(subject: Subject) -> Try | None:
    """The text without the word on which its label depends most; None where every word speaks against the label."""
    read, without = classified(subject.key, subject.seen), _left_out(subject.key, subject.seen)
    place, label = decisive_token(read.probabilities, without)
    before, after = read.probabilities[read.label], without[place, read.label]
    if after >= before:
        return None
    texts, names = words_of(subject.prompt)[: len(subject.seen)], [escaped(name) for name in subject.lm.labels]
    word, title = texts.pop(place), "Without"
    outcome = f"{names[read.label]} falls from {percent(float(before))} to {percent(float(after))}"
    if label != read.label:
        outcome, title = f"{outcome}, and the label changes to {names[label]}", "The label changes without"
    notice = f"This is the word on which the label depends most: {outcome}."
    return Try(f"{title} “{word}”", notice, {"prompt": " ".join(texts), "view": WORDS})


def _selective(subject: Subject) -> Try:
    """The head whose rows are spread over the fewest words."""
    facts = attention.view(subject.key, attention.read_by(subject, encoder_decoder.DECODER)).overview.facts
    assert facts is not None  # there are two words
    block, head = strongest(-facts.spread)
    notice = (
        f"In block {block}, head {head} a word reads about {facts.spread[block, head]:.1f} words on average, the fewest of all "
        "heads."
    )
    return Try("The most selective head", notice, {"view": ATTENTION, **attention.explorer_state(block=block, head=head)})
