"""The words of the field that stand on a page, a click or a tap away."""

from __future__ import annotations

import streamlit as st

from gptviz.ui.page import Page
from gptviz.ui.widgets.words import explain_word


def words_button(page: Page) -> None:
    """A button that unfolds the words of a page."""
    with st.popover(
        "Words", type="tertiary", help="The words of the field on this page, explained."
    ):
        st.markdown("\n".join(f"- {explain_word(word)}" for word in page.words))
