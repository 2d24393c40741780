"""The view of a file of the user's: every text labelled, the model evaluated if the file has
labels, and one trained on it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from gptviz.data.classification import LabelledSource
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine.errors import reason_of
from gptviz.machine.hosting import NO_UPLOADS, upload_limit
from gptviz.runs.experiments import PLANS
from gptviz.runs.names import free_name
from gptviz.text import LabelledTexts, labelled_of, opinions, texts_of
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.shell.close import PageResult
from gptviz.ui.shell.subject import Subject, opening
from gptviz.ui.views.planned_run import (
    UPLOADED,
    PlannedRun,
    estimate_of,
    has_begun,
    refusal,
    summary,
)
from gptviz.ui.widgets import escape_markdown, press_button
from gptviz.ui.widgets.details import ROWS_SHOWN, csv_button

from .held_out import evaluate, probabilities, show_evaluation, take_apart, texts_of_card

MOST_TEXTS = 200_000
MOST_UPLOADED = 10  # MB
MOST_LABELS = 10  # with a column of probabilities each
LONGEST_TITLE = 160  # characters of a text
N_OPINIONS = 200
# of a model that is trained on the file
PLAN = "stars"
NAME = "my-classifier"
UPLOADER = "labelled file"
_FILE = "labelled file kept"


@dataclass(frozen=True)
class File:
    """A file of the user's, as it was read."""

    name: str
    texts: tuple[str, ...]
    labelled: LabelledTexts | None  #: the texts with their labels, or None if they cannot be used
    problem: str  #: why the labels cannot be used; empty if they can
    identity: str  #: what tells its content from others, for caches
    is_own: bool = True  #: whether it is the user's, and not the example shown until there is one


@st.cache_resource(max_entries=4, show_spinner="Reading the file")
def _read_file(data: bytes, name: str) -> File:
    texts = tuple(texts_of(data, name))
    if len(texts) > MOST_TEXTS:
        raise ValueError(
            f"{name} has {len(texts):,} texts, at most {MOST_TEXTS:,} are labelled here: split it"
        )
    identity = hashlib.sha256(data).hexdigest()
    try:
        return File(name, texts, labelled_of(data, name), "", identity)
    except ValueError as error:
        return File(name, texts, None, str(error), identity)


@st.cache_resource(max_entries=1, show_spinner=False)
def _example() -> File:
    example = opinions(N_OPINIONS)
    return File("opinions", example.texts, example, "", example.sha256, is_own=False)


def file_control() -> File | None:
    """The control for the file, which stays while other views are open, or None if there is none
    that can be read.
    """

    def keep() -> None:
        file = st.session_state[UPLOADER]
        st.session_state[_FILE] = (
            None if file is None else (Path(file.name).name[:80], file.getvalue())
        )

    hint = (
        "CSV in UTF-8. Its first line names the columns: text, and label, if the labels are "
        "known. Nothing leaves this machine."
    )
    if (most := upload_limit(MOST_UPLOADED)) is None:
        st.caption(NO_UPLOADS)
        return None
    st.file_uploader(
        "A CSV file with a column text",
        key=UPLOADER,
        help=hint,
        on_change=keep,
        max_upload_size=most,
    )
    given = st.session_state.get(_FILE)
    if given is None:
        return None
    name, data = given
    try:
        return _read_file(data, name)
    except (ValueError, OSError) as error:
        st.error(f"{escape_markdown(reason_of(error))}.")
        return None


