"""The size of type of the page, told to Python where figures are drawn from it: it grows with the window (kit/page.css)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from gptviz.components.kit import event, pack, register

_mount = register(Path(__file__).parent)

# How large a page may be drawn, as a multiple of its usual size.
LARGEST = 2.5


def page_size(known: float, *, key: str, on_size: Callable[[float], None]) -> None:
    """Watch how large the page is drawn; nothing is seen of it.

    Args:
        known: the size that is drawn for now, 1 being the usual one.
        key: tells the watchers of one page apart.
        on_size: told another size.
    """

    def answer() -> None:
        size = told(st.session_state[key].get("size"))
        if size is not None:
            on_size(size)

    _mount(key=key, data=pack({"known": known}), on_size_change=answer)


def told(value: object) -> float | None:
    """The size in an event from the browser, {"size": number}; None if it is not what this view sends."""
    size = (event(value) or {}).get("size")
    if not isinstance(size, int | float) or isinstance(size, bool):
        return None
    return float(size) if 1 <= size <= LARGEST else None
