"""What tells the server the address that the page has in the browser, at the moment it comes to be seen.

Views write what was chosen in them into the address by themselves, and Streamlit does not send that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from gptviz.components.kit import event, pack, register

_mount = register(Path(__file__).parent)
LONGEST = 20_000  # characters of a query


def page_address(known: str, *, key: str, on_tell: Callable[[str], None]) -> None:
    """Where the query of the page's address is another than `known`, `on_tell` is called with it."""

    def came() -> None:
        if (query := told(st.session_state[key].get("query"))) is not None:
            on_tell(query)

    _mount(key=key, data=pack({"known": known}), on_query_change=came)


def told(value: object) -> str | None:
    """The query that an event from the browser tells; None if it is not what this component sends."""
    query = (event(value) or {}).get("query")
    return query if isinstance(query, str) and len(query) <= LONGEST else None
