"""The data of the form: a task, a text, or a file of the user's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from gptviz.data.registry import FROM_FILES, source_named
from gptviz.data.source import Source
from gptviz.data.statistics import ShownRow, shown_rows, statistics
from gptviz.data.text import TaskSource, TextSource
from gptviz.data.trained_on import draw_seed
from gptviz.figures.kit.axes import legend
from gptviz.figures.reading.frequencies import MOST, frequencies
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine.hosting import NO_UPLOADS, hosting, upload_limit
from gptviz.model import Config
from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.runs.experiments import Plan
from gptviz.settings.address_values import whole_number
from gptviz.settings.fields import field_infos
from gptviz.text import (
    GENERATED,
    PAIR_TASKS,
    TASKS,
    Corpus,
    Tokenizer,
    corpora,
    task,
    tiny_shakespeare,
)
from gptviz.text.datasets.base import LONGEST_TEXT
from gptviz.ui.views.planned_run import UPLOADED, PlannedRun
from gptviz.ui.widgets import addresses, controls, escape_markdown, press_button, show_figure, theme
from gptviz.ui.widgets.figure import pixels
from gptviz.ui.widgets.tables import show_table

from .rules import complaint, key_of

PASTED = "a text you paste"
MOST_PASTED = 1_000_000
MOST_UPLOADED = 10  # MB
MOST_SETTING = 9  # of a task, where the task itself allows no more
# The key of the uploader for each kind of model, and what the file must hold.
FILES: dict[Kind, tuple[str, str]] = {
    "decoder": ("uploaded", "Plain text in UTF-8."),
    "classifier": (
        "labelled",
        "A table (CSV) in UTF-8 with the columns text and label: two labels or more.",
    ),
    "encoder-decoder": (
        "pairs",
        "A source and its answer in each line, with a tab or a comma between them, in UTF-8.",
    ),
}
ABOUT_DATA: dict[Kind, str] = {
    "decoder": (
        "Tasks make their own sequences, and it is known how well they can be predicted. A text "
        "is cut in two: the first part "
        "is for training, the rest for validation."
    ),
    "classifier": (
        "Opinions are made by a small grammar in which “not” and “never” reverse the meaning of a "
        "word: counting words does not "
        "help. Stars are made by a grammar too. If you give a table, nine texts in ten are for "
        "training, the rest for validation."
    ),
    "encoder-decoder": (
        "Tasks make pairs of a source and its answer, and hold some answers out. If you give a "
        "file, nine sources in ten are "
        "for training, the rest for validation."
    ),
}
# In the address, whether a second model is trained on another text, and the experiment that shows
# best what this does.
TWO = "two_texts"
TWO_PLAN = "jobs"
_TWIN = "_b"  # the end of the keys of the controls of the second text
ROWS = 4  # of the batch
MOST_PLACES = 128
ABOUT_BATCH = {
    "decoder": (
        "A row of x above a row of y: y is x moved by one place, so that below each token is the "
        "token that comes next. At each "
        "place the model sees x up to that place and must guess y. A dot is a guess that does not "
        "count."
    ),
    "classifier": "A row of x is a text, and the model must guess its label.",
    "encoder-decoder": (
        "The encoder reads the whole source. x is a token that says “start”, followed by the "
        "right answer; y is the right "
        "answer, followed by a token that says “end”. At each place the model sees the source and "
        "x up to that place, and must "
        "guess y. A dot is a guess that does not count."
    ),
}


def two_control(plan: Plan, on_change: Callable[[], None]) -> bool:
    """The control `two_texts`: whether a second model is trained on other data; models that do not
    go on with texts have none.
    """
    if not MODEL_KINDS[plan.config.kind].continues:
        return False
    hint = (
        "Train a second model beside this one: its data differ, and nothing else, not even the "
        "seed. Then ask both, and see what "
        "the data did."
    )
    return controls.switch("Two texts", key=TWO, help=hint, on_change=on_change)


def data_control(plan: Plan, first: str | None = None) -> str:
    """The control `data`: what a model of the plan's kind can learn from; with the data of the
    `first`, that of its twin.
    """
    kind = plan.config.kind
    offered: dict[Kind, list[str]] = {
        "decoder": [*TASKS, *(offer.name for offer in corpora()), PASTED],
        "classifier": [*GENERATED],
        "encoder-decoder": [*PAIR_TASKS],
    }
    names = [*offered[kind], UPLOADED]
    if first is None:
        return controls.select("Data", names, key="data", default=plan.data, help=ABOUT_DATA[kind])
    hint = "What the second model learns from: other settings of the same task, or another text."
    return controls.select(
        "Data of the second", names, key=f"data{_TWIN}", default=first, help=hint, follows=True
    )


def source_of(data: str, plan: Plan, folded: Any, *, twin: bool = False) -> Source | None:
    """The source for what was chosen as `data`, with its controls (those of a task in `folded`), or
    None if there is no text yet; of the `twin`, the second of two texts.

    Raises:
        ValueError: the data cannot be used.
        OSError: the data cannot be had.
    """
    kind = plan.config.kind
    end = _TWIN if twin else ""
    if data in TASKS:
        with folded:
            return _task(data, twin=twin)
    if data == PASTED:
        hint = (
            "What the model learns to go on with. A link or a reload brings it back on this "
            "machine."
        )
        label = "Your second text" if twin else "Your text"
        text = controls.text(
            label,
            key=f"pasted{end}",
            help=hint,
            longest=MOST_PASTED,
            height=pixels(110),
            lasting=True,
        )
        if text:
            return TextSource(_pasted(text), plan.fraction)
        return None
    if data == UPLOADED:
        key, hint = FILES[kind]
        if (most := upload_limit(MOST_UPLOADED)) is None:
            raise ValueError(NO_UPLOADS)
        label = "Your second file" if twin else "Your file"
        file = st.file_uploader(label, help=hint, key=f"{key}{end}", max_upload_size=most)
        if file:
            return _read_upload(file.name, file.getvalue(), kind, plan.fraction)
        return None
    if not MODEL_KINDS[kind].continues:
        return _made(data, plan.fraction)
    offer = next(offer for offer in corpora() if offer.name == data)
    if not offer.ready:
        # The button that downloads a text, with this end of its key; the page runs again once the
        # text is here.
        if hosting().read_only:
            raise ValueError(f"{data} is not on this server, which keeps nothing: take other data")
        st.caption(offer.description)
        if press_button("Fetch it now", icon=":material/download:", key=f"fetch{end}"):
            tiny_shakespeare()
            st.rerun()
        raise ValueError(f"{data} is not on this machine yet: fetch it, or take other data")
    return TextSource(_open_corpus(data), plan.fraction)


def _task(name: str, *, twin: bool) -> Source:
    """The task of this name with the settings of its controls; for the `twin` they begin with the
    settings that it suggests for a second.

    Raises:
        ValueError: the settings do not go together.
    """
    usual, end = (task(name).twin(), _TWIN) if twin else (task(name), "")
    settings: dict[str, Any] = {}
    with st.popover("Task of the second" if twin else "Task"):
        st.caption(usual.sentence)
        limits = usual.limits()
        for field, info in field_infos(type(usual)).items():
            default = getattr(usual, field)
            key = key_of(f"{name}_{field}{end}")
            if field not in limits:
                settings[field] = controls.text(
                    info.label, default, key=key, help=info.help, longest=LONGEST_TEXT, lasting=True
                )
                continue
            # which may hang on other settings: the task itself has the last word
            low, high = limits[field]
            low = min(low, 1)
            high = max(high, MOST_SETTING)
            addresses.accept_values(key, whole_number(low, high))
            look: dict[str, Any] = {"key": key, "help": info.help, "bind": "query-params"}
            settings[field] = int(st.number_input(info.label, low, high, default, 1, **look))
    return TaskSource(task(name, **settings))


@st.cache_resource(max_entries=8, show_spinner=False)
def _pasted(text: str) -> Corpus:
    return Corpus("pasted", text)


@st.cache_resource(max_entries=4, show_spinner="Reading the file")
def _read_upload(name: str, data: bytes, kind: Kind, fraction: float) -> Source:
    """The source that a file holds for a model of this kind.

    Raises:
        ValueError: the file cannot be used; the message says what is wrong with it.
    """
    return FROM_FILES[kind].from_bytes(data, Path(name).name[:80], fraction)


_made = st.cache_resource(max_entries=8, show_spinner=False)(source_named)


# Read-only, shared by all sessions: a text is in memory once.
@st.cache_resource(max_entries=4, show_spinner=False)
def _open_corpus(name: str) -> Corpus:
    return next(offer for offer in corpora() if offer.name == name).open()


def data_button(planned: PlannedRun, label: str = "Look at the data") -> None:
    """The button that shows what the data are like; there is nothing to show before they are
    chosen.
    """
    nothing = planned.source is None or planned.problem is not None
    if press_button(
        label,
        key=label.lower().replace("the data", "data"),
        icon=":material/search:",
        disabled=nothing,
    ):
        st.dialog("What it learns from", width="large")(look_at)(planned)


def look_at(planned: PlannedRun) -> None:
    """The statistics of the data, and the first rows that this run will read."""
    source = planned.source
    config = planned.config
    if source is None or config is None:
        return
    try:
        tokenizer = learned_tokenizer(
            source, planned.plan.tokenizer, planned.vocabulary or planned.plan.config.vocab_size
        )
        config = source.fit_config(config, tokenizer)
        known = statistics(source, tokenizer, config)
        drawn = source.data(tokenizer, config).training(
            planned.recipe.batch_size, draw_seed(planned.recipe.seed, 0, "batch")
        )
    except ValueError as error:
        st.error(escape_markdown(str(error)))
        return
    st.markdown(
        " · ".join(f"{escape_markdown(what)}: **{count:,}**" for what, count in known.facts.items())
    )
    show_figure(
        frequencies(LabelledArray(known.shares, (Axis("token", known.tokens),), "share"), theme()),
        key="frequencies",
        alt=f"How often each token comes in {known.counted}, the most frequent first.",
    )
    st.caption(f"Counted in {known.counted}. {legend(known.tokens[:MOST])}".strip())
    # How much of the batch is shown.
    count, places = drawn.inputs[0].shape
    if count > ROWS:
        some = f"the first {ROWS} of its {count:,} rows"
    else:
        some = f"its {count:,} rows"
    some += f", the first {MOST_PLACES} of {places:,} places" if places > MOST_PLACES else ""
    rows = shown_rows(drawn.rows(slice(ROWS)), tokenizer, config, tuple(source.label_names))
    st.markdown(
        f"**The first batch of this run**: {some}, drawn by the seed. x has the shape ({count}, "
        f"{places})."
    )
    show_table(
        rows_in_words(rows),
        height="content",
        alt="What the model reads and what it must guess, token by token.",
    )
    st.caption(ABOUT_BATCH[config.kind])


def learned_tokenizer(source: Source, kind: str, vocab_size: int) -> Tokenizer:
    """The tokenizer of a source, cached."""
    return _tokenizer(_identity(source), kind, vocab_size, source)


@st.cache_resource(max_entries=8, show_spinner="Reading the data")
def _tokenizer(identity: str, kind: str, vocab_size: int, _source: Source) -> Tokenizer:
    return _source.tokenizer(kind, vocab_size)


def _identity(source: Source) -> str:
    """A text that is different for every source, for caches."""
    return json.dumps(source.to_dict(), sort_keys=True)


def rows_in_words(rows: list[ShownRow]) -> pd.DataFrame:
    """A line for each of `rows` and of what it holds, a column for each place."""
    lines = {}
    for number, row in enumerate(rows, 1):
        for what, labels in row.lines.items():
            if row.label:
                whose = f"row {number}, label {row.label}"
            else:
                whose = f"row {number}"
            lines[f"{whose}: {what}"] = labels[:MOST_PLACES]
    return (
        pd.DataFrame.from_dict(lines, orient="index")
        .fillna("")
        .rename(columns=lambda place: str(place + 1))
    )


def no_text(data: str) -> str:
    """A sentence for data that have no text yet (`source_of` returned None), and what to do."""
    paste = ": paste one," if data == PASTED else ":"
    return f"there is no text yet{paste} choose a file, or take other data"


def known_complaint(source: Source, config: Config, tokenizer: Tokenizer) -> str | None:
    """Why a source does not go with a model of this config; None if it does. Cached."""
    return _complaint(
        _identity(source), config, f"{tokenizer.kind} {tokenizer.vocab_size}", source, tokenizer
    )


@st.cache_data(max_entries=64, show_spinner="Reading the data")
def _complaint(
    identity: str, config: Config, tokens: str, _source: Source, _tokenizer: Tokenizer
) -> str | None:
    return complaint(_source, config, _tokenizer)
