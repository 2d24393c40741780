"""The link to a text: the route to the branch on screen, and its tree, kept on the server's shelf."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import streamlit as st
from cachetools import LRUCache

from gptviz.generate.budget import BUDGET, affordable
from gptviz.generate.route import Route
from gptviz.generate.tree import Snapshot
from gptviz.machine.byte_cache import byte_cache
from gptviz.settings.address_values import ANY, refused
from gptviz.ui.widgets import addresses, controls, escaped

from .writing import MOST_TOKENS, Topic, Writing

# Bounds of the shelf.
MOST_TREES, MOST_BYTES = 256, 64 * 2**20
# The keys of the address.
ROUTE, TREE = "route", "tree"
# The most characters of a route in an address: with the prompt it must pass through servers, mail and chat.
LONGEST_ROUTE = 1_500


class ShelvedTree(NamedTuple):
    """A tree on the shelf: what it goes on from, its `Tree.state`, and its nodes."""

    topic: Topic
    state: tuple[int, int, int]
    tree: Snapshot


class Shelf:
    """Trees by the keys of their texts. A key cannot be guessed: only somebody who was given the link has it.

    Everybody who opens a tree gets a copy: two browsers never work on the same one.
    """

    def __init__(self, most: int = MOST_TREES, most_bytes: int = MOST_BYTES) -> None:
        self._trees: LRUCache[str, ShelvedTree] = byte_cache(lambda kept: kept.tree.bytes, most_bytes, most)
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._trees)

    def keep(self, writing: Writing) -> None:
        """Put the tree of a text here, as it is now, unless nobody worked on it: the page writes such a tree again by itself."""
        if writing.is_untouched:
            return
        with self._lock, writing.lock:
            before = self._trees.get(writing.key)
            if before is None or before.state != writing.tree.state:
                self._trees[writing.key] = ShelvedTree(writing.about, writing.tree.state, writing.tree.snapshot())

    def find(self, key: str, topic: Topic) -> Snapshot | None:
        """The tree of this key; None if it is not here, or is one of another model or prompt."""
        with self._lock:
            kept = self._trees.get(key)
        return kept.tree if kept is not None and kept.topic == topic else None


@st.cache_resource(show_spinner=False, max_entries=1)
def shelf() -> Shelf:
    """The shelf of this server."""
    return Shelf()


def open_linked(writing: Writing) -> bool:
    """Bring back what the link asks for (the tree, if the shelf has it, and the branch) and say whether it asks for anything.

    What takes longer than a moment is written while the reader looks on, as when the text plays.
    """
    asked, key = _asked(ROUTE), _asked(TREE)
    addresses.takes(ROUTE, ANY)
    addresses.takes(TREE, ANY)
    kept = shelf().find(key, writing.about)
    if kept is not None:
        writing.tree.restore(kept)
    if not asked:
        return kept is not None
    size = writing.lm.model.config.vocab_size - len(writing.lm.tokenizer.unused_ids)  # these are never written
    try:
        found = Route.read(asked, vocab_size=size, most=MOST_TOKENS)
    except ValueError as error:
        addresses.takes(ROUTE, refused(str(error)))
        controls.warn_of_link("route =", asked, f": {escaped(str(error))}")
        return kept is not None
    writing.follow(found, asked)
    at_once = affordable(writing.lm.model, len(writing.tree.prompt) + writing.length, len(writing.ahead), BUDGET)
    for _ in range(at_once):
        writing.step()
    if writing.ahead:
        writing.play()
    return True


def _asked(key: str) -> str:
    """The value of `key` in the address; empty if it names a text that is not on this machine."""
    try:
        return addresses.get(key) or ""
    except addresses.NotKeptError as error:
        st.warning(f"{escaped(str(error))}.", icon=":material/link_off:")
        return ""


def address(writing: Writing) -> dict[str, str | None]:
    """The values in the address that bring the text back; none for the text that the page opens on by itself."""
    if writing.is_untouched:
        return {ROUTE: None, TREE: None}
    line = writing.linked or route(writing)
    return {ROUTE: line if len(line) <= LONGEST_ROUTE else None, TREE: writing.key}


def route(writing: Writing) -> str:
    """The route to the branch on screen, as a line."""
    return Route.to(writing.written).line


def explain(writing: Writing) -> None:
    """Say which part of the text a link did not bring back, and what the link to this page cannot hold."""
    if writing.ahead:
        st.info(f"The text of the link has {len(writing.ahead):,} more tokens: Play writes them.", icon=":material/play_arrow:")
    if writing.differs:
        st.warning(
            "The link was made for another text: the model was trained again since then, or this machine’s numbers differ in "
            "the last digit, which can change the draw.",
            icon=":material/link_off:",
        )
    if not writing.is_untouched and len(route(writing)) > LONGEST_ROUTE:
        st.info(
            "The link to this page cannot carry this text: too many of its tokens were chosen by hand, or by changing settings. "
            "As long as this server runs, the link opens it all the same; after that it opens at the prompt. "
            "Download the text to keep it.",
            icon=":material/link_off:",
        )
