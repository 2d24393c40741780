"""A classifier evaluated on texts whose labels are known: accuracy, confusion, and its most confident mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.data.baseline import baseline
from gptviz.data.classification import LabelledSource
from gptviz.data.registry import source_from
from gptviz.figures import confusion as confusion_figure
from gptviz.figures.format import percent
from gptviz.interp.classification import Mistake, Numbers, confusion, mistakes
from gptviz.labelled_array import LabelledArray
from gptviz.text import LabelledTexts
from gptviz.ui.shell import scrubber
from gptviz.ui.shell.models import ModelKey, language_model
from gptviz.ui.shell.subject import LONGEST_PROMPT
from gptviz.ui.shell.theme import theme

from .view_names import WORDS

MOST_MISTAKES = 20
AT_A_TIME = 4_096  # texts between two looks at whether the user did something else
ABOUT_BASELINE = """Held-out texts: kept from training. The baseline counts words, weighs them by how rare they are (TF-IDF),
and learns a linear model of the counts, by logistic regression, from the same texts: it knows no order of words."""
_DONE = "labelled file done"


@dataclass(frozen=True)
class Evaluation:
    """Texts with labels, numbered as the model numbers them, and the model's answer to each.

    Attributes:
        probabilities: [texts, n_label].
        baseline: the share the baseline gets right, None where the texts it would learn from are not here.
    """

    texts: LabelledTexts
    probabilities: Numbers
    baseline: float | None

    @property
    def predicted(self) -> list[int]:
        """The likeliest label of each text."""
        labels: list[int] = self.probabilities.argmax(1).tolist()
        return labels

    @property
    def accuracy(self) -> float:
        """The share of the texts whose likeliest label is right."""
        return float(np.mean(np.array(self.predicted) == self.texts.labels))

    @property
    def confusion(self) -> LabelledArray:
        """How many texts of each label (rows) were taken for which (columns)."""
        return confusion(self.texts.labels, self.predicted, self.texts.names)


# Read-only, shared by all sessions. An error is not kept: the texts may come.
@st.cache_resource(max_entries=2, show_spinner="Opening the texts it was trained on")
def _split(key: ModelKey) -> tuple[LabelledTexts, LabelledTexts]:
    lm = language_model(key)
    source = source_from(dict(lm.card.source or {}))
    if not isinstance(source, LabelledSource):
        raise ValueError("its card names no texts with labels")
    training, held_out = source.split()
    return training.under(lm.labels), held_out.under(lm.labels)


def split(key: ModelKey) -> tuple[LabelledTexts, LabelledTexts]:
    """The texts the model was trained on and those held out, numbered as it numbers its labels.

    Raises:
        ValueError: its card does not say which, or they are not the model's.
        OSError: they are not here.
    """
    return _split(scrubber.as_saved_last(key))


def probabilities(key: ModelKey, identity: str, texts: Sequence[str]) -> Numbers:
    """What the model makes of `texts` [texts, n_label], known by their `identity`. Many are labelled part by part, below a
    progress bar.

    Whatever the user does meanwhile stops it, and the parts that are ready stay cached.
    """
    starts, done = range(0, len(texts), AT_A_TIME), (key, identity)
    is_long = len(starts) > 1 and st.session_state.get(_DONE) != done
    bar = st.progress(0.0) if is_long else None
    parts = []
    for start in starts:
        if bar is not None:
            bar.progress(start / len(texts), f"Labelling: {start:,} of {len(texts):,} texts")
        parts.append(_part(key, identity, start, texts[start : start + AT_A_TIME]))
    if bar is not None:
        bar.empty()
        st.session_state[_DONE] = done
    return np.concatenate(parts)


@st.cache_data(max_entries=128, show_spinner="Labelling the texts")
def _part(key: ModelKey, identity: str, start: int, _texts: Sequence[str]) -> Numbers:
    return language_model(key).probabilities(_texts)


@st.cache_data(max_entries=16, show_spinner="Counting words, for the baseline")
def _baseline(training: str, identity: str, _training: LabelledTexts, _texts: LabelledTexts) -> float:
    return baseline(_training, _texts).accuracy


def evaluate(key: ModelKey, texts: LabelledTexts, identity: str, training: LabelledTexts | None = None) -> Evaluation:
    """The model evaluated on texts with labels.

    Args:
        key: the model.
        texts: the texts and their labels.
        identity: what tells them from other texts, for caches.
        training: the texts it was trained on; by default those its card names.

    Raises:
        ValueError: a label is none of the model's.
    """
    names = language_model(key).labels
    texts = texts.under(names)
    of_baseline = None
    try:
        training = split(key)[0] if training is None else training.under(names)
        of_baseline = _baseline(training.sha256, texts.sha256, training, texts)
    except (ValueError, OSError):
        pass
    return Evaluation(texts, probabilities(key, identity, texts.texts), of_baseline)


def show_evaluation(evaluation: Evaluation, what: str, key: str) -> None:
    """Accuracy beside that of the baseline, which label was taken for which, and the most confident mistakes."""
    left, right = st.columns([4, 5], gap="medium")
    with left:
        with st.container(horizontal=True):
            st.metric(
                "This model", percent(evaluation.accuracy), help=f"How many of {len(evaluation.texts):,} {what} it gets right."
            )
            if evaluation.baseline is None:
                st.metric("TF-IDF baseline", "–", help=f"The texts it would learn from are not here. {ABOUT_BASELINE}")
            else:
                st.metric("TF-IDF baseline", percent(evaluation.baseline), help=ABOUT_BASELINE)
        show_confusion(evaluation.confusion, what, key)
    wrong = mistakes(evaluation.texts.labels, evaluation.probabilities, MOST_MISTAKES)
    with right:
        if not wrong:
            st.success("No mistake.")
            return
        st.markdown("**Its most confident mistakes**", help="Choose a row to take the text apart, word by word.")
        _mistakes_table(evaluation.texts, wrong, key)


def show_confusion(counts: LabelledArray, what: str, key: str) -> None:
    """Which label was taken for which, as a heat map; `what` the texts are, and the chart's `key`."""
    n_texts = int(counts.values.sum())
    right = f"{percent(float(np.trace(counts.values)) / n_texts)} lie on the diagonal" if n_texts else "there are none"
    st.plotly_chart(
        confusion_figure.confusion(counts, theme(), height=300),
        key=f"{key} confusion",
        config={"displayModeBar": False},
        alt=f"Which of {len(counts.axes[0].labels)} labels was taken for which, over {n_texts:,} {what}; {right}.",
    )


def _mistakes_table(texts: LabelledTexts, wrong: Sequence[Mistake], key: str) -> None:
    rows = pd.DataFrame(
        {
            "its label": [texts.names[each.label] for each in wrong],
            "taken for": [texts.names[each.predicted] for each in wrong],
            "probability": [100 * each.probability for each in wrong],
            "text": [texts.texts[each.row] for each in wrong],
        }
    )
    take_apart(rows, f"{key} mistakes", height=360)


def take_apart(rows: pd.DataFrame, key: str, height: int) -> None:
    """A table with a column `text`; choosing a row takes its text to the prompt and to the view of its words."""

    def read() -> None:
        chosen = st.session_state[key].selection.rows
        if chosen:
            st.session_state["prompt"] = rows["text"].iloc[chosen[0]][:LONGEST_PROMPT]
            st.session_state["view"] = WORDS

    number = st.column_config.NumberColumn(format="%.1f %%")
    st.dataframe(
        rows,
        hide_index=True,
        height=height,
        key=key,
        on_select=read,
        selection_mode="single-row",
        column_config={name: number for name in rows.columns if name.startswith("probability")},
    )
