"""The address of this screen, with all choices made within views."""

from __future__ import annotations

import streamlit as st

from gptviz.components.page_helpers import page_address
from gptviz.streamlit_internals import page_and_query

# The key of the session's state with the page and query that Streamlit knew, and the query that the
# browser had then.
HEARD = "address heard"


def listen() -> None:
    """Let the browser send the whole address as soon as the place where this is called becomes
    visible.
    """
    page_address(query(), key="page address", on_tell=_hear)


def query() -> str:
    """The query of the page's address: as the browser sent it, unless Streamlit knows of a change
    since then.
    """
    known = page_and_query()
    at, heard = st.session_state.get(HEARD, (None, ""))
    if at == known:
        return heard
    return known[1]


def _hear(said: str) -> None:
    st.session_state[HEARD] = page_and_query(), said
