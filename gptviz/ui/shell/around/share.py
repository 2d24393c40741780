"""Share: the page on screen as a file, its model as plain Python, a link for the phones of a class, and a projector."""

from __future__ import annotations

import streamlit as st

from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints

from ..subject import on_screen
from . import present
from .take_home import take_home, take_model_home


def share(page: str, model: str, kind: Kind) -> None:
    """The button that opens all these ways, for the page called `page` and the `model` on it, which is of this kind."""
    with st.popover("Share", type="tertiary", help="This page as a file, on a projector, or on the phones of a class."):
        _as_it_is(page)
        if kind == "decoder" and checkpoints.folder_of(model) is not None:
            take_model_home(model)
        present.controls()


@st.fragment
def _as_it_is(page: str) -> None:
    """The part that needs the whole address: the browser sends it when Share is opened, and only this part runs again."""
    take_home(page)
    present.link()
    on_screen.listen()