def own_file(subject: Subject) -> PageResult:
    """The view of a file: every text labelled, the model evaluated where its labels are known, and
    a button to train on it.
    """
    file = file_control()
    if file is None:
        file = _example()
        st.caption(
            f"Until you give one, this view shows {N_OPINIONS} opinions made by a grammar, in "
            "which “not” and “never” reverse "
            "the meaning of a word."
        )
    else:
        st.caption(f"{escape_markdown(file.name)}: {len(file.texts):,} texts")
    answers = probabilities(subject.key, file.identity, file.texts)
    rows = predictions(file, answers, subject.lm.labels)
    take_apart(rows.head(ROWS_SHOWN), "predictions", height=220)
    with st.container(horizontal=True, vertical_alignment="center"):
        csv_button(
            rows,
            "labels",
            "Download the labels as CSV",
            icon=":material/download:",
            help="All texts, each with its likeliest label and the probability of every label. A "
            "text that a spreadsheet would "
            "compute (it begins with =, +, - or @) has an apostrophe before it, which is removed "
            "when the file is read here.",
        )
        if len(rows) > ROWS_SHOWN:
            st.caption(f"The first {ROWS_SHOWN:,} of {len(rows):,} texts; the file has all.")
    axes = (
        Axis("text", tuple(text[:LONGEST_TITLE] for text in file.texts)),
        Axis("label", subject.lm.labels),
    )
    shown = PageResult(
        lambda: LabelledArray(answers, axes, "probability"), code(subject, file), "Many texts"
    )
    if file.labelled is None:
        st.info(
            "To test the model on it, or to train one, its labels are needed: "
            f"{escape_markdown(file.problem)}."
        )
        return shown
    try:
        # The model evaluated on a file; where it was trained on this very file, on the texts held
        # out.
        if not file.is_own:
            show_evaluation(
                evaluate(subject.key, file.labelled, file.identity), "opinions", key="own"
            )
        elif (parts := texts_of_card(subject.lm.card, file.labelled)) is not None:
            training, held_out = parts
            evaluation = evaluate(subject.key, held_out, held_out.sha256, training)
            st.caption(
                f"The model was trained on this file: it is tested only on the {len(held_out):,} "
                "texts that were held out then."
            )
            show_evaluation(evaluation, "texts held out", key="own")
        else:
            evaluation = evaluate(subject.key, file.labelled, file.identity)
            st.caption(
                "Texts that the model was trained on may be among these: a model is right more "
                "often on them."
            )
            show_evaluation(evaluation, "texts of the file", key="own")
    except ValueError as error:
        st.info(f"The model cannot be tested on it: {escape_markdown(str(error))}.")
    if file.is_own:
        train_on_file(file.labelled, subject.key.device)
    return shown


def predictions(file: File, probabilities: Float64Array, names: tuple[str, ...]) -> pd.DataFrame:
    """A row per text: the likeliest label with its probability in percent, its own label where
    known, and all probabilities.
    """
    best = probabilities.argmax(1)
    columns: dict[str, Any] = {"text": file.texts}
    if file.labelled is not None:
        columns["its label"] = [file.labelled.names[label] for label in file.labelled.labels]
    columns["label"] = [names[i] for i in best]
    columns["probability"] = 100 * probabilities.max(1, initial=0.0)
    if len(names) <= MOST_LABELS:
        columns |= {
            f"probability of {name}": 100 * probabilities[:, i] for i, name in enumerate(names)
        }
    return pd.DataFrame(columns)


def code(subject: Subject, file: File) -> str:
    """The lines of `gptviz` that label the texts of a file, or those of the example."""
    imports = ["from gptviz.text import opinions"]
    texts = f"opinions({N_OPINIONS}).texts"
    if file.is_own:
        imports = ["from pathlib import Path", "from gptviz.text import texts_of"]
        texts = f"texts_of(Path({file.name!r}).read_bytes(), {file.name!r})"
    return f"""{opening(subject.lm, *imports, "from gptviz.labelled_array import Axis, LabelledArray")}
texts = {texts}
probabilities = lm.probabilities(texts)  # [texts, label]
LabelledArray(probabilities, (Axis("text", tuple(texts)), Axis("label", lm.labels)), "probability")"""


@st.cache_resource(
    max_entries=4, show_spinner=False, hash_funcs={LabelledTexts: lambda texts: texts.sha256}
)
def _plan_run(labelled: LabelledTexts) -> PlannedRun:
    """The plan for texts of the user's own, with these as its data; it has a problem where they are
    too few.
    """
    plan = PLANS[PLAN]
    source = LabelledSource(labelled, plan.fraction)
    try:
        config = source.fit_config(plan.config, plan.learn_tokenizer(source))
        problem = None
    except ValueError as error:
        config = None
        problem = str(error)
    return PlannedRun(
        PLAN,
        plan,
        source,
        vocabulary=None,
        recipe=plan.recipe,
        changes={},
        config=config,
        begin=None,
        problem=problem,
    )


def train_on_file(labelled: LabelledTexts, device: str) -> None:
    """The button that trains a classifier on texts with labels and opens the page that shows it
    learn.
    """
    planned = _plan_run(labelled)
    name = free_name(NAME)
    expected = estimate_of(planned, device)
    refused = refusal(planned, expected, name, device)
    with st.container(horizontal=True, vertical_alignment="center"):
        about = (
            f"Follows the plan {PLAN}: nine in ten texts are trained on, the others test the "
            "model. The Train page then shows "
            "how it learns."
        )
        look = {"type": "primary", "icon": ":material/model_training:", "help": about}
        started = press_button(
            "Train a classifier on it", key="train on file", disabled=refused is not None, **look
        )
        if expected is not None:
            st.caption(summary(expected), width="content")
        query = {**frame.shared_state(), "plan": PLAN, "data": UPLOADED}
        st.page_link(TRAIN.path, label="Choose every dimension instead", query_params=query)
    if refused:
        st.info(f"None can be trained on it: {escape_markdown(refused)}.")
    if started and has_begun(planned, name, device):
        st.session_state["run"] = name
        st.switch_page(TRAIN.path, query_params={"run": name})
