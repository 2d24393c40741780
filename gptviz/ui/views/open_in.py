"""“Open in”: the pages that are about a model, as links that open them with it."""

from __future__ import annotations

import streamlit as st

from gptviz.runs import checkpoints
from gptviz.ui.menu import PAGES
from gptviz.ui.records.open_model import PAGE as OPEN_MODEL
from gptviz.ui.records.runs import PAGE as RUNS
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import kinds

NO_MODEL = (OPEN_MODEL, RUNS, TRAIN)  # pages that are about no model that exists


def open_in(name: str, *, key: str = "open in") -> None:
    """A button that unfolds links to every page about models of this kind, with the model called `name`."""
    with st.popover("Open in", icon=":material/open_in_new:", key=f"{key} {name}"):
        links(name)


def links(name: str) -> None:
    """A link to every page about models of this kind, with the model called `name`."""
    kind = kinds.kind_of(checkpoints.folder_of(name))
    for page in PAGES.values():
        if page not in NO_MODEL and (kind is None or kind in page.kinds):
            frame.link(page, query={**frame.shared_state(), "model": name})
