"""The import that goes on or has just ended: how far it is, a way to stop it, and what has become of it."""

from __future__ import annotations

import streamlit as st

from gptviz.memory import size
from gptviz.runs import importing
from gptviz.runs.importing import Import
from gptviz.ui.views.open_in import links
from gptviz.ui.widgets.buttons import pressed
from gptviz.ui.widgets.markdown import escaped

from .here import FAILED


def progress() -> None:
    """What the import does that was begun last, on this page or another one."""
    if failed := st.session_state.pop(FAILED, None):
        st.error(escaped(failed))
    now = importing.current()
    if now is None:
        return
    with st.container(border=True):
        if now.is_active:
            _going_on(now)
        else:
            _ended(now)


def _going_on(now: Import) -> None:
    name = escaped(now.given)
    if now.is_stopping:
        st.progress(_share(now), f"Stopping {name}")
        return
    if now.state == "fetching":
        st.progress(_share(now), f"Fetching {name}: {size(now.arrived)} of {size(now.size)}")
    else:
        st.progress(_share(now), f"Opening {name}: its weights are read and compared with its config")
    if pressed("Stop", key="stop the import", icon=":material/stop:", help="What has arrived is kept for the next time."):
        now.stop()
        st.rerun()


def _share(now: Import) -> float:
    return now.arrived / now.size if now.size else 0.0


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
            f"{escaped(now.given)} was stopped. Nothing was imported; what has arrived is kept, and the next time goes on there.",
            icon=":material/stop:",
        )
    else:
        st.error(escaped(now.problem))
    if pressed("Close", key="close the import", type="tertiary", icon=":material/close:"):
        importing.dismiss()
        st.rerun()
