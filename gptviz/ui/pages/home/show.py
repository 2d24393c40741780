"""The line of Home for models that guess no next token."""

from __future__ import annotations

import streamlit as st

from gptviz.model.kinds import MODEL_KINDS
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject


def link_to_own_page(subject: Subject) -> None:
    """For a model that guesses no next token: what it does instead, and a link to the page that shows it."""
    if subject.kind == "decoder":
        return
    kind = MODEL_KINDS[subject.kind]
    st.caption(f"This model is {kind.with_article}: it {kind.does}; it does not continue a text.")
    page = frame.page_about(kind.name)
    frame.link(page, f"Look at it closely: {page.title}")
