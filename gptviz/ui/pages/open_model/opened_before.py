"""The models of other programs that were opened before, with what their cards say, and a way to remove them."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from gptviz.runs import checkpoints, manage
from gptviz.ui.views.open_in import open_in
from gptviz.ui.widgets import escaped

from .here import cards
from .imported import imported_models

_DONE, _TOKEN = "removed", "removed token"


def opened_before() -> None:
    """The list of these models; nothing if there is none."""
    _result()
    models = imported_models()
    if not models:
        return
    st.header("Opened before", anchor=False)
    with cards("opened before"):
        for model in models:
            with st.container(border=True, gap="xsmall"):
                st.markdown(f"**{escaped(model.name)}**")
                st.caption(escaped(model.line))
                for note in model.notes:
                    st.caption(escaped(note))
                with st.container(horizontal=True):
                    open_in(model.name)
                    about = "Takes it from your list. The files that it refers to stay where they are."
                    st.button(
                        "Remove",
                        key=f"remove {model.name}",
                        icon=":material/delete:",
                        help=about,
                        on_click=_remove,
                        args=(model.name,),
                    )


def _result() -> None:
    """A line on the model that the last click removed or brought back."""
    if done := st.session_state.pop(_DONE, None):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(escaped(done), width="stretch")
            if token := st.session_state.pop(_TOKEN, None):
                st.button("Undo", key="undo", on_click=_bring_back, args=(token,), icon=":material/undo:")


def _remove(name: str) -> None:
    def remove() -> str:
        st.session_state[_TOKEN] = manage.delete(name)
        if st.session_state.get("model") == name:
            st.session_state.pop("model")
        return f"{name} is in the trash."

    _attempt(remove)


def _bring_back(token: str) -> None:
    _attempt(lambda: f"{manage.undelete(token)} is back.")


def _attempt(action: Callable[[], str]) -> None:
    try:
        st.session_state[_DONE] = action()
    except checkpoints.CheckpointError as error:
        st.session_state[_DONE] = str(error)
