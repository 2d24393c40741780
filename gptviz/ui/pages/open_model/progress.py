"""The import that goes on or has just ended: how far it is, a way to stop it, and what has become of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from gptviz.machine.memory import in_bytes
from gptviz.pretrained.places.hub import BYTE
from gptviz.runs import checkpoints, import_job
from gptviz.runs.import_job import ImportJob
from gptviz.ui.views.open_in import links
from gptviz.ui.widgets import escaped, pressed

_FAILED, _ENDED = "open failed", "an import ended"


def progress() -> None:
    """How far the import is that was begun last, on this page or another one."""
    now = import_job.current()
    if st.session_state.pop(_ENDED, False) and now is not None:
        done = now.value is not None
        st.toast(f"{escaped(now.title)} is open." if done else f"{escaped(now.title)} was not opened.")
    if failed := st.session_state.pop(_FAILED, None):
        st.error(escaped(failed))
    if now is None:
        return
    with st.container(border=True):
        if now.is_active:
            going_on(now, "top")
        else:
            _ended(now)


def going_on(now: ImportJob, key: str) -> None:
    """How far an import is, and a way to stop it; `key` tells the places where this stands apart."""
    name, far = escaped(now.title), now.progress
    if now.is_stopping:
        st.progress(far.share, f"Stopping {name}")
        return
    if not far.of:
        st.progress(0.0, f"Opening {name}")
        return
    if far.step == BYTE:
        st.progress(far.share, f"Fetching {name}: {in_bytes(far.done)} of {in_bytes(far.of)}")
    else:
        st.progress(far.share, f"Opening {name}: {far.done} of {far.of} tensors are read and compared with its config")
    if pressed("Stop", key=f"stop the import: {key}", icon=":material/stop:", help="What has arrived is kept for the next time."):
        now.stop()
        st.rerun()


def _ended(now: ImportJob) -> None:
    if (made := now.value) is not None:
        name = made.folder.name
        st.success(
            f"{escaped(name)} is open: {escaped(made.family)}, {made.parameters:,} parameters. Every tensor of its files "
            "has found its place, and none is missing.",
            icon=":material/check:",
        )
        for note in made.notes:
            st.caption(escaped(note))
        with st.container(horizontal=True):
            links(name)
    elif now.state == "stopped":
        st.info(
            f"{escaped(now.title)} was stopped. Nothing was imported; what has arrived is kept, and the next time goes on there.",
            icon=":material/stop:",
        )
    else:
        st.error(escaped(now.problem))
    if pressed("Close", key="close the import", type="tertiary", icon=":material/close:"):
        import_job.dismiss()
        st.rerun()


def begin(given: str, suggested: str | None = None, additions: Mapping[str, Any] | None = None) -> None:
    """Begin to open a model, with the arguments of `import_job.begin`; its progress is shown at the top of the page."""
    try:
        import_job.begin(given, suggested, additions)
    except checkpoints.CheckpointError as error:
        st.session_state[_FAILED] = str(error)
    st.rerun()


def note_the_end() -> None:
    """Run the page again after an import has ended, so that a message says so wherever the reader is."""
    st.session_state[_ENDED] = True
    st.rerun()
