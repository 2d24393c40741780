"""“Open in”: up to five pages that show most of a model, as links that open them with it."""

from __future__ import annotations

import streamlit as st

from gptviz.runs import checkpoints
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.records.classify import PAGE as CLASSIFY
from gptviz.ui.records.costs import PAGE as COSTS
from gptviz.ui.records.generate import PAGE as GENERATE
from gptviz.ui.records.home import PAGE as HOME
from gptviz.ui.records.next_token import PAGE as NEXT_TOKEN
from gptviz.ui.records.over_training import PAGE as OVER_TRAINING
from gptviz.ui.records.translate import PAGE as TRANSLATE
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import kinds, scrubber

MOST = 5


def open_in(name: str, *, key: str = "open in") -> None:
    """A button that unfolds links to pages about models of this kind, with the model called
    `name`.
    """
    with st.popover("Open in", icon=":material/open_in_new:", key=f"{key} {name}"):
        links(name)


def links(name: str) -> None:
    """Links to pages about models of this kind, with the model called `name`. The last one is about
    its training where it has snapshots, else about its size.
    """
    kind = kinds.kind_of(checkpoints.folder_of(name))
    last = OVER_TRAINING if scrubber.steps(name) else COSTS
    pages = [
        page
        for page in (HOME, NEXT_TOKEN, CLASSIFY, TRANSLATE, GENERATE, ATTENTION, last)
        if kind is None or kind in page.kinds
    ]
    query = {
        key: value
        for key, value in frame.shared_state().items()
        if key != "step" or scrubber.has_step(name, value)
    }
    for page in pages[:MOST]:
        frame.link(page, query=query | {"model": name})
