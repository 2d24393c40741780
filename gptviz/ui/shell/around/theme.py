"""The theme of figures that fits the page."""

from __future__ import annotations

import streamlit as st

from gptviz.figures.kit.theme import DARK, LIGHT, Theme


def theme() -> Theme:
    """The theme that the user's browser shows."""
    return DARK if st.context.theme.type == "dark" else LIGHT
