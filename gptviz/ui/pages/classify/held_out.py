"""A classifier put to the test on texts whose labels are known: held out, or in a file of the reader's, which may also teach."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.data.baseline import baseline
from gptviz.data.classification import LabelledSource
from gptviz.data.registry import source_from
from gptviz.figures.confusion import confusion as confusion_figure
from gptviz.figures.format import percent
from gptviz.interp.classification import Mistake, Numbers, confusion, mistakes
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.runs.experiments import PLANS
from gptviz.runs.run import free_name
from gptviz.text import LabelledTexts, labelled_of, opinions, texts_of
from gptviz.ui.shell import pages, scrubber
from gptviz.ui.shell.models import ModelKey, language_model, load_call
from gptviz.ui.shell.subject import LONGEST_PROMPT, Subject
from gptviz.ui.shell.theme import theme
from gptviz.ui.views import planned_run
from gptviz.ui.views.planned_run import PlannedRun
from gptviz.ui.widgets.details import ROWS_SHOWN
from gptviz.ui.widgets.markdown import escaped

MOST_MISTAKES = 20
MOST_COUNTED = 2**31  # texts in a cell of a card
MOST_LABELS = 10  # with a column of probabilities each
SHOWN = 160  # of a text in a title
N_OPINIONS = 200
PLAN, NAME = "classifier", "my-classifier"
AT_A_TIME, MOST_TEXTS = 4_096, 200_000
UPLOADER, _FILE, _DONE = "labelled file", "labelled file kept", "labelled file done"
ABOUT_BASELINE = """Held-out texts: kept from training. The baseline counts words, weighs them by how rare they are (TF-IDF),
and learns a linear model of the counts, by logistic regression, from the same texts: it knows no order of words."""
HOW = r"""
Every text is read as it would be above, and gets its likeliest label: a cell counts the texts of one label (row) that were taken
for another (column), its colour is the share of the row. Accuracy is the diagonal over all. The baseline reads the same texts:
TF-IDF and logistic regression of scikit-learn, learned on the texts the model was trained on (`confusion` and `mistakes` in
`gptviz/interp/classification.py`, `baseline` in `gptviz/data/baseline.py`, the split in `gptviz/data/classification.py`)."""
LIMITS = """Of some hundred texts an accuracy is known to some points only: of 1,000 texts 80 % right may as well be 77.5 or
82.5 % (95 % of the time). Labels are given by people, and some are wrong: read the mistakes. Texts of another kind than those
trained on may fare much worse."""


@dataclass(frozen=True)
class Test:
    """Texts with labels, numbered as the model numbers them, and what it makes of them.

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
        found: list[int] = self.probabilities.argmax(1).tolist()
        return found

    @property
    def accuracy(self) -> float:
        """The share of the texts whose likeliest label is theirs."""
        return float(np.mean(np.array(self.predicted) == self.texts.labels))

    @property
    def confusion(self) -> LabelledArray:
        """How many texts of each label were taken for which."""
        return confusion(self.texts.labels, self.predicted, self.texts.names)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1 else None


def on_card(card: Mapping[str, Any]) -> str | None:
    """How often the model and the baseline were right on held-out texts, as its card says; None where it does not."""
    own, beside = _number(card.get("accuracy")), _number(card.get("baseline_accuracy"))
    if own is None:
        return None
    texts = card.get("texts")
    n = texts.get("held_out") if isinstance(texts, dict) else None
    of = f"of {n:,} held-out texts" if isinstance(n, int) else "of its held-out texts"
    return f"Right on {percent(own)} {of}" + (f"; TF-IDF baseline {percent(beside)}" if beside is not None else "")


def confusion_on_card(card: Mapping[str, Any], names: tuple[str, ...]) -> LabelledArray | None:
    """Which label was taken for which on held-out texts, as the card says; None where it does not, or says nonsense."""
    rows, n_label = card.get("confusion"), len(names)
    if not isinstance(rows, list) or len(rows) != n_label:
        return None
    if not all(isinstance(row, list) and len(row) == n_label for row in rows):
        return None
    if not all(type(count) is int and 0 <= count <= MOST_COUNTED for row in rows for count in row):
        return None
    return LabelledArray(np.array(rows, np.int64), (Axis("label", names), Axis("predicted", names)), "texts")


