"""The text that the page Generate opens on: some tokens, and a branch next to them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from threading import Condition, Lock

import streamlit as st
import torch
from cachetools import cached

from gptviz.generate.budget import BUDGET, affordable
from gptviz.generate.generation import Generation, until_drawn
from gptviz.generate.tree import ROOT, Snapshot
from gptviz.machine.byte_cache import byte_cache
from gptviz.model.costs.effort import LEAST

from .pace import Speedometer
from .writing import Writing, written_with

# How many tokens the text and the branch have; with a large model, fewer.
FIRST_TOKENS, FORK_TOKENS = 120, 60
# The texts that all sessions share take at most so much memory.
MOST_BYTES = 96 * 2**20
# Side by side, each of two texts would take as long as both.
_ONE_AFTER_THE_OTHER = Lock()


@dataclass(frozen=True)
class Begun:
    """A text that the page opened on: its tree, with what the model computed, and how fast that was."""

    tree: Snapshot
    speedometer: Speedometer


@st.cache_resource(show_spinner=False, max_entries=1)
def _begun() -> Callable[[Writing], Begun]:
    """The texts that the page opened on, by all that they depend on: who opens the same one gets a copy."""
    kept = byte_cache(lambda begun: begun.tree.bytes, MOST_BYTES)
    return cached(kept, key=lambda writing: (writing.about, writing.sampling, writing.stops), condition=Condition())(_write)


def begin(writing: Writing) -> None:
    """Write the text that the page opens on, with a branch: of a model with edits, what it writes without them."""
    with writing.lock:
        if len(writing.tree.nodes) > 1:
            _write(writing)
        else:
            begun = _begun()(writing)
            writing.tree.restore(begun.tree)
            writing.speedometer = deepcopy(begun.speedometer)
        writing.opened_as = writing.state


def _write(writing: Writing) -> Begun:
    with _ONE_AFTER_THE_OTHER:
        grow(writing, FIRST_TOKENS - writing.length)
        if writing.edits:
            add_unedited(writing)
        else:
            fork(writing)
    return Begun(writing.tree.snapshot(at_hand=True), deepcopy(writing.speedometer))


def add_unedited(writing: Writing) -> None:
    """Add a branch with what a model with edits writes without them, with the same random numbers."""
    length = len(writing.tree.prompt)
    most = writing.lm.to_write(length, FORK_TOKENS) if writing.stops else FORK_TOKENS
    never = writing.lm.tokenizer.unused_ids
    grown = Generation(writing.lm.original.model, torch.tensor(writing.tree.prompt), writing.sampling, never=never)
    many = affordable(writing.lm.model, length, most, BUDGET / 4)
    writing.bring([int(step.tokens[0]) for step in until_drawn(islice(grown, many), writing.lm.end_tokens)], written_with(()))


def bring(writing: Writing, before: Writing) -> None:
    """Put the text `before`, which the model wrote with other edits, next to this one, as far as it is read in a moment."""
    many = affordable(writing.lm.model, len(writing.tree.prompt), before.length, BUDGET / 2)
    writing.bring(before.ids[:many], written_with(before.edits))


def begin_short(writing: Writing) -> None:
    """Write what is shown for a moment, between two steps of training that is being played."""
    with writing.lock:
        writing.cut_short = True
        grow(writing, FIRST_TOKENS, LEAST)  # while training is played, a text is shown for a moment only
        writing.opened_as = writing.state


def begin_again(writing: Writing) -> None:
    """Write the text once more from the prompt, with the settings of now; what was written stays as a branch."""
    with writing.lock:
        writing.go(ROOT)
        grow(writing, FIRST_TOKENS)


def grow(writing: Writing, tokens: int, budget: float = BUDGET) -> None:
    """Draw up to `tokens` tokens, fewer where the text is at its end or they cost more than `budget`, see `affordable`."""
    length = len(writing.tree.prompt) + writing.length
    for _ in range(affordable(writing.lm.model, length, tokens, budget)):
        if writing.stops and writing.is_at_end:
            return
        writing.step()


def fork(writing: Writing) -> None:
    """Add a branch that goes on from another token, if the model gave that one nearly as high a probability.

    The place is in the first half of the text, after its first sixth.
    """
    with writing.lock:
        path, current = writing.written, writing.tree.current
        others = [
            (candidate.probability, node.parent, candidate.token)
            for node in path[len(path) // 6 : -(-len(path) // 2)]
            if node.parent is not None
            for candidate in node.candidates
            if candidate.token not in writing.tree.nodes[node.parent].children
        ]
        if not others:
            return
        _, after, token = max(others)
        with writing.tree.aside():
            writing.take(token, after)
            grow(writing, FORK_TOKENS - 1, BUDGET / 2)
        writing.go(current)
