"""The lines below the titles of a page's pictures: the model, its prompt, and the choices made
above them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

# Keys of the session's state: what the pictures say of model and prompt, and what is chosen, by the
# label of its control.
_ABOUT = "about pictures"
_CHOSEN = "chosen for pictures"
# A longer choice, such as a text, is cut.
LONGEST = 160


def say_below_titles(model: str = "", prompt: str = "", settings: Sequence[str] = ()) -> None:
    """Set the lines below the titles of all pictures of the page; earlier choices are forgotten.

    Args:
        model: its name, and the step of its training.
        prompt: the text it reads.
        settings: phrases about what is shown.
    """
    st.session_state[_ABOUT] = {"model": model, "prompt": prompt, "settings": list(settings)}
    st.session_state[_CHOSEN] = {}


def say_chosen(label: str, value: str) -> None:
    """Add a choice, by the label of its control, to the lines of all pictures below it.

    Controls of `widgets.controls` and `widgets.picking` do so by themselves. Nothing is added
    before the page has a model: the bar that chooses the model is no setting of a picture.
    """
    if st.session_state.get(_ABOUT, {}).get("model"):
        short = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
        st.session_state[_CHOSEN][label] = " ".join(short.split())


def settings() -> list[str]:
    """The phrases that a picture has below its title, in addition to model and prompt."""
    chosen = st.session_state.get(_CHOSEN, {})
    return [
        *st.session_state.get(_ABOUT, {}).get("settings", []),
        *(f"{label}: {value}" for label, value in chosen.items()),
    ]


def heading(title: str) -> dict[str, Any]:
    """The heading of a picture with this title, as `components.figure_tools` takes it."""
    return {"title": title, **st.session_state.get(_ABOUT, {}), "settings": settings()}
