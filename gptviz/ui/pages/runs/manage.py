"""The actions on one model: open it on another page, train it further, rename, save elsewhere, delete and bring back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import streamlit as st

from gptviz.machine.hosting import hosting
from gptviz.runs import checkpoints, manage
from gptviz.ui.records.train import PAGE as TRAIN
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import hidden
from gptviz.ui.shell.subject.model_list import imported
from gptviz.ui.views.entries import Entry
from gptviz.ui.views.open_in import open_in
from gptviz.ui.widgets import addresses, controls, escaped
from gptviz.ui.widgets.figure import pixels

from .saving import report_of, save_as
from .selection import NONE

# The actions that the page Train offers for a run in such a state.
ON_TRAIN = {"running": "Watch it train", "waiting": "Watch it wait", "ready": "Begin to train"} | dict.fromkeys(
    ("paused", "stopped", "interrupted"), "Go on training"
)
_DONE, _FAILED, _TOKEN = "runs done", "runs failed", "runs token"


def one_model(entries: Mapping[str, Entry]) -> None:
    """The model chosen, what can be done to it, and what the last click did."""
    _result_of_the_last_click()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=pixels(260)):
            about = "The model that the buttons are about, and that the other pages open."
            name = controls.select("Model", list(entries), key="model", default=frame.default_model(), help=about)
        folder, status = entries[name].folder, entries[name].status
        open_in(name)
        if status.state in ON_TRAIN and manage.is_own(folder):
            query = {**frame.shared_state(), "run": name}
            st.page_link(TRAIN.path, label=ON_TRAIN[status.state], icon=":material/resume:", query_params=query)
        save_as(name)
        if not entries[name].problem:
            report_of(name)
        if manage.is_own(folder):
            fixed = hosting().read_only
            why = "This server shows models and changes none." if fixed else None
            with st.popover("Rename", icon=":material/edit:", disabled=fixed, help=why):
                new = st.text_input("New name", name, key=f"new name of {name}", max_chars=64)
                st.button("Rename it", key="rename", on_click=_rename, args=(name, f"new name of {name}"), disabled=new == name)
            about = why or f"Puts it into the trash, which keeps the last {manage.MOST_DELETED} models."
            st.button(
                "Delete", key="delete", on_click=_delete, args=(name,), icon=":material/delete:", disabled=fixed, help=about
            )
        _trash()
    hidden.say_what_hides([name])
    if not manage.is_own(folder):
        st.caption("This model came with gptviz: it can be neither renamed nor deleted.")
    _about_the_import(folder)
    if problem := entries[name].problem or status.message or entries[name].diverged:
        st.text(f"{entries[name].state}: {problem}")


def _about_the_import(folder: Path) -> None:
    """Where a model that another program made came from, its licence, and what to know of it."""
    with suppress(checkpoints.CheckpointError):
        card = checkpoints.read_card(folder)
        if about := ", ".join(imported(card)):
            st.caption(escaped(f"{about}. {' '.join(card.notes)}"))


def _result_of_the_last_click() -> None:
    """The result of the last click on one of the buttons, or why it did nothing; a deletion can be undone."""
    if failed := st.session_state.pop(_FAILED, None):
        st.error(escaped(failed))
    if done := st.session_state.pop(_DONE, None):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.success(escaped(done), width="stretch", icon=":material/check:")
            if token := st.session_state.pop(_TOKEN, None):
                st.button("Undo", key="undo", on_click=_undelete, args=(token,), icon=":material/undo:")


def _trash() -> None:
    if deleted := manage.deleted():
        with st.popover(f"Trash ({len(deleted)})", icon=":material/restore_from_trash:"):
            st.caption(f"The last {manage.MOST_DELETED} models that were deleted; older ones are gone for good.")
            for token, name in deleted.items():
                st.button(escaped(name), key=f"bring back {token}", on_click=_undelete, args=(token,), icon=":material/undo:")


def _rename(name: str, key: str) -> None:
    new = st.session_state[key].strip()
    if _attempt(lambda: manage.rename(name, new), f"{name} is called {new} now."):
        st.session_state["model"] = new
        _replace_chosen(name, new)


def _delete(name: str) -> None:
    def delete() -> None:
        st.session_state[_TOKEN] = manage.delete(name)

    adapters = [checkpoints.name_of(one) for one in manage.adapters_of(checkpoints.folders().get(name, Path(name)))]
    without = f" Without it its LoRA adapters do not open: {', '.join(adapters)}." if adapters else ""
    if _attempt(delete, f"{name} is in the trash.{without}"):
        left = list(checkpoints.folders())
        st.session_state["model"] = frame.default_model() if frame.default_model() in left else next(iter(left), None)
        _replace_chosen(name, None)


def _undelete(token: str) -> None:
    def undelete() -> None:
        st.session_state["model"] = manage.undelete(token)

    if _attempt(undelete, "It is back."):
        st.session_state[_DONE] = f"{st.session_state['model']} is back."


def _attempt(action: Callable[[], object], done: str) -> bool:
    """Whether `action` worked; the next run of the page shows `done`, or why it did not."""
    try:
        action()
    except checkpoints.CheckpointError as error:
        st.session_state[_FAILED] = str(error)
        return False
    st.session_state[_DONE] = done
    return True


def _replace_chosen(name: str, new: str | None) -> None:
    """In the comparison the model gets its `new` name; without one it leaves the comparison."""
    if in_link := st.query_params.get("chosen"):
        names = [new if other == quote(name, safe="") else other for other in in_link.split(",")]
        addresses.write("chosen", ",".join(filter(None, names)) or NONE)
