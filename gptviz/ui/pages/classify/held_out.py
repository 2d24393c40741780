"""Many texts at once: what the model gets wrong on those held out of its training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.data.baseline import baseline
from gptviz.data.classification import LabelledSource
from gptviz.data.registry import source_from
from gptviz.figures.kit.format import percent
from gptviz.figures.reading import confusion as figures
from gptviz.interp.reading.classification import confusion, mistakes
from gptviz.interp.reading.ordinal import label_distances, mean_absolute_error, reorder_labels
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.runs.card import Card
from gptviz.text import LabelledTexts, label_order
from gptviz.ui.records.classify import WORDS
from gptviz.ui.shell.close import PageResult
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, opening, scrubber
from gptviz.ui.shell.subject.bar import longest_prompt
from gptviz.ui.widgets import escape_markdown, jobs, picking, show_figure, theme
from gptviz.ui.widgets.figure import pixels

MOST_MISTAKES = 20
AT_A_TIME = 4_096  # texts that are filled up to one length together
LONGEST_OPTION = 100  # characters of a text in a select box
ABOUT_BASELINE = """Held-out texts were not used in training. The baseline counts words, gives rare words more weight (TF-IDF),
and learns a linear model of these numbers, by logistic regression, from the same texts: it knows nothing of the order of
words."""
ABOUT_DISTANCES = """Labels that begin with numbers have an order. The number is the mean absolute error: how many labels away
from the right one the model's label is, on average. Four stars instead of five is a small mistake, one star instead of five a
large one."""


@dataclass(frozen=True)
class LabelledAnswers:
    """Texts with labels, numbered as the model numbers them, and the model's answer to each."""

    texts: LabelledTexts
    probabilities: Float64Array  #: [texts, n_label]
    #: the labels that the baseline gives the texts, or None if the texts it would learn from are
    #: not here
    of_baseline: tuple[int, ...] | None

    @property
    def predictions(self) -> list[int]:
        """The likeliest label of each text."""
        labels: list[int] = self.probabilities.argmax(1).tolist()
        return labels

    @property
    def accuracy(self) -> float:
        """The share of the texts whose likeliest label is right."""
        return float(np.mean(np.array(self.predictions) == self.texts.labels))

    @property
    def confusion(self) -> LabelledArray:
        """How many texts of each label (rows) were given which label (columns)."""
        return confusion(self.texts.labels, self.predictions, self.texts.names)

    @property
    def baseline_confusion(self) -> LabelledArray | None:
        """The same of the baseline."""
        if self.of_baseline is None:
            return None
        return confusion(self.texts.labels, self.of_baseline, self.texts.names)


# Read-only, shared by all sessions. An error is not kept: the texts may come.
@scrubber.same_at_every_step
@st.cache_resource(max_entries=2, show_spinner="Opening the texts it was trained on")
def split(key: ModelKey) -> tuple[LabelledTexts, LabelledTexts]:
    """The texts the model was trained on and those held out, numbered as it numbers its labels.

    Raises:
        ValueError: its card does not say which, or they are not the model's.
        OSError: they are not here.
    """
    lm = language_model(key)
    source = source_from(dict(lm.card.source or {}))
    if not isinstance(source, LabelledSource):
        raise ValueError("its card names no texts with labels")
    training, held_out = source.split()
    return training.renumber_labels(lm.labels), held_out.renumber_labels(lm.labels)


def held_out(subject: Subject) -> PageResult | None:
    """The view of the held-out texts, or None, with a message, if they are not here."""
    try:
        texts = split(subject.key)[1]
    except (ValueError, OSError) as error:
        _without_texts(subject, error)
        return None
    evaluation = evaluate(subject.key, texts, texts.sha256)
    show_evaluation(evaluation, "texts held out", key="held out")
    return PageResult(lambda: evaluation.confusion, code(subject), "Many texts")


def code(subject: Subject) -> str:
    """The lines of `gptviz` that compute the confusion of held-out texts."""
    imports = (
        "from gptviz.data.registry import source_from",
        "from gptviz.interp.reading.classification import confusion, mistakes",
    )
    return f"""{opening(subject.lm, *imports)}
held_out = source_from(lm.card.source).split()[1].renumber_labels(lm.labels)
probabilities = lm.probabilities(held_out.texts)  # [texts, label]
wrong = mistakes(held_out.labels, probabilities)
confusion(held_out.labels, probabilities.argmax(1), lm.labels)"""


