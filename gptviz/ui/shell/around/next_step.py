"""The next step: the last line of every page leads to the page that a newcomer reads next, for the
kind of model on screen.
"""

from __future__ import annotations

import streamlit as st

from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.runs import checkpoints
from gptviz.ui.menu import pages_here
from gptviz.ui.page import Page
from gptviz.ui.records.home import PAGE as HOME

from .. import frame
from ..subject import kinds


def page_after(page: Page, kind: Kind) -> Page | None:
    """The page to read after `page`, None after the last."""
    order = [page for page in pages_here().values() if kind in page.kinds]
    after = order[order.index(page) + 1 :] if page in order else order
    if after:
        return after[0]
    return None


def next_step() -> None:
    """A line that leads to the next page; after the last one, to a model of the next kind."""
    config = kinds.config_of(checkpoints.folder_of(frame.model_on_screen()))
    kind: Kind = "decoder" if config is None else config.kind
    page = page_after(frame.current_page(), kind)
    while page is not None and config is not None and not page.has_what_it_shows(config):
        page = page_after(page, kind)
    if page is not None:
        _line(page, page.step)
        return
    every = list(MODEL_KINDS)
    other = every[(every.index(kind) + 1) % len(every)]
    if kinds.models_of(other):
        about = MODEL_KINDS[other]
        step = f"There are other kinds of models: open {about.with_article}, which {about.does}."
        _line(HOME, step, query={"model": kinds.best_model(other)})


def _line(page: Page, step: str, query: dict[str, str] | None = None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="next step"):
        st.markdown("**Next**", width="content")
        frame.link(page, query=query)
        st.caption(step, width="content")
