"""A button whose press is kept until the page asks for it."""

from __future__ import annotations

from typing import Any

import streamlit as st

_PRESSED = "pressed buttons"


def press_button(label: str, *, key: str, disabled: bool = False, **look: Any) -> bool:
    """A button, and whether it was pressed since the page asked last.

    The return value of `st.button` is lost if the run that should read it is stopped for another
    one, or if a fragment that repeats itself ends at that moment. What the callback of a button
    notes is kept until the page asks for it.

    Args:
        label: the text on it.
        key: its name in the state of the session.
        disabled: whether it can be pressed now.
        look: other arguments of `st.button`.
    """

    def note() -> None:
        st.session_state.setdefault(_PRESSED, set()).add(key)

    st.button(label, key=key, disabled=disabled, on_click=note, **look)
    noted: set[str] = st.session_state.get(_PRESSED, set())
    if key not in noted:
        return False
    noted.remove(key)
    return not disabled


def forget_pressed() -> None:
    """Forget what was pressed on a page that was left before it could answer."""
    st.session_state.pop(_PRESSED, None)
