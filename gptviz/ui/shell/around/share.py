"""Share: the page on screen as a file, its model as plain Python, a link for the phones of a class,
and a projector.
"""

from __future__ import annotations

import streamlit as st

from ..subject import on_screen
from . import present
from .take_home import take_home


def share(page: str, decoder: str | None) -> None:
    """The button that opens all these ways, for the page called `page`, and for the `decoder` on
    it, if there is one.
    """
    with st.popover(
        "Share",
        type="tertiary",
        help="This page as a file, on a projector, or on the phones of a class.",
    ):
        _as_it_is(page, decoder)
        present.controls()


@st.fragment
def _as_it_is(page: str, decoder: str | None) -> None:
    """The part that needs the whole address: the browser sends it when Share is opened, and only
    this part runs again.
    """
    take_home(page, decoder)
    present.link()
    on_screen.listen()
