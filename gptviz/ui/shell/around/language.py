"""The language of the visitor: what the address asks for, what the server says, or that of the
browser.
"""

from __future__ import annotations

import streamlit as st

from gptviz import languages, streamlit_internals
from gptviz.machine.hosting import hosting
from gptviz.ui.widgets import addresses

LANGUAGE = "lang"


def _chosen() -> str:
    """What the address asks for, or that of the page before; empty where nobody asked."""
    return str(st.query_params.get(LANGUAGE, st.session_state.get(LANGUAGE, "")))


def state() -> dict[str, str]:
    """Its value in a link to another page."""
    return {LANGUAGE: chosen} if (chosen := _chosen()) else {}


def listen() -> None:
    """While a language is asked for, keep that in the address."""
    if chosen := _chosen():
        st.session_state[LANGUAGE] = chosen
        addresses.write(LANGUAGE, chosen)


def _asked() -> list[str | None]:
    """The languages that are asked for, the first one first; outside of a page that of the
    server.
    """
    if streamlit_internals.session() is None:
        return [hosting().language]
    return [_chosen(), hosting().language, st.context.locale]


languages.follow(_asked)
