"""The tour of a page: its parts from top to bottom, and the keys of its views; opened by a button
next to the words.
"""

from __future__ import annotations

import streamlit as st

from gptviz.ui.page import Keys, Page

# Signs for keys; all other keys are shown by the browser's names.
SIGNS = {"ArrowLeft": "←", "ArrowRight": "→", "ArrowUp": "↑", "ArrowDown": "↓", " ": "Space"}
# The key that every page has.
SEARCH = Keys("search", ("/",), "opens the search, which the side bar has too")


def tour_button(page: Page) -> None:
    """A button that unfolds the tour of a page."""
    with st.popover("?", type="tertiary", help="What the parts of this page are, and its keys."):
        st.markdown("\n".join(f"- {_line(line)}" for line in (*page.tour, SEARCH)))


def _line(line: str | Keys) -> str:
    if isinstance(line, str):
        return line
    return (
        f"Key{'s' * (len(line.keys) > 1)} "
        f"{' '.join(f'**{SIGNS.get(key, key)}**' for key in line.keys)}: {line.does}."
    )
