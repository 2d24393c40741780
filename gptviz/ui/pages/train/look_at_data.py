"""A look at the data chosen in the form: how much there is, how often each token comes, and the first batch of the run."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from gptviz.data.batches import Batch
from gptviz.data.statistics import ShownRow, shown_rows, statistics
from gptviz.data.trained_on import draw_seed
from gptviz.figures.kit.axes import legend
from gptviz.figures.reading.frequencies import MOST, frequencies
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Config
from gptviz.ui.views.planned_run import PlannedRun
from gptviz.ui.widgets import escaped, pressed, show_figure, theme

from .data import learned_tokenizer

ROWS = 4  # of the batch
MOST_PLACES = 128
ABOUT_BATCH = {
    "decoder": (
        "A row of x above a row of y: y is x moved by one place, so that below each token is the token that comes next. At each "
        "place the model sees x up to that place and must guess y. A dot is a guess that does not count."
    ),
    "classifier": "A row of x is a text, and the model must guess its label.",
    "encoder-decoder": (
        "The encoder reads the whole source. x is a token that says “start”, followed by the right answer; y is the right "
        "answer, followed by a token that says “end”. At each place the model sees the source and x up to that place, and must "
        "guess y. A dot is a guess that does not count."
    ),
}


def data_button(planned: PlannedRun, label: str = "Look at the data") -> None:
    """The button that shows what the data are like; there is nothing to show before they are chosen."""
    nothing = planned.source is None or planned.problem is not None
    if pressed(label, key=label.lower().replace("the data", "data"), icon=":material/search:", disabled=nothing):
        st.dialog("What it learns from", width="large")(look)(planned)


def look(planned: PlannedRun) -> None:
    """The statistics of the data, and the first rows that this run will read."""
    source, config = planned.source, planned.config
    if source is None or config is None:
        return
    try:
        tokenizer = learned_tokenizer(source, planned.plan.tokenizer, planned.vocabulary or planned.plan.config.vocab_size)
        config = source.fitted(config, tokenizer)
        known = statistics(source, tokenizer, config)
        drawn = source.data(tokenizer, config).training(planned.recipe.batch_size, draw_seed(planned.recipe.seed, 0, "batch"))
    except ValueError as error:
        st.error(escaped(str(error)))
        return
    st.markdown(" · ".join(f"{escaped(what)}: **{count:,}**" for what, count in known.facts.items()))
    show_figure(
        frequencies(LabelledArray(known.shares, (Axis("token", known.tokens),), "share"), theme()),
        key="frequencies",
        alt=f"How often each token comes in {known.counted}, the most frequent first.",
    )
    st.caption(f"Counted in {known.counted}. {legend(known.tokens[:MOST])}".strip())
    rows = shown_rows(drawn.rows(slice(ROWS)), tokenizer, config, tuple(source.label_names))
    st.markdown(f"**The first batch of this run**: {_some(drawn, config)}")
    st.dataframe(table(rows), height="content", alt="What the model reads and what it must guess, token by token.")
    st.caption(ABOUT_BATCH[config.kind])


def _some(batch: Batch, config: Config) -> str:
    rows, places = batch.inputs[0].shape
    shown = f"the first {ROWS} of its {rows:,} rows" if rows > ROWS else f"its {rows:,} rows"
    cut = f", the first {MOST_PLACES} of {places:,} places" if places > MOST_PLACES else ""
    return f"{shown}{cut}, drawn by the seed. x has the shape ({', '.join(map(str, batch.inputs[0].shape))})."


def table(rows: list[ShownRow]) -> pd.DataFrame:
    """A line for each of `rows` and of what it holds, a column for each place."""
    lines = {}
    for number, row in enumerate(rows, 1):
        for what, labels in row.lines.items():
            whose = f"row {number}, label {row.label}" if row.label else f"row {number}"
            lines[f"{whose}: {what}"] = labels[:MOST_PLACES]
    return pd.DataFrame.from_dict(lines, orient="index").fillna("").rename(columns=lambda place: str(place + 1))