def restored(card: Mapping[str, Any], labelled: LabelledTexts) -> tuple[LabelledTexts, LabelledTexts] | None:
    """The texts trained on and those held out where `labelled` are the texts that the card tells of, else None."""
    source = card.get("source")
    if card.get("corpus_sha256") != labelled.sha256 or not isinstance(source, dict):
        return None
    try:
        parts = LabelledSource(labelled, float(source.get("fraction", 0.9)), int(source.get("seed", 0))).split()
    except (TypeError, ValueError, OverflowError):
        return None
    # A card of an older version may tell of another way to split.
    told = card.get("texts")
    sizes = {"training": len(parts[0]), "held_out": len(parts[1])}
    return parts if told is None or told == sizes else None


# Read-only, shared by all sessions. An error is not kept: the texts may come.
@st.cache_resource(max_entries=2, show_spinner="Opening the texts it was trained on")
def _split(key: ModelKey) -> tuple[LabelledTexts, LabelledTexts]:
    lm = language_model(key)
    written = lm.card.get("source")
    source = source_from(written if isinstance(written, dict) else {})
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
    """What the model makes of `texts` [texts, n_label], known by their `identity`; of many, with a bar that says how far it is.
    Whatever the reader does meanwhile stops it, and what was done is kept."""
    starts, done = range(0, len(texts), AT_A_TIME), (key, identity)
    shown = len(starts) > 1 and st.session_state.get(_DONE) != done
    bar = st.progress(0.0) if shown else None
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


def put(key: ModelKey, texts: LabelledTexts, identity: str, training: LabelledTexts | None = None) -> Test:
    """The model's answers on texts with labels, known by their `identity`; `training` are those it was trained on, by default
    as its card says.

    Raises:
        ValueError: a label is none of the model's.
    """
    names = language_model(key).labels
    texts = texts.under(names)
    beside = None
    try:
        training = split(key)[0] if training is None else training.under(names)
        beside = _baseline(training.sha256, texts.sha256, training, texts)
    except (ValueError, OSError):
        pass
    return Test(texts, probabilities(key, identity, texts.texts), beside)


def worst(subject: Subject) -> tuple[str, str, str] | None:
    """The held-out text that is most confidently taken for something else, its label, and what it is taken for: by the model as
    it was saved last, so that nothing is read again at every step of training."""
    try:
        texts = split(subject.key)[1]
    except (ValueError, OSError):
        return None
    wrong = mistakes(texts.labels, probabilities(scrubber.as_saved_last(subject.key), texts.sha256, texts.texts), 1)
    if not wrong:
        return None
    return texts.texts[wrong[0].row][:LONGEST_PROMPT], texts.names[wrong[0].label], texts.names[wrong[0].predicted]


