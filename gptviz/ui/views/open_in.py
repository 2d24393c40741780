"""“Open in”: the pages that are about a model, as links that open them with it."""

from __future__ import annotations

import streamlit as st

from gptviz.runs import checkpoints
from gptviz.ui.shell import kinds, pages

NO_MODEL = (pages.OPEN_MODEL, pages.RUNS, pages.TRAIN)  # pages that are about no model that exists


def open_in(name: str, *, key: str = "open in") -> None:
    """A button that unfolds links to every page about models of this kind, with the model called `name`."""
    with st.popover("Open in", icon=":material/open_in_new:", key=f"{key} {name}"):
        links(name)


def links(name: str) -> None:
    """A link to every page about models of this kind, with the model called `name`."""
    kind = kinds.kind_of(checkpoints.folders().get(name))
    for page in pages.PAGES.values():
        if page not in NO_MODEL and (kind is None or kind in page.kinds):
            pages.link(page, query={**pages.shared_state(), "model": name})
