"""Choices made in a table, and a select box for those made by a click on a figure: the keyboard and
a screen reader do not reach the figure's points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from .headings import say_chosen
from .tables import show_table

Option = TypeVar("Option")


def pick(
    label: str,
    options: Sequence[Option],
    chosen: Option,
    choose: Callable[[Option], None],
    *,
    key: str,
    help: str,
    format_func: Callable[[Option], str] = str,
) -> None:
    """A select box that shows `chosen`, however it was chosen, and calls `choose` with what is
    selected, as a click does.
    """
    st.session_state[key] = chosen
    say_chosen(label, format_func(chosen))

    def take() -> None:
        choose(st.session_state[key])

    st.selectbox(label, options, key=key, format_func=format_func, on_change=take, help=help)


def table(rows: pd.DataFrame, choose: Callable[[int], None], *, key: str, **look: Any) -> None:
    """A table that calls `choose` with the number of a row that is chosen; `look` are other
    arguments of `st.dataframe`.
    """

    def click_row() -> None:
        if chosen := st.session_state[key].selection.rows:
            choose(chosen[0])

    show_table(
        rows, hide_index=True, key=key, on_select=click_row, selection_mode="single-row", **look
    )
