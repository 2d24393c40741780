"""A figure on a page: as large as the type around it, which grows with the window."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from gptviz.components.page_size import page_size
from gptviz.figures.theme import enlarged

# The key of the session's state under which the size of the page stands, 1 being the usual one.
_SIZE = "page size"


def show_figure(figure: go.Figure, *, key: str, alt: str, **look: Any) -> Any:
    """Show `figure`, `look` being other arguments of `st.plotly_chart`, whose answer is given back."""
    size = _size()
    with st.container(gap=None):
        answer = st.plotly_chart(enlarged(figure, size), key=key, alt=alt, **look)
        page_size(size, key=f"{key} size", on_size=_remember)
    return answer


def pixels(usual: int) -> int:
    """How many pixels something takes on this page if it takes `usual` pixels on a page of the usual size."""
    return round(usual * _size())


def _size() -> float:
    size: float = st.session_state.get(_SIZE, 1.0)
    return size


def _remember(size: float) -> None:
    st.session_state[_SIZE] = size
