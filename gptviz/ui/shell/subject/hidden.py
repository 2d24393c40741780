"""The notice, below every list of models, about a user's model that hides a shipped one, and how to
have both.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gptviz.runs import checkpoints
from gptviz.ui.records.runs import PAGE as RUNS
from gptviz.ui.widgets import controls, escape_markdown

from .. import frame


def say_what_hides(names: Sequence[str]) -> None:
    """Say which of the models called `names` hide a shipped one, and link to the page where they
    can be renamed or deleted.
    """
    known = checkpoints.hidden_checkpoints()
    for name in names:
        if name in known:
            with controls.notice_place().container():
                st.info(
                    f"{escape_markdown(name)} is a model of yours. It hides the one of the same "
                    "name that "
                    "came with gptviz: "
                    "rename or delete yours to have that one back.",
                    icon=":material/layers:",
                )
                if frame.current_page() is not RUNS:
                    frame.link(
                        RUNS, "Rename or delete it", query={**frame.shared_state(), "model": name}
                    )
