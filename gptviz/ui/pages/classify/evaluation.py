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
from gptviz.figures import distances as distances_figure
from gptviz.figures.format import percent
from gptviz.interp.classification import Mistake, Numbers, confusion, mistakes
from gptviz.interp.ordinal import distances, mean_absolute_error, reordered
from gptviz.labelled_array import LabelledArray
from gptviz.text import LabelledTexts, label_order
from gptviz.ui.shell import scrubber
from gptviz.ui.shell.models import ModelKey, language_model
from gptviz.ui.shell.subject import longest_prompt
from gptviz.ui.shell.theme import theme
from gptviz.ui.widgets.figure import pixels, show_figure

from .view_names import WORDS

MOST_MISTAKES = 20
LONGEST_OPTION = 100  # characters of a text in a select box
AT_A_TIME = 4_096  # texts between two looks at whether the user did something else
ABOUT_BASELINE = """Held-out texts were not used in training. The baseline counts words, gives rare words more weight (TF-IDF),
and learns a linear model of these numbers, by logistic regression, from the same texts: it knows nothing of the order of
words."""
ABOUT_DISTANCES = """Labels that begin with numbers have an order. The number is the mean absolute error: how many labels away
from the right one the model's label is, on average. Four stars instead of five is a small mistake, one star instead of five a
large one."""
_DONE = "labelled file done"


@dataclass(frozen=True)
class Evaluation:
    """Texts with labels, numbered as the model numbers them, and the model's answer to each.

    Attributes:
        probabilities: [texts, n_label].
        of_baseline: the labels that the baseline gives the texts, None where the texts it would learn from are not here.
    """

    texts: LabelledTexts
    probabilities: Numbers
    of_baseline: tuple[int, ...] | None

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
        """How many texts of each label (rows) were given which label (columns)."""
        return confusion(self.texts.labels, self.predicted, self.texts.names)

    @property
    def baseline_confusion(self) -> LabelledArray | None:
        """The same of the baseline."""
        return None if self.of_baseline is None else confusion(self.texts.labels, self.of_baseline, self.texts.names)


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

    It stops when the user does something else on the page; the parts that are ready stay cached.
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
def _baseline(training: str, identity: str, _training: LabelledTexts, _texts: LabelledTexts) -> tuple[int, ...]:
    return tuple(baseline(_training, _texts).probabilities.argmax(1).tolist())


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
    counts, of_baseline = evaluation.confusion, evaluation.baseline_confusion
    left, right = st.columns([4, 5], gap="medium")
    with left:
        with st.container(horizontal=True):
            st.metric(
                "This model", percent(evaluation.accuracy), help=f"How many of {len(evaluation.texts):,} {what} it gets right."
            )
            if of_baseline is None:
                st.metric("TF-IDF baseline", "–", help=f"The texts it would learn from are not on this machine. {ABOUT_BASELINE}")
            else:
                st.metric("TF-IDF baseline", percent(_on_diagonal(of_baseline)), help=ABOUT_BASELINE)
        show_confusion(counts, what, key)
    wrong = mistakes(evaluation.texts.labels, evaluation.probabilities, MOST_MISTAKES)
    with right:
        show_distances(counts, of_baseline, key)
        if not wrong:
            st.success("No mistake.")
            return
        st.markdown("**Its most confident mistakes**", help="Choose a row to take the text apart, word by word.")
        _mistakes_table(evaluation.texts, wrong, key)


def _on_diagonal(counts: LabelledArray) -> float:
    return float(np.trace(counts.values) / counts.values.sum())


def show_confusion(counts: LabelledArray, what: str, key: str) -> None:
    """Which label was taken for which, as a heat map; `what` the texts are, and the chart's `key`."""
    counts = _in_order(counts)
    n_texts = int(counts.values.sum())
    right = f"{percent(_on_diagonal(counts))} lie on the diagonal" if n_texts else "there are none"
    show_figure(
        confusion_figure.confusion(counts, theme(), height=300),
        key=f"{key} confusion",
        config={"displayModeBar": False},
        alt=(
            f"A table of {len(counts.axes[0].labels)} right labels by the labels that the model gave, over {n_texts:,} {what}; "
            f"{right}."
        ),
    )


def _in_order(counts: LabelledArray) -> LabelledArray:
    """The confusion matrix with its labels from the lowest to the highest, where they have an order."""
    order = label_order(counts.axes[0].labels)
    return counts if order is None else reordered(counts, order)


def show_distances(counts: LabelledArray, of_baseline: LabelledArray | None, key: str) -> None:
    """Where labels have an order: how far from its own label the model puts a text, beside the baseline; else nothing.

    Args:
        counts: the confusion matrix of the model.
        of_baseline: that of the baseline, None where there is none.
        key: the beginning of the chart's key.
    """
    if label_order(counts.axes[0].labels) is None or not counts.values.sum():
        return
    both = [_in_order(each) for each in (counts, of_baseline) if each is not None]
    shares, errors = [distances(each) for each in both], [mean_absolute_error(each) for each in both]
    beside = f", the baseline {errors[1]:.2f}" if len(errors) > 1 else ""
    st.markdown(f"**How far off it is**: {errors[0]:.2f} labels on average{beside}", help=ABOUT_DISTANCES)
    spelled_out = ", ".join(
        f"{name} {percent(float(share))}" for name, share in zip(shares[0].axes[0].labels, shares[0].values, strict=True)
    )
    show_figure(
        distances_figure.distances(shares[0], shares[1] if len(shares) > 1 else None, theme()),
        key=f"{key} distances",
        config={"displayModeBar": False},
        alt=(
            f"How many labels away from the right one the model's label is: {spelled_out}; mean absolute error "
            f"{errors[0]:.2f}{beside}."
        ),
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
    """A table with a column `text`; choosing a row, or its text in the select box below, takes it to the prompt and to the view
    of its words.
    """
    texts, box = rows["text"], f"{key} pick"

    def read(row: int) -> None:
        st.session_state["prompt"] = texts.iloc[row][: longest_prompt()]
        st.session_state["view"] = WORDS

    def clicked() -> None:
        if chosen := st.session_state[key].selection.rows:
            read(chosen[0])

    def picked() -> None:
        if (row := st.session_state[box]) is not None:
            read(row)

    number = st.column_config.NumberColumn(format="%.1f %%")
    st.dataframe(
        rows,
        hide_index=True,
        height=pixels(height),
        key=key,
        on_select=clicked,
        selection_mode="single-row",
        column_config={name: number for name in rows.columns if name.startswith("probability")},
    )
    st.selectbox(
        "Take a text apart",
        range(len(rows)),
        index=None,
        key=box,
        format_func=lambda row: f"{row + 1}: {texts.iloc[row][:LONGEST_OPTION]}",
        on_change=picked,
        placeholder="Choose one of these texts",
        help="It becomes the prompt, and the page shows what each of its words does. You can also click a row of the table.",
    )
