"""The view Rows of Compare: single sentences or lines of the data of A, how hard both find them, and which A had read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.data.seen import Row
from gptviz.figures.changing.rows import NEVER, READ, UNKNOWN
from gptviz.figures.changing.rows import rows as drawn
from gptviz.figures.kit.format import counted, small
from gptviz.interp import compare
from gptviz.interp.compare import Compared
from gptviz.interp.reading.row_losses import difference
from gptviz.labelled_array import LabelledArray
from gptviz.ui.shell.close import NOTHING, Shown
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.widgets import controls, escaped, in_quotes, jobs, show_figure, theme
from gptviz.ui.widgets.figure import pixels

from .sides import Sides, code

TEXT, ORDER = "rows_text", "rows_first"
LONGEST, LONGEST_QUOTED = 20_000, 60
HARDEST, BETTER, WORSE, READ_MOST = "hardest for A", "easier for A than for B", "harder for A than for B", "read most often"


def rows(sides: Sides) -> Shown:
    """The loss of single rows of the data, unless B reads other tokens."""
    text = asked(sides)
    try:
        some, losses = found(sides, text)
    except ValueError as error:
        st.info(f"{escaped(str(error))}.", icon=":material/info:")
        return NOTHING
    show(sides, some, losses)
    own = f"a.data_rows({'' if text is None else repr(text)})"
    call = f"compare.compared(a.losses_of_rows({own}), b.losses_of_rows({own}))"
    return Shown(losses.table, code(sides, call, of_models=True))


def asked(sides: Sides) -> str | None:
    """The control for a text of the reader's own; without one None, or the prompt of A where nobody knows its data."""
    about = "Whose rows are read: a text of yours, or where this is empty what A was trained on and what was held out."
    typed = controls.text("Text", key=TEXT, help=about, longest=LONGEST, height=pixels(68), placeholder="the data of A")
    if typed.strip():
        return typed
    try:
        _rows(sides.a.key.unedited, None)
    except (ValueError, OSError) as error:
        st.info(f"The prompt is read instead of the data: {escaped(str(error))}.", icon=":material/info:")
        return sides.a.prompt
    return None


@jobs.resource("Counting what it was trained on", max_entries=16)
def _rows(key: ModelKey, text: str | None) -> list[Row]:
    return language_model(key).data_rows(text)


def found(sides: Sides, text: str | None) -> tuple[list[Row], Compared]:
    """The rows, and their losses in A and in B.

    Raises:
        ValueError: as in `LanguageModel.data_rows` and `LanguageModel.losses_of_rows`.
    """
    of = sides.a.key.unedited
    return _rows(of, text), compare.compared(*(_losses(one.key, of, text) for one in (sides.a, sides.b)))


@jobs.resource("Reading the rows", max_entries=32)
def _losses(key: ModelKey, rows_of: ModelKey, text: str | None) -> LabelledArray:
    return language_model(key).losses_of_rows(_rows(rows_of, text))


def show(sides: Sides, rows: Sequence[Row], both: Compared) -> None:
    """A point for each row, what it changed to have read it, and the rows as a table."""
    left, right = st.columns([5, 4])
    with left:
        show_figure(
            drawn(both.a, both.b, list(map(group, rows)), theme(), height=420),
            key="rows",
            alt=f"The loss of {counted(len(rows), 'row')} in A against that in B.",
        )
    with right:
        st.markdown(said(rows, both))
        order = controls.select("First", orders(rows), key=ORDER, help="Which rows stand first in the table.")
        st.dataframe(table(rows, both, order), height=pixels(300), hide_index=True)


def group(row: Row) -> str:
    """Whether A had read a row in training, as the figure says it."""
    return UNKNOWN if row.times is None else READ if row.times else NEVER


def said(rows: Sequence[Row], both: Compared) -> str:
    """The hardest row, how much easier A finds them than B, and what it changed to have read some, as Markdown."""
    a, b = (np.asarray(one.values, float) for one in (both.a, both.b))
    hardest = int(np.nanargmax(a))
    text = " ".join(rows[hardest].text.split())
    quoted = in_quotes(text if len(text) <= LONGEST_QUOTED else f"{text[:LONGEST_QUOTED]}…")
    lines = [
        f"Hardest for A: {quoted}, with a loss of **{small(a[hardest], 2)}** nats per token. A finds **{int((a < b).sum())} of "
        f"{len(rows)}** rows easier than B; the means are {small(np.nanmean(a), 3)} in A and {small(np.nanmean(b), 3)} in B."
    ]
    read = np.array([group(row) == READ for row in rows])
    never = np.array([group(row) == NEVER for row in rows])
    if not (read.any() and never.any()):
        if read.any():
            lines.append("A had read every one of these rows in its training.")
        return "\n\n".join(lines)
    in_a = difference(a[read], a[never])
    lines.append(
        f"**{in_a.counts[0]}** rows A had read in its training: their mean loss is {small(in_a.means[0], 3)}. "
        f"**{in_a.counts[1]}** it had never read: {small(in_a.means[1], 3)}. What it has read has a loss "
        f"{_by(in_a.value, in_a.error)}."
    )
    return "\n\n".join(lines)


def _by(value: float, error: float) -> str:
    """A difference of means in words, with its standard error and what that says."""
    way = "lower" if value < 0 else "higher"
    if math.isnan(error):
        return f"{small(abs(value), 3)} {way}"
    clear = "more than chance alone would give" if abs(value) > 2 * error else "no more than chance alone could give"
    return f"{small(abs(value), 3)} {way}, with a standard error of {small(error, 3)}: {clear}"


def orders(rows: Sequence[Row]) -> list[str]:
    """The orders of the table that these rows can have."""
    return [HARDEST, BETTER, WORSE, *([READ_MOST] if any(row.times for row in rows) else [])]


def table(rows: Sequence[Row], both: Compared, order: str) -> pd.DataFrame:
    """A line for each row."""
    a, b = np.asarray(both.a.values, float), np.asarray(both.b.values, float)
    times = np.array([row.times or 0 for row in rows])
    by = {HARDEST: -a, BETTER: a - b, WORSE: b - a, READ_MOST: -times}[order]
    kinds = {None: "", False: "to train on", True: "held out"}
    return pd.DataFrame(
        [
            {
                "row": " ".join(rows[i].text.split()),
                "A": round(a[i], 3),
                "B": round(b[i], 3),
                "times read by A": rows[i].times,
                "part": kinds[rows[i].held_out],
            }
            for i in np.argsort(by, kind="stable").tolist()
        ]
    )
