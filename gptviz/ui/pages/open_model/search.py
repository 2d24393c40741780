"""A search among the models on the hub, for the families that gptviz opens."""

from __future__ import annotations

import streamlit as st

from gptviz.pretrained.families import ImportRefusedError
from gptviz.pretrained.places import hub
from gptviz.ui.widgets.markdown import escaped

from .asked import choose

_WORDS = "words for the hub"


def search_the_hub() -> None:
    """A field whose words are sent to the hub, and what it has found."""
    with st.form("search the hub", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        words = st.text_input(
            "Search the hub", key=_WORDS, max_chars=100, placeholder="tinystories", help="These words are sent to the hub."
        )
        st.form_submit_button("Search", icon=":material/search:")
    if not words or not words.strip():
        return
    try:
        found = _search(words.strip())
    except ImportRefusedError as error:
        st.warning(f"The search is not possible: {escaped(str(error))}. Models on this machine open without it.")
        return
    if not found:
        st.caption(f"The hub has no model of a family that gptviz opens with “{escaped(words.strip())}” in its name.")
    for one in found:
        count = f", {one.parameters:,} parameters" if one.parameters is not None else ""
        st.button(
            f"**{escaped(one.name)}** · {escaped(one.family)}{count}, fetched {one.downloads:,} times in a month",
            key=f"choose {one.name}",
            type="tertiary",
            on_click=choose,
            args=(one.name,),
        )


@st.cache_data(ttl=300, max_entries=32, show_spinner="Asking the hub")
def _search(words: str) -> list[hub.Found]:
    return hub.search(words)
