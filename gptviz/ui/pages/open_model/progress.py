"""The import that goes on or has just ended: how far it is, a way to stop it, and what has become of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from gptviz.memory import size
from gptviz.runs import importing
from gptviz.runs.checkpoints import CheckpointError
from gptviz.runs.importing import Import
from gptviz.ui.views.open_in import links
from gptviz.ui.widgets.buttons import pressed
from gptviz.ui.widgets.markdown import escaped

_FAILED, _ENDED = "open failed", "an import ended"


def progress() -> None:
    """What the import does that was begun last, on this page or another one."""
    now = importing.current()
    if st.session_state.pop(_ENDED, False) and now is not None:
        done = now.made is not None
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


def going_on(now: Import, key: str) -> None:
    """How far an import is, and a way to stop it; `key` tells the places where this stands apart."""
    name = escaped(now.title)
    if now.is_stopping:
        st.progress(_share(now), f"Stopping {name}")
        return
    if now.state == "beginning":
        st.progress(0.0, f"Opening {name}")
        return
    if now.state == "fetching":
        st.progress(_share(now), f"Fetching {name}: {size(now.arrived)} of {size(now.size)}")
    else:
        st.progress(_share(now), f"Opening {name}: {now.read} of {now.of} tensors are read and compared with its config")
    if pressed("Stop", key=f"stop the import: {key}", icon=":material/stop:", help="What has arrived is kept for the next time."):
        now.stop()
        st.rerun()


def _share(now: Import) -> float:
    done, of = (now.read, now.of) if now.of else (now.arrived, now.size)
    return done / of if of else 0.0


def _ended(now: Import) -> None:
    if now.state == "done" and now.made is not None:
        name = now.made.folder.name
        st.success(
            f"{escaped(name)} is open: {escaped(now.made.family)}, {now.made.parameters:,} parameters. Every tensor of its files "
            "has found its place, and none is missing.",
            icon=":material/check:",
        )
        for note in now.made.notes:
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
        importing.dismiss()
        st.rerun()


def begin(given: str, suggested: str | None = None, said: Mapping[str, Any] | None = None) -> None:
    """Begin to open a model, with the arguments of `importing.begin`; its progress is shown at the top of the page."""
    try:
        importing.begin(given, suggested, said)
    except CheckpointError as error:
        st.session_state[_FAILED] = str(error)
    st.rerun()


def note_the_end() -> None:
    """Run the page again, since the import has ended that went on when it was begun; that is said wherever the reader is."""
    st.session_state[_ENDED] = True
    st.rerun()
