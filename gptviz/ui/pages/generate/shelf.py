"""The shelf: the trees that readers worked on last, so that a reload, or another prompt in between, does not lose them."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import streamlit as st
from cachetools import LRUCache

from gptviz.generate.tree import Snapshot
from gptviz.machine.byte_cache import byte_cache

from .writing import Topic, Writing

# Bounds of the shelf.
MOST_TREES, MOST_BYTES = 256, 64 * 2**20


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
