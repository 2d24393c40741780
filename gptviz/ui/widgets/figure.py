"""A figure on a page: as large as the type around it, which grows with the window, and with buttons
for its picture.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from gptviz.components.figure_tools import figure_tools, payload
from gptviz.figures.kit.theme import DARK, LIGHT, Theme, enlarge_figure

from .headings import heading

# The key of the session's state under which the size of the page stands, 1 being the usual one.
_SIZE = "page size"
# Figures with one of these kinds of traces are drawn in pixels.
_IN_PIXELS = re.compile(r"gl$|3d$|^(surface|volume|cone|streamtube|isosurface)$")


def theme() -> Theme:
    """The theme of figures that the user's browser shows."""
    if st.context.theme.type == "dark":
        return DARK
    return LIGHT


def show_figure(
    figure: go.Figure,
    *,
    key: str,
    alt: str,
    choose: Callable[[Sequence[int]], object] | None = None,
    **look: Any,
) -> None:
    """Show `figure`. A click on a point calls `choose` with the numbers that it carries, its
    `customdata`; `look` are other arguments of `st.plotly_chart`.
    """
    size = _size()
    if choose is not None:
        # As a callback, so that it acts on a click once, and not on every rerun, as the chart's
        # selection would.
        def click_point() -> None:
            for point in st.session_state[key].selection.points[:1]:
                carried = point.get("customdata")
                if isinstance(carried, list | tuple):
                    numbers = carried
                else:
                    numbers = [carried]
                if all(isinstance(one, int | float) for one in numbers):
                    choose(list(map(int, numbers)))

        look |= {"on_select": click_point, "selection_mode": "points"}
    # Plotly's own buttons would lie over the legend, and its picture has no heading.
    look["config"] = {"displayModeBar": False, **look.get("config", {})}
    sharp = not any(_IN_PIXELS.search(trace.type) for trace in figure.data)
    with st.container(gap=None):
        # A figure brings its own template: Streamlit's would be laid over it.
        st.plotly_chart(enlarge_figure(figure, size), key=key, alt=alt, theme=None, **look)
        name = re.sub(r"\W+", "-", key).strip("-")
        figure_tools(
            payload(size, heading(alt), name=name, sharp=sharp),
            key=f"{key} size",
            on_size=_remember,
        )


def pixels(usual: int) -> int:
    """The size on this page, in pixels, of something that takes `usual` pixels on a page of the
    usual size.
    """
    return round(usual * _size())


def _size() -> float:
    size: float = st.session_state.get(_SIZE, 1.0)
    return size


def _remember(size: float) -> None:
    st.session_state[_SIZE] = size
