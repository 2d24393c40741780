"""The details folded below every figure: its numbers, the code that makes it, how it is computed,
and what it cannot show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.labelled_array import LabelledArray
from gptviz.streamlit_internals import READ_AS_A_WHOLE
from gptviz.text.datasets.tables import guard_cell
from gptviz.ui.page import AboutText

from .figure import pixels
from .tables import show_table

ROWS_SHOWN = 10_000


def details(
    numbers: Callable[[], LabelledArray] | None = None,
    *,
    code: str | None = None,
    about: AboutText,
    key: str,
) -> None:
    """The folded part below a figure.

    Args:
        numbers: returns the array the figure shows; called only when the reader opens the table.
            None for a view made by hand, which has a button for its numbers and one for its code.
        code: a few lines of `gptviz` that compute the same array.
        about: how it is computed, and what it cannot show.
        key: tells the figures of one page apart.
    """
    if numbers is not None:
        _table(numbers, key)
    if code is not None and (
        fold := folded_part("Code", icon=":material/code:", key=f"{key} code")
    ):
        fold.code(code, language="python")
    title = "How it is computed, and what it cannot tell you"
    if fold := folded_part(title, icon=":material/functions:", key=f"{key} how"):
        fold.markdown(about.how)
        fold.markdown(f"**What it cannot tell you.** {about.limits}")


def folded_part(
    title: str, *, key: str, icon: str | None = None, is_needed: bool = False
) -> DeltaGenerator | None:
    """A part that opens with a click, or None while nobody has opened it: what is folded away costs
    a browser nothing. Where it `is_needed`, it is open at first, and is filled where it is closed
    too.
    """
    fold = st.expander(title, icon=icon, key=key, expanded=is_needed, on_change="rerun")
    if fold.open or is_needed or READ_AS_A_WHOLE in st.session_state:
        return fold
    return None


def _table(numbers: Callable[[], LabelledArray], key: str) -> None:
    table = st.expander("Numbers", icon=":material/table:", key=f"{key} numbers", on_change="rerun")
    if table.open:
        with table:
            frame = pd.DataFrame(numbers().records())
            show_table(frame.head(ROWS_SHOWN), hide_index=True, height=pixels(280))
            if len(frame) > ROWS_SHOWN:
                st.caption(f"The first {ROWS_SHOWN:,} of {len(frame):,} rows; the file has all.")
            hint = (
                "A text that a spreadsheet would compute (it begins with =, +, - or @) has an "
                "apostrophe before it."
            )
            csv_button(frame, key, key=f"{key} csv", help=hint)


def csv_button(frame: pd.DataFrame, name: str, label: str = "Download as CSV", **look: Any) -> None:
    """A button that downloads a table as the file `name`.csv; `look` are other arguments of
    `st.download_button`.
    """
    st.download_button(
        label, lambda: as_csv(frame), f"{name}.csv", "text/csv", on_click="ignore", **look
    )


def as_csv(frame: pd.DataFrame) -> bytes:
    """A table as CSV in UTF-8, with the byte order mark that Excel needs to show its letters.
    Numbers have all their digits; a text or a title that a spreadsheet would take for a formula is
    guarded.
    """

    def cell(value: object) -> object:
        if isinstance(value, str):
            return guard_cell(value)
        return value

    return frame.map(cell).rename(columns=cell).to_csv(index=False).encode("utf-8-sig")
