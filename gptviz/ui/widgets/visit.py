"""The memory of a page while it is open, such as a click in a view; it is forgotten when another
page is opened.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

_VISIT = "remembered on this page"


def remember(key: str, value: object) -> None:
    """Keep `value` until another page is opened."""
    st.session_state.setdefault(_VISIT, {})[key] = value


def remembered_value(key: str) -> Any:
    """The value remembered last as `key`, or None."""
    return st.session_state.get(_VISIT, {}).get(key)


def forget() -> None:
    """Forget everything: another page was opened."""
    st.session_state.pop(_VISIT, None)
