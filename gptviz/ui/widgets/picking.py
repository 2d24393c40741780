"""A select box for what a click on a figure chooses: the keyboard and a screen reader do not reach the points of a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import streamlit as st

from .headings import say_chosen

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
    """A select box that shows `chosen`, whichever way it was chosen, and gives what is selected to `choose`, as a click does."""
    st.session_state[key] = chosen
    say_chosen(label, format_func(chosen))

    def take() -> None:
        choose(st.session_state[key])

    st.selectbox(label, options, key=key, format_func=format_func, on_change=take, help=help)
