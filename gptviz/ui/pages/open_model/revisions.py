"""Revisions of a model on the hub, which become the snapshots of one model here."""

from __future__ import annotations

import streamlit as st

from gptviz.runs import revisions
from gptviz.runs.checkpoints import CheckpointError
from gptviz.ui.widgets import escape_markdown, jobs, press_button

from .here import begin

# So many are named at first, evenly spaced.
AT_FIRST = 8
LONGEST = 10_000  # characters
# The key of the session's state with the model whose revisions were asked for.
_ASKED = "revisions asked for"

_listed = jobs.data("Asking the hub for revisions", max_entries=16)(revisions.every_name)
_look_up = jobs.resource("Asking the hub for sizes", max_entries=16)(revisions.look_up)


def offer(name: str) -> None:
    """What revisions the model of this name has on the hub, how large they are, and the button that
    fetches them. The hub is asked only after a click.
    """
    is_asked = st.session_state.get(_ASKED) == name
    with st.expander("Its training, step by step", icon=":material/history:", expanded=is_asked):
        st.caption(
            "Some models are on the hub at many steps of their training, as revisions. Here they "
            "become the snapshots of one model: the slider of every page steps through them."
        )
        if not is_asked:
            if press_button(
                "Ask for its revisions",
                key="ask for revisions",
                icon=":material/travel_explore:",
                help="Sends this name to the hub.",
            ):
                st.session_state[_ASKED] = name
                st.rerun()
            return
        try:
            _choose(name)
        except CheckpointError as error:
            st.error(escape_markdown(str(error)))


def _choose(name: str) -> None:
    """The names of the revisions, what they take, and the button."""
    listed = _listed(name)
    if not listed:
        st.caption(f"The hub has no revisions of {escape_markdown(name)} beside the main one.")
        return
    st.caption(
        f"The hub has {len(listed)}: {escape_markdown(', '.join(listed[:6]))}"
        + (f" … {escape_markdown(listed[-1])}." if len(listed) > 6 else ".")
    )
    typed = st.text_area(
        "Revisions",
        ", ".join(spread_evenly(listed, AT_FIRST)),
        key=f"revisions of {name}",
        max_chars=LONGEST,
        help="Names with commas between them. Those that say a step are ordered by it, others as "
        "they stand here.",
    )
    chosen = tuple(revisions.split_names(typed or ""))
    found = _look_up(name, chosen)
    st.caption(f"{escape_markdown(found.said)}.")
    if press_button(
        "Fetch as snapshots",
        key="fetch revisions",
        icon=":material/download:",
        type="primary",
        help="One after the other; you can stop, and what has arrived stays.",
    ):
        begin(name, revisions=chosen)


def spread_evenly(names: list[str], most: int) -> list[str]:
    """At most so many of the names, from the first to the last."""
    count = min(most, len(names))
    places = (round(i * (len(names) - 1) / max(1, count - 1)) for i in range(count))
    return [names[place] for place in places]
