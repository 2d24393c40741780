"""What a page remembers while it is open, and forgets when another one is opened: what was clicked in a view, for example."""

from __future__ import annotations

from typing import Any

import streamlit as st

_VISIT = "remembered on this page"


def remember(key: str, value: object) -> None:
    """Keep `value` until another page is opened."""
    st.session_state.setdefault(_VISIT, {})[key] = value


def remembered(key: str) -> Any:
    """What was remembered last as `key`; None where nothing was."""
    return st.session_state.get(_VISIT, {}).get(key)


def forget() -> None:
    """Forget everything: another page was opened."""
    st.session_state.pop(_VISIT, None)
