"""What can be done to one model: open it on another page, go on training, rename, take away, delete and bring back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

import streamlit as st

from gptviz.runs import checkpoints, manage
from gptviz.runs.checkpoints import CheckpointError
from gptviz.ui.shell import frame, kinds
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.markdown import escaped

if TYPE_CHECKING:
    from .table import Entry

# What the page Train offers for a run in such a state.
ON_TRAIN = {"running": "Watch it train", "waiting": "Watch it wait", "ready": "Begin to train"} | dict.fromkeys(
    ("paused", "stopped", "interrupted"), "Go on training"
)
NO_MODEL = ("app.py", "pages/runs.py", "pages/train.py")  # pages that are about no model that exists
_DONE, _FAILED, _TOKEN = "runs done", "runs failed", "runs token"


def one_model(found: Mapping[str, Entry]) -> None:
    """The model chosen, what can be done to it, and what the last click did."""
    _say_what_was_done()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=260):
            about = "The model that the buttons are about, and that the other pages open."
            name = controls.select("Model", list(found), key="model", default=frame.DEFAULT_MODEL, help=about)
        folder, status = found[name].folder, found[name].status
        _open_in(name)
        if status.state in ON_TRAIN and manage.is_own(folder):
            query = {**frame.shared_state(), "run": name}
            st.page_link("pages/train.py", label=ON_TRAIN[status.state], icon=":material/resume:", query_params=query)
        _download(name)
        if manage.is_own(folder):
            with st.popover("Rename", icon=":material/edit:"):
                new = st.text_input("New name", name, key=f"new name of {name}", max_chars=64)
                st.button("Rename it", key="rename", on_click=_rename, args=(name, f"new name of {name}"), disabled=new == name)
            about = f"Puts it into the trash, which keeps the last {manage.MOST_DELETED}."
            st.button("Delete", key="delete", on_click=_delete, args=(name,), icon=":material/delete:", help=about)
        _trash()
    if not manage.is_own(folder):
        st.caption("This model came with gptviz: it can be neither renamed nor deleted.")
    if problem := found[name].problem or status.message:
        st.text(f"{found[name].state}: {problem}")


def _say_what_was_done() -> None:
    """What the last click on one of the buttons did, or why it did nothing; a deletion can be undone."""
    if failed := st.session_state.pop(_FAILED, None):
        st.error(escaped(failed))
    if done := st.session_state.pop(_DONE, None):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.success(escaped(done), width="stretch", icon=":material/check:")
            if token := st.session_state.pop(_TOKEN, None):
                st.button("Undo", key="undo", on_click=_undelete, args=(token,), icon=":material/undo:")


def _open_in(name: str) -> None:
    with st.popover("Open in", icon=":material/open_in_new:"):
        kind = kinds.of(checkpoints.find(name))
        for page in frame.PAGES.values():
            if page.path not in NO_MODEL and (kind is None or kind in page.kinds):
                st.page_link(page.path, label=page.title, icon=page.icon, query_params={**frame.shared_state(), "model": name})


def _download(name: str) -> None:
    label, snapshots, possible = packing(name)
    st.download_button(
        label,
        lambda: manage.archive(name, snapshots=snapshots),
        f"{name}.zip",
        "application/zip",
        key="download",
        on_click="ignore",
        icon=":material/download:",
        disabled=not possible,
        help="A zip file of config, tokenizer, weights, card, log and snapshots. Unpacked into the folder of models it is a "
        f"model again. At most {manage.MOST_PACKED_BYTES // 2**20} MB.",
    )


def _trash() -> None:
    if kept := manage.deleted():
        with st.popover(f"Trash ({len(kept)})", icon=":material/restore_from_trash:"):
            st.caption(f"The last {manage.MOST_DELETED} models that were deleted; older ones are gone for good.")
            for token, name in kept.items():
                st.button(escaped(name), key=f"bring back {token}", on_click=_undelete, args=(token,), icon=":material/undo:")


def packing(name: str) -> tuple[str, bool, bool]:
    """How a model can be taken away: what the button says, whether its snapshots come along, and whether it can be at all."""
    for snapshots in (True, False):
        size = manage.packed_bytes(name, snapshots=snapshots)
        if size <= manage.MOST_PACKED_BYTES:
            less = "" if snapshots else " without snapshots"
            return f"Download{less} ({max(size / 2**20, 0.1):,.1f} MB)", snapshots, True
    return "Too large to download", False, False


def _rename(name: str, key: str) -> None:
    new = st.session_state[key].strip()
    if _tried(lambda: manage.rename(name, new), f"{name} is called {new} now."):
        st.session_state["model"] = new
        _replace_chosen(name, new)


def _delete(name: str) -> None:
    def delete() -> None:
        st.session_state[_TOKEN] = manage.delete(name)

    if _tried(delete, f"{name} is in the trash."):
        left = list(checkpoints.folders())
        st.session_state["model"] = frame.DEFAULT_MODEL if frame.DEFAULT_MODEL in left else next(iter(left), None)
        _replace_chosen(name, None)


def _undelete(token: str) -> None:
    def undelete() -> None:
        st.session_state["model"] = manage.undelete(token)

    if _tried(undelete, "It is back."):
        st.session_state[_DONE] = f"{st.session_state['model']} is back."


def _tried(action: Callable[[], object], done: str) -> bool:
    try:
        action()
    except CheckpointError as error:
        st.session_state[_FAILED] = str(error)
        return False
    st.session_state[_DONE] = done
    return True


def _replace_chosen(name: str, new: str | None) -> None:
    """Whoever compared the model goes on comparing it, under its new name, or no more."""
    if asked := st.query_params.get("chosen"):
        kept = [new if other == quote(name, safe="") else other for other in asked.split(",")]
        st.query_params["chosen"] = ",".join(filter(None, kept)) or "-"
