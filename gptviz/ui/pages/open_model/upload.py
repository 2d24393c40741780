"""A zip file with a model, dropped on the page or chosen from this computer."""

from __future__ import annotations

import streamlit as st

from gptviz.machine.hosting import NO_UPLOADS, upload_limit
from gptviz.runs import checkpoints, sharing
from gptviz.ui.views.open_in import links
from gptviz.ui.widgets import escaped

MOST = 1_000  # MB; what is uploaded is held in memory
_ROUND, _MADE = "uploads so far", "uploaded model"


def zip_box() -> None:
    """Where a zip file is dropped; its model is then one of the user's own."""
    if (most := upload_limit(MOST)) is None:
        st.caption(NO_UPLOADS)
        return
    number = st.session_state.setdefault(_ROUND, 0)
    file = st.file_uploader(
        "A zip file with a model",
        type="zip",
        key=f"uploaded zip {number}",
        max_upload_size=most,
        help="One that gptviz packed (Runs, Download), or a zipped folder of another program. Nothing in it is run.",
    )
    st.caption(f"At most {most:,} MB. A folder or a .gguf file need not be uploaded: type its path into the field above.")
    if file is not None:
        try:
            with st.spinner("Unpacking, and opening it once"):
                made = sharing.unpack(file)
        except (checkpoints.CheckpointError, MemoryError) as error:
            st.error(escaped(str(error)) or "There is not enough memory for this file.")
            return
        st.session_state[_ROUND], st.session_state[_MADE] = number + 1, made.name
        st.rerun()
    if name := st.session_state.get(_MADE):
        st.success(f"{escaped(name)} is one of your models now.", icon=":material/check:")
        with st.container(horizontal=True):
            links(name)
