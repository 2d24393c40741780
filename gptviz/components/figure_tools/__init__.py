"""What stands below a figure of plotly: buttons for its picture, as views made by hand have them.

It also tells Python the size of type of the page, which grows with the window (kit/page.css): figures are drawn by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from gptviz.components.kit import event, pack, register

_mount = register(Path(__file__).parent)

# How large a page may be drawn, as a multiple of its usual size.
LARGEST = 2.5


def payload(known: float, heading: Mapping[str, Any], *, name: str, sharp: bool) -> bytes:
    """What the browser gets.

    Args:
        known: the size that is drawn for now, 1 being the usual one.
        heading: of a picture: `title`, `model`, `prompt`, and `settings`, a list of phrases.
        name: of the files.
        sharp: whether the whole figure is lines and words, so that it can be an SVG; what is drawn in 3-D, or with very many
            points, is pixels.
    """
    return pack({"known": known, "heading": dict(heading), "name": name, "sharp": sharp})


def figure_tools(data: bytes, *, key: str, on_size: Callable[[float], None]) -> None:
    """Show the tools of the figure that stands in the same container.

    Args:
        data: from `payload`.
        key: tells the tools of one page apart.
        on_size: told another size of the page.
    """

    def answer() -> None:
        size = told(st.session_state[key].get("size"))
        if size is not None:
            on_size(size)

    _mount(key=key, data=data, on_size_change=answer)


def told(value: object) -> float | None:
    """The size in an event from the browser, {"size": number}; None if it is not what this view sends."""
    size = (event(value) or {}).get("size")
    if not isinstance(size, int | float) or isinstance(size, bool):
        return None
    return float(size) if 1 <= size <= LARGEST else None