def _why(subject: Subject, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"The texts that {subject.key.name} was trained on ({subject.lm.card.get('corpus', '')}) are not on this machine"
    return f"There are no held-out texts of {subject.key.name}: {error}"


def held_out(subject: Subject) -> Test | None:
    """The view of the held-out texts; None where they are not here, which it says."""
    try:
        texts = split(subject.key)[1]
    except (ValueError, OSError) as error:
        _without_texts(subject, error)
        return None
    test = put(subject.key, texts, texts.sha256)
    show(test, "texts held out", key="held out")
    return test


def _without_texts(subject: Subject, error: Exception) -> None:
    """What the card tells of held-out texts that are not here, what is missing, and how to bring the texts."""
    card = subject.lm.card
    said, counts = on_card(card), confusion_on_card(card, subject.lm.labels)
    bring = "Give a labelled file to test it on"
    if isinstance(card.get("corpus_sha256"), str):
        bring += "; in the one it was trained on, the texts held out are found again"
    sentence = (
        f"{escaped(_why(subject, error))}, so its mistakes cannot be shown: which of them it gets wrong. "
        f"{f'Its card says: {escaped(said)}. ' if said else ''}{bring}."
    )
    if counts is None:
        st.info(sentence, icon=":material/folder_off:")
        return
    left, right = st.columns([4, 5], gap="medium")
    with left:
        _confusion(counts, "held-out texts, as its card says", key="card")
    with right:
        st.info(sentence, icon=":material/folder_off:")


def _confusion(counts: LabelledArray, what: str, key: str) -> None:
    """Which label was taken for which."""
    n_texts = int(counts.values.sum())
    right = f"{percent(float(np.trace(counts.values)) / n_texts)} lie on the diagonal" if n_texts else "there are none"
    st.plotly_chart(
        confusion_figure(counts, theme(), height=300),
        key=f"{key} confusion",
        config={"displayModeBar": False},
        alt=f"Which of {len(counts.axes[0].labels)} labels was taken for which, over {n_texts:,} {what}; {right}.",
    )


def show(test: Test, what: str, key: str) -> None:
    """Accuracy beside the baseline's, which label was taken for which, and the most confident mistakes."""
    left, right = st.columns([4, 5], gap="medium")
    with left:
        with st.container(horizontal=True):
            st.metric("This model", percent(test.accuracy), help=f"How many of {len(test.texts):,} {what} it gets right.")
            if test.baseline is None:
                st.metric("TF-IDF baseline", "–", help=f"The texts it would learn from are not here. {ABOUT_BASELINE}")
            else:
                st.metric("TF-IDF baseline", percent(test.baseline), help=ABOUT_BASELINE)
        _confusion(test.confusion, what, key)
    wrong = mistakes(test.texts.labels, test.probabilities, MOST_MISTAKES)
    with right:
        if not wrong:
            st.success("No mistake.")
            return
        st.markdown("**Its most confident mistakes**", help="Choose a row to take the text apart, word by word.")
        _table(test.texts, wrong, key)


def _table(texts: LabelledTexts, wrong: Sequence[Mistake], key: str) -> None:
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
    """A table whose column `text` is read above, word by word, for the row that is chosen."""

    def read() -> None:
        chosen = st.session_state[key].selection.rows
        if chosen:
            st.session_state["prompt"] = rows["text"].iloc[chosen[0]][:LONGEST_PROMPT]
            st.session_state["view"] = "Words"

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


@dataclass(frozen=True)
class File:
    """A file of the reader's, as read.

    Attributes:
        labelled: the texts with their labels, None where it has none to learn or to test with; `problem` says why.
        is_own: not the example shown until there is one.
    """

    name: str
    texts: tuple[str, ...]
    labelled: LabelledTexts | None
    problem: str
    identity: str
    is_own: bool = True


@st.cache_resource(max_entries=4, show_spinner="Reading the file")
def _read(data: bytes, name: str) -> File:
    texts = tuple(texts_of(data, name))
    if len(texts) > MOST_TEXTS:
        raise ValueError(f"{name} has {len(texts):,} texts, at most {MOST_TEXTS:,} are labelled here: split it")
    identity = hashlib.sha256(data).hexdigest()
    try:
        return File(name, texts, labelled_of(data, name), "", identity)
    except ValueError as error:
        return File(name, texts, None, str(error), identity)


@st.cache_resource(max_entries=1, show_spinner=False)
def _example() -> File:
    made = opinions(N_OPINIONS)
    return File("opinions", made.texts, made, "", made.sha256, is_own=False)


def uploaded() -> File | None:
    """The control for the file, which is kept while other views are looked at; None where there is none that can be read."""

    def keep() -> None:
        file = st.session_state[UPLOADER]
        st.session_state[_FILE] = None if file is None else (Path(file.name).name[:80], file.getvalue())

    about = (
        "CSV in UTF-8. Its first line names the columns: text, and label, if the labels are known. Nothing leaves this machine."
    )
    st.file_uploader("A CSV file with a column text", key=UPLOADER, help=about, on_change=keep)
    kept = st.session_state.get(_FILE)
    if kept is None:
        return None
    name, data = kept
    try:
        return _read(data, name)
    except (ValueError, OSError) as error:
        st.error(f"{escaped(str(error))}.")
        return None


def own_file(subject: Subject) -> tuple[File, Numbers]:
    """The view of a file: every text labelled; tested where its labels are known; and a model trained on it."""
    file = uploaded()
    if file is None:
        file = _example()
        st.caption(f"Until there is one: {N_OPINIONS} opinions made by a grammar, in which a denial turns a word round.")
    else:
        st.caption(f"{escaped(file.name)}: {len(file.texts):,} texts")
    found = probabilities(subject.key, file.identity, file.texts)
    rows = predictions(file, found, subject.lm.labels)
    take_apart(rows.head(ROWS_SHOWN), "predictions", height=220)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Download the labels as CSV",
            lambda: rows.to_csv(index=False),
            "labels.csv",
            "text/csv",
            on_click="ignore",
            icon=":material/download:",
            help="All texts, each with its likeliest label and the probability of every label.",
        )
        if len(rows) > ROWS_SHOWN:
            st.caption(f"The first {ROWS_SHOWN:,} of {len(rows):,} texts; the file has all.")
    if file.labelled is None:
        st.info(f"To test the model on it, or to train one, its labels are needed: {escaped(file.problem)}.")
        return file, found
    try:
        _tested(subject, file, file.labelled)
    except ValueError as error:
        st.info(f"The model cannot be tested on it: {escaped(str(error))}.")
    if file.is_own:
        teach(file.labelled, subject.key.device)
    return file, found


