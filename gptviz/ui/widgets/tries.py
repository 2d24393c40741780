"""“Try this”: what a page suggests, each with a sentence on what to notice, and the way back to
what was on screen before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from gptviz.components.kit.command import ViewCommand

from . import addresses

# The key of the session's state that holds the suggestions taken on this page, the last one last.
_TAKEN = "tries taken"
MOST_TAKEN = 20
MOST_SHOWN = 3
# The key of the session's state with the container in which the suggestions of this run stand.
_PLACE = "place of the suggestions"


@dataclass(frozen=True)
class Try:
    """A suggestion of a page."""

    title: str  #: the label of its button; no two of a page are the same
    #: what there is to notice, as Markdown. It says what is true of the model on screen.
    notice: str
    #: the values that it sets: a key of the session's state, such as that of a control → its value.
    #: A view can undo a value that is a `ViewCommand`. Only a suggestion that needs a certain text
    #: sets the prompt.
    state: Mapping[str, Any] = field(default_factory=dict)
    #: the values that it writes into the address for keys without a control: a key → its value
    query: Mapping[str, str] = field(default_factory=dict)
    #: does what setting values cannot; returns a function that undoes it, if there is anything to
    #: undo
    act: Callable[[], Callable[[], object] | None] | None = None


@dataclass(frozen=True)
class _Taken:
    """A suggestion that was taken, and what was there before; a key that is missing here was not
    there.
    """

    offer: Try
    state: Mapping[str, Any]
    query: Mapping[str, str]
    undo: Callable[[], object] | None

    @property
    def can_be_undone(self) -> bool:
        return bool(self.offer.state or self.offer.query or self.undo)


def place_tries() -> None:
    """Let the suggestions of the page stand here, which are computed after what they are about."""
    st.session_state[_PLACE] = st.container(key="place-of-suggestions")


def try_this(offers: Sequence[Try]) -> None:
    """The most telling suggestions, the first of `offers`, as a row of short cards; next to the one
    taken last is a button that leads back.
    """
    last = taken[-1] if (taken := _all_taken()) else None
    offered = list(offers[:MOST_SHOWN])
    titles = [offer.title for offer in offered]
    # The suggestion may have led to another model, for which it is not offered; its sentence must
    # still be readable.
    if last is not None and last.offer.title not in titles:
        shown = [*offered, last.offer]
    else:
        shown = offered
    if not shown:
        return
    # How wide they are, and that a sentence is cut to a line until it is taken, stands in
    # components/kit/page.css.
    with (
        st.session_state.get(_PLACE) or st.container(),
        st.container(horizontal=True, key="suggestions"),
    ):
        for offer in shown:
            is_last = last is not None and last.offer.title == offer.title
            with st.container(gap=None, key="suggestion-taken" if is_last else None):
                with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                    # A suggestion that is no longer offered stays as the heading of its sentence.
                    st.button(
                        offer.title,
                        key=f"try {offer.title}",
                        on_click=take,
                        args=(offer,),
                        type="tertiary",
                        icon=":material/lightbulb:",
                        help=offer.notice,
                        disabled=offer.title not in titles,
                    )
                    if is_last and last is not None and last.can_be_undone:
                        st.button(
                            "Back to before",
                            icon=":material/undo:",
                            on_click=go_back,
                            key="try back",
                            type="tertiary",
                        )
                st.caption(offer.notice + _other_text(offer))


def forget() -> None:
    """Forget what was taken: another page was opened."""
    st.session_state.pop(_TAKEN, None)


def begin() -> None:
    """Forget where suggestions stood in the last run of a page."""
    st.session_state.pop(_PLACE, None)


def take(offer: Try) -> None:
    """Do what is suggested, and remember the state before."""
    state = {key: st.session_state[key] for key in offer.state if key in st.session_state}
    query = {key: st.query_params[key] for key in offer.query if key in st.query_params}
    for key, value in offer.state.items():
        st.session_state[key] = value
    for key, value in offer.query.items():
        addresses.write(key, value)
    undo = offer.act() if offer.act is not None else None
    st.session_state[_TAKEN] = [*_all_taken(), _Taken(offer, state, query, undo)][-MOST_TAKEN:]


def go_back() -> None:
    """Restore the state before the suggestion that was taken last."""
    *before, last = _all_taken()
    st.session_state[_TAKEN] = before
    for key, value in last.offer.state.items():
        if isinstance(value, ViewCommand):
            st.session_state[key] = value.undo_command()
        elif key in last.state:
            st.session_state[key] = last.state[key]
        else:
            st.session_state.pop(key, None)
    for key in last.offer.query:
        addresses.write(key, last.query.get(key))
    if last.undo is not None:
        last.undo()


def _all_taken() -> list[_Taken]:
    taken: list[_Taken] = st.session_state.get(_TAKEN, [])
    return taken


def _other_text(offer: Try) -> str:
    """A note where a suggestion replaces the prompt on screen."""
    prompt = offer.state.get("prompt")
    if prompt is None or prompt == st.session_state.get("prompt"):
        return ""
    return " *(with another prompt)*"
