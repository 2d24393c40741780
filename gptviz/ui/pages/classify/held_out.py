"""The view of the held-out texts: what the model gets wrong on them, or what its card records where they are missing."""

from __future__ import annotations

import streamlit as st

from gptviz.interp.reading.classification import mistakes
from gptviz.ui.shell.subject import Subject, scrubber
from gptviz.ui.shell.subject.bar import longest_prompt
from gptviz.ui.widgets import escaped

from .evaluation import (
    LabelledAnswers,
    confusion_on_card,
    evaluate,
    on_card,
    probabilities,
    show_confusion,
    show_distances,
    show_evaluation,
    split,
)


def held_out(subject: Subject) -> LabelledAnswers | None:
    """The view of the held-out texts, or None, with a message, if they are not here."""
    try:
        texts = split(subject.key)[1]
    except (ValueError, OSError) as error:
        _without_texts(subject, error)
        return None
    evaluation = evaluate(subject.key, texts, texts.sha256)
    show_evaluation(evaluation, "texts held out", key="held out")
    return evaluation


def _without_texts(subject: Subject, error: Exception) -> None:
    """The results on held-out texts that the card records, for texts that are not on this machine, and how to provide them."""
    card = subject.lm.card
    accuracy, counts = on_card(card), confusion_on_card(card, subject.lm.labels)
    bring = "Give a labelled file to test it on"
    if card.corpus_sha256 is not None:
        bring += "; in the one it was trained on, the texts held out are found again"
    sentence = (
        f"{escaped(_why(subject, error))}, so the texts that it gets wrong cannot be shown. "
        f"{f'Its card says: {escaped(accuracy)}. ' if accuracy else ''}{bring}."
    )
    if counts is None:
        st.info(sentence, icon=":material/folder_off:")
        return
    left, right = st.columns([4, 5], gap="medium")
    with left:
        show_confusion(counts, "held-out texts, as its card says", key="card")
    with right:
        show_distances(counts, None, key="card")
        st.info(sentence, icon=":material/folder_off:")


def _why(subject: Subject, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"The texts that {subject.key.name} was trained on ({subject.lm.card.corpus or ''}) are not on this machine"
    return f"There are no held-out texts of {subject.key.name}: {error}"


def worst(subject: Subject) -> tuple[str, str, str] | None:
    """The most confident mistake of the finished model on held-out texts: the text, its label, and the label given."""
    try:
        texts = split(subject.key)[1]
    except (ValueError, OSError):
        return None
    wrong = mistakes(texts.labels, probabilities(scrubber.as_saved_last(subject.key), texts.sha256, texts.texts), 1)
    if not wrong:
        return None
    return texts.texts[wrong[0].row][: longest_prompt()], texts.names[wrong[0].label], texts.names[wrong[0].predicted]