def _tested(subject: Subject, file: File, labelled: LabelledTexts) -> None:
    """The model put to the test on a file: where it was trained on this very file, on what of it was held out.

    Raises:
        ValueError: a label is none of the model's.
    """
    if not file.is_own:
        show(put(subject.key, labelled, file.identity), "opinions", key="own")
    elif (parts := restored(subject.lm.card, labelled)) is not None:
        training, held_out = parts
        test = put(subject.key, held_out, held_out.sha256, training)
        st.caption(f"It was trained on this file: only the {len(held_out):,} texts held out then test it.")
        show(test, "texts held out", key="own")
    else:
        test = put(subject.key, labelled, file.identity)
        st.caption("Texts it was trained on may be among these: on those a model is right more often.")
        show(test, "texts of the file", key="own")


def predictions(file: File, found: Numbers, names: tuple[str, ...]) -> pd.DataFrame:
    """A row per text: the likeliest label with its probability in percent, its own label where known, and all probabilities."""
    best = found.argmax(1)
    columns: dict[str, Any] = {"text": file.texts}
    if file.labelled is not None:
        columns["its label"] = [file.labelled.names[label] for label in file.labelled.labels]
    columns["label"] = [names[i] for i in best]
    columns["probability"] = 100 * found.max(1, initial=0.0)
    if len(names) <= MOST_LABELS:
        columns |= {f"probability of {name}": 100 * found[:, i] for i, name in enumerate(names)}
    return pd.DataFrame(columns)


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs={LabelledTexts: lambda texts: texts.sha256})
def planned(labelled: LabelledTexts) -> PlannedRun:
    """The plan of the classifier that ships, on these texts; with its problem where they are too few."""
    plan = PLANS[PLAN]
    source = LabelledSource(labelled, plan.fraction)
    try:
        config, problem = source.fitted(plan.config, plan.learn_tokenizer(source)), None
    except ValueError as error:
        config, problem = None, str(error)
    return PlannedRun(PLAN, plan, source, None, plan.recipe, {}, config, None, problem)


def teach(labelled: LabelledTexts, device: str) -> None:
    """The button that trains a classifier on texts with labels, and turns to the page where it is watched."""
    plan, name = planned(labelled), free_name(NAME)
    expected = planned_run.estimate_of(plan, device)
    refused = planned_run.refusal(plan, expected, name, device)
    with st.container(horizontal=True, vertical_alignment="center"):
        about = f"As the plan {PLAN} says: nine in ten texts teach, the others test. The Train page then shows it learn."
        icon = ":material/model_training:"
        begun = st.button("Train a classifier on it", type="primary", icon=icon, help=about, disabled=refused is not None)
        if expected is not None:
            st.caption(planned_run.summary(expected), width="content")
        query = {**pages.shared_state(), "plan": PLAN, "data": planned_run.UPLOADED}
        st.page_link(pages.TRAIN.path, label="Choose every dimension instead", query_params=query)
    if refused:
        st.info(f"None can be trained on it: {escaped(refused)}.")
    if not begun:
        return
    try:
        with st.spinner("Getting the data ready"):
            planned_run.begin(plan, name, device)
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        st.error(escaped(str(error)) or "There is not enough memory for this model.")
        return
    st.session_state["run"] = name
    st.switch_page(pages.TRAIN.path, query_params={"run": name})


def code_held_out(subject: Subject) -> str:
    """The lines of `gptviz` that compute the confusion of held-out texts."""
    return f"""import gptviz
from gptviz.interp.classification import confusion, mistakes
from gptviz.data.registry import source_from

lm = {load_call(subject.lm)}
held_out = source_from(lm.card["source"]).split()[1].under(lm.labels)
probabilities = lm.probabilities(held_out.texts)  # [texts, label]
counts = confusion(held_out.labels, probabilities.argmax(1), lm.labels)
wrong = mistakes(held_out.labels, probabilities)"""


def code_file(subject: Subject, name: str) -> str:
    """The lines of `gptviz` that label the texts of a file."""
    return f"""from pathlib import Path

import gptviz
from gptviz.text import texts_of

lm = {load_call(subject.lm)}
texts = texts_of(Path({name!r}).read_bytes(), {name!r})
probabilities = lm.probabilities(texts)  # [texts, label]"""


def table(file: File, found: Numbers, names: tuple[str, ...]) -> LabelledArray:
    """The probability of every label for every text of a file [text, label]."""
    titles = tuple(text[:SHOWN] for text in file.texts)
    return LabelledArray(found, (Axis("text", titles), Axis("label", names)), "probability")
