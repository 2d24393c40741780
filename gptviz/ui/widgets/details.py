"""The details folded below every figure: its numbers, the code that makes it, how it is computed, and what it cannot show."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.labelled_array import LabelledArray
from gptviz.streamlit_internals import READ_AS_A_WHOLE
from gptviz.text.datasets.tables import guarded

from .figure import pixels

ROWS_SHOWN = 10_000


def details(
    numbers: Callable[[], LabelledArray] | None = None, *, code: str | None = None, how: str, limits: str, key: str
) -> None:
    """The folded part below a figure.

    Args:
        numbers: returns the array the figure shows; called only when the reader opens the table. None for a view made by hand,
            which has a button for its numbers and one for its code.
        code: a few lines of `gptviz` that compute the same array.
        how: Markdown: the equation, and the function that computes it.
        limits: Markdown: what the figure leaves out or cannot show.
        key: tells the figures of one page apart.
    """
    if numbers is not None:
        _table(numbers, key)
    if code is not None:
        fold = folded("Code", icon=":material/code:", key=f"{key} code")
        if is_filled(fold):
            fold.code(code, language="python")
    fold = folded("How it is computed, and what it cannot tell you", icon=":material/functions:", key=f"{key} how")
    if is_filled(fold):
        fold.markdown(how)
        fold.markdown(f"**What it cannot tell you.** {limits}")


def folded(title: str, *, icon: str, key: str, expanded: bool = False) -> DeltaGenerator:
    """A part that opens with a click and is filled then (`is_filled`): what nobody opens costs a browser nothing."""
    return st.expander(title, icon=icon, key=key, expanded=expanded, on_change="rerun")


def is_filled(fold: DeltaGenerator) -> bool:
    """Whether the content of a folded part is needed."""
    return bool(fold.open) or READ_AS_A_WHOLE in st.session_state


def _table(numbers: Callable[[], LabelledArray], key: str) -> None:
    table = folded("Numbers", icon=":material/table:", key=f"{key} numbers")
    if table.open:
        with table:
            frame = pd.DataFrame(numbers().records())
            st.dataframe(frame.head(ROWS_SHOWN), hide_index=True, height=pixels(280))
            if len(frame) > ROWS_SHOWN:
                st.caption(f"The first {ROWS_SHOWN:,} of {len(frame):,} rows; the file has all.")
            st.download_button(
                "Download as CSV",
                lambda: as_csv(frame),
                f"{key}.csv",
                "text/csv",
                key=f"{key} csv",
                on_click="ignore",
                help="A text that a spreadsheet would compute (it begins with =, +, - or @) has an apostrophe before it.",
            )


def as_csv(frame: pd.DataFrame) -> str:
    """A table as CSV. Numbers have all their digits; a text or a title that a spreadsheet would take for a formula is guarded."""

    def cell(value: object) -> object:
        return guarded(value) if isinstance(value, str) else value

    return frame.map(cell).rename(columns=cell).to_csv(index=False)