def _without_texts(subject: Subject, error: Exception) -> None:
    """The results on held-out texts that the card records, for texts that are not on this machine,
    and how to provide them.
    """
    card = subject.lm.card
    accuracy = on_card(card)
    names = subject.lm.labels
    counts = None
    if card.confusion is not None and len(card.confusion) == len(names):
        axes = Axis("label", names), Axis("predicted", names)
        counts = LabelledArray(np.array(card.confusion, np.int64), axes, "texts")
    bring = "Give a labelled file to test it on"
    if card.corpus_sha256 is not None:
        bring += "; in the one it was trained on, the texts held out are found again"
    why = f"There are no held-out texts of {subject.key.name}: {error}"
    if isinstance(error, OSError):
        why = (
            f"The texts that {subject.key.name} was trained on ({card.corpus or ''}) are not on "
            "this machine"
        )
    sentence = (
        f"{escape_markdown(why)}, so the texts that it gets wrong cannot be shown. "
        f"{f'Its card says: {escape_markdown(accuracy)}. ' if accuracy else ''}{bring}."
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


def on_card(card: Card) -> str | None:
    """How often the model was right on held-out texts and those it learned from, and a baseline, if
    its card says so.
    """
    own = card.accuracy
    of_baseline = card.baseline_accuracy
    if own is None:
        return None
    n = (card.texts or {}).get("held_out")
    if n is not None:
        of = f"of {n:,} held-out texts"
    else:
        of = "of its held-out texts"
    if card.training_accuracy is None:
        trained_on = ""
    else:
        trained_on = f", and on {percent(card.training_accuracy)} of those it learned from"
    if of_baseline is None:
        baseline = ""
    else:
        baseline = f"; TF-IDF baseline {percent(of_baseline)}"
    return f"Right on {percent(own)} {of}{trained_on}{baseline}"


def show_confusion(counts: LabelledArray, what: str, key: str) -> None:
    """Which label was taken for which, as a heat map; `what` the texts are, and the chart's
    `key`.
    """
    counts = _in_order(counts)
    n_texts = int(counts.values.sum())
    if n_texts:
        right = f"{percent(_on_diagonal(counts))} lie on the diagonal"
    else:
        right = "there are none"
    show_figure(
        figures.confusion(counts, theme(), height=300),
        key=f"{key} confusion",
        alt=(
            f"A table of {len(counts.axes[0].labels)} right labels by the labels that the model "
            f"gave, over {n_texts:,} {what}; "
            f"{right}."
        ),
    )


def _in_order(counts: LabelledArray) -> LabelledArray:
    """The confusion matrix with its labels from the lowest to the highest, where they have an
    order.
    """
    order = label_order(counts.axes[0].labels)
    if order is None:
        return counts
    return reorder_labels(counts, order)


def _on_diagonal(counts: LabelledArray) -> float:
    return float(np.trace(counts.values) / counts.values.sum())


def show_distances(counts: LabelledArray, of_baseline: LabelledArray | None, key: str) -> None:
    """For labels with an order: how far from its own label the model, and the baseline if known,
    put a text.
    """
    if label_order(counts.axes[0].labels) is None or not counts.values.sum():
        return
    both = [_in_order(each) for each in (counts, of_baseline) if each is not None]
    shares = [label_distances(each) for each in both]
    errors = [mean_absolute_error(each) for each in both]
    beside = f", the baseline {errors[1]:.2f}" if len(errors) > 1 else ""
    st.markdown(
        f"**How far off it is**: {errors[0]:.2f} labels on average{beside}", help=ABOUT_DISTANCES
    )
    spelled_out = ", ".join(
        f"{name} {percent(float(share))}"
        for name, share in zip(shares[0].axes[0].labels, shares[0].values, strict=True)
    )
    show_figure(
        figures.distances(shares[0], shares[1] if len(shares) > 1 else None, theme()),
        key=f"{key} distances",
        alt=(
            f"How many labels away from the right one the model's label is: {spelled_out}; mean "
            "absolute error "
            f"{errors[0]:.2f}{beside}."
        ),
    )


def evaluate(
    key: ModelKey, texts: LabelledTexts, identity: str, training: LabelledTexts | None = None
) -> LabelledAnswers:
    """The model evaluated on texts with labels, which caches know by their `identity`.

    A baseline learns from `training`, by default the texts that the card of the model names.

    Raises:
        ValueError: a label is none of the model's.
    """
    names = language_model(key).labels
    texts = texts.renumber_labels(names)
    of_baseline = None
    try:
        if training is None:
            training = split(key)[0]
        else:
            training = training.renumber_labels(names)
        of_baseline = _baseline(training.sha256, texts.sha256, training, texts)
    except (ValueError, OSError):
        pass
    return LabelledAnswers(texts, probabilities(key, identity, texts.texts), of_baseline)


@st.cache_data(max_entries=16, show_spinner="Counting words, for the baseline")
def _baseline(
    training: str, identity: str, _training: LabelledTexts, _texts: LabelledTexts
) -> tuple[int, ...]:
    return tuple(baseline(_training, _texts).probabilities.argmax(1).tolist())


@jobs.data("Labelling the texts", max_entries=32)
def probabilities(key: ModelKey, identity: str, _texts: tuple[str, ...]) -> Float64Array:
    """The probabilities of the labels for `_texts` [texts, n_label], which caches know by their
    `identity`.
    """
    lm = language_model(key)
    parts = []
    for start in range(0, len(_texts), AT_A_TIME):
        some = _texts[start : start + AT_A_TIME]
        with progress.part(start, len(_texts), len(some), step="text"):
            parts.append(lm.probabilities(some))
    return np.concatenate(parts)


def show_evaluation(evaluation: LabelledAnswers, what: str, key: str) -> None:
    """The accuracy beside that of the baseline, the labels that are confused, and the most
    confident mistakes.
    """
    counts = evaluation.confusion
    of_baseline = evaluation.baseline_confusion
    left, right = st.columns([4, 5], gap="medium")
    with left:
        with st.container(horizontal=True):
            st.metric(
                "This model",
                percent(evaluation.accuracy),
                help=f"How many of {len(evaluation.texts):,} {what} it gets right.",
            )
            if of_baseline is None:
                st.metric(
                    "TF-IDF baseline",
                    "–",
                    help=f"The texts it would learn from are not on this machine. {ABOUT_BASELINE}",
                )
            else:
                st.metric(
                    "TF-IDF baseline", percent(_on_diagonal(of_baseline)), help=ABOUT_BASELINE
                )
        show_confusion(counts, what, key)
    wrong = mistakes(evaluation.texts.labels, evaluation.probabilities, MOST_MISTAKES)
    with right:
        show_distances(counts, of_baseline, key)
        if not wrong:
            st.success("No mistake.")
            return
        st.markdown(
            "**Its most confident mistakes**",
            help="Choose a row to take the text apart, word by word.",
        )
        texts = evaluation.texts
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
    """A table with a column `text`; a row chosen in it, or in the select box below, becomes the
    prompt of the view of words.
    """
    texts = rows["text"]
    box = f"{key} pick"

    def read_row(row: int) -> None:
        st.session_state["prompt"] = texts.iloc[row][: longest_prompt()]
        st.session_state["view"] = WORDS

    def pick_row() -> None:
        if (row := st.session_state[box]) is not None:
            read_row(row)

    number = st.column_config.NumberColumn(format="%.1f %%")
    picking.table(
        rows,
        read_row,
        key=key,
        height=pixels(height),
        column_config={name: number for name in rows.columns if name.startswith("probability")},
    )
    st.selectbox(
        "Take a text apart",
        range(len(rows)),
        index=None,
        key=box,
        format_func=lambda row: f"{row + 1}: {texts.iloc[row][:LONGEST_OPTION]}",
        on_change=pick_row,
        placeholder="Choose one of these texts",
        help="It becomes the prompt, and the page shows what each of its words does. You can also "
        "click a row of the table.",
    )


def texts_of_card(
    card: Card, labelled: LabelledTexts
) -> tuple[LabelledTexts, LabelledTexts] | None:
    """The texts trained on and those held out, where `labelled` are the texts that the card names;
    else None.
    """
    source = card.source
    if card.corpus_sha256 != labelled.sha256 or source is None:
        return None
    try:
        parts = LabelledSource(
            labelled, float(source.get("fraction", 0.9)), int(source.get("seed", 0))
        ).split()
    except (TypeError, ValueError, OverflowError):
        return None
    # A card of an older version may mean another way to split.
    sizes = {"training": len(parts[0]), "held_out": len(parts[1])}
    if card.texts is None or card.texts == sizes:
        return parts
    return None


def worst_mistake(subject: Subject) -> tuple[str, str, str] | None:
    """The most confident mistake of the finished model on held-out texts: the text, its label, and
    the label given.
    """
    try:
        texts = split(subject.key)[1]
    except (ValueError, OSError):
        return None
    wrong = mistakes(
        texts.labels,
        probabilities(scrubber.as_saved_last(subject.key), texts.sha256, texts.texts),
        1,
    )
    if not wrong:
        return None
    return (
        texts.texts[wrong[0].row][: longest_prompt()],
        texts.names[wrong[0].label],
        texts.names[wrong[0].predicted],
    )
