"""The text of a session: the current path of a tree that keeps its other branches, and what it
opens on.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import wraps
from itertools import count, islice
from threading import Condition, Lock, RLock
from time import perf_counter
from typing import Concatenate, ParamSpec, TypeVar

import streamlit as st
import torch
from cachetools import cached
from torch import Tensor

from gptviz.figures.kit.format import format_count
from gptviz.generate.budget import BUDGET, affordable
from gptviz.generate.generation import Generation, until_drawn
from gptviz.generate.route import Route, checksum
from gptviz.generate.sampling import Sampling
from gptviz.generate.tree import ROOT, Choice, Snapshot, Tree, TreeNode
from gptviz.interp.changing.directions import turned_round
from gptviz.language_model.core import end_tokens
from gptviz.language_model.writing import to_write
from gptviz.machine.byte_cache import byte_cache
from gptviz.model.costs.effort import LEAST
from gptviz.text import SymbolTokenizer
from gptviz.ui.shell.subject import ModelKey, Subject

from .pace import Pace, Speedometer

# Tokens on one path, and in all branches together; and bytes of logits and attention that are kept
# of them.
MOST_TOKENS = 2_000
MOST_NODES = 4_000
MOST_BYTES = 32 * 2**20
ALTERNATIVES = 8
# How many edits are named in the words about a branch.
MOST_NAMED = 3
# One tick of a playing text computes for at most this many seconds.
TICK_SECONDS = 0.06
_numbers = count(1)
# The beginning of a text: the model (at a step of its training) and the prompt's ids.
Topic = tuple[ModelKey, tuple[int, ...]]
# Two states are equal if, and only if, the tree and the settings were the same.
WritingState = tuple[tuple[int, int, int], Sampling]
P = ParamSpec("P")
R = TypeVar("R")
# How many tokens the text and the branch have; with a large model, fewer.
FIRST_TOKENS = 80
FORK_TOKENS = 60
# The texts that all sessions share take at most so much memory.
MOST_BEGUN_BYTES = 96 * 2**20
# Side by side, each of two texts would take as long as both.
_ONE_AFTER_THE_OTHER = Lock()


def one_at_once(act: Callable[Concatenate[Writing, P], R]) -> Callable[Concatenate[Writing, P], R]:
    """Let only one run of the script at a time change the text: after a click, the run before may
    still be drawing tokens.
    """

    @wraps(act)
    def locked(self: Writing, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return act(self, *args, **kwargs)

    return locked


class Writing:
    """A text that a user plays, steps, undoes and steers.

    Attributes:
        about: see `topic`; where it differs, another text has to begin.
        number: tells it from other texts of this server.
        edits: those of the model that writes it.
        tree: all that was written.
        playing: whether it grows by itself.
        stops: whether it stops where the model ends its text.
        cut_short: whether it opened with fewer tokens than usual, since training was being played.
        opened_as: its state when the page had opened on it by itself; None for a text that a link
            brought back.
        ahead: how the next tokens are chosen, while the text of a link is written again.
        linked: the route of that link; "" once it is written, or left.
        differs: whether a link led to other tokens than when it was made.
        attention_of: the node whose attention is shown next to that of the current one, or None.
        speedometer: how fast the model computes.
        lock: held while any of this changes.
    """

    def __init__(self, subject: Subject, sampling: Sampling) -> None:
        self.about = topic(subject)
        self.number = next(_numbers)
        self.lm = subject.lm
        self.prompt = subject.prompt
        self.labels = subject.labels
        self.edits = subject.key.edits
        never = subject.lm.tokenizer.unused_ids
        self.tree = Tree(
            Generation(subject.lm.model, torch.tensor(subject.encoding.ids), sampling, never=never),
            most_nodes=MOST_NODES,
            most_bytes=MOST_BYTES,
            n_candidates=ALTERNATIVES,
        )
        self.playing = self.cut_short = self.differs = False
        self.stops = True
        self.opened_as: WritingState | None = None
        self.ahead: deque[Choice] = deque()
        self.linked = ""
        self._checksum = ""
        self.attention_of: int | None = None
        self._to_write = to_write(self.lm, len(self.tree.prompt), sys.maxsize)
        self.pace = Pace()
        self.speedometer = Speedometer()
        self.lock = RLock()

    @property
    def sampling(self) -> Sampling:
        """How the next token is drawn."""
        return self.tree.generation.sampling

    @sampling.setter
    def sampling(self, sampling: Sampling) -> None:
        self.tree.generation.sampling = sampling

    @property
    def state(self) -> WritingState:
        """See `WritingState`."""
        return self.tree.state, self.sampling

    @property
    def is_untouched(self) -> bool:
        """Whether the text is as the page opened on it by itself: the same link then opens the same
        text without a route.
        """
        return self.opened_as == self.state

    @property
    def length(self) -> int:
        """How many tokens the text has after the prompt."""
        return self.tree.nodes[self.tree.current].position + 1 - len(self.tree.prompt)

    @property
    def is_full(self) -> bool:
        """Whether the text has reached the most this page keeps."""
        return self.length >= MOST_TOKENS

    @property
    def is_at_end(self) -> bool:
        """Whether the last token is one with which the model ends a text, or a sequence of its task
        is complete.
        """
        return self.length == self._to_write or self.ends_with_end_token

    @property
    def ends_with_end_token(self) -> bool:
        """Whether the last token is one with which the model ends a text."""
        return self.length > 0 and self.tree.nodes[self.tree.current].token in end_tokens(self.lm)

    @property
    @one_at_once
    def written_nodes(self) -> list[TreeNode]:
        """The tokens after the prompt."""
        return self.tree.path()

    @property
    def ids(self) -> list[int]:
        """Their ids."""
        return [node.token for node in self.written_nodes]

    @property
    def text(self) -> str:
        """The text after the prompt."""
        return self.lm.tokenizer.continuation(self.ids)

    @property
    def document(self) -> str:
        """The prompt and the text after it."""
        # what goes on with a text of symbols begins without a space
        if self.lm.tokenizer.kind == SymbolTokenizer.kind:
            return self.prompt + "".join(map(self.lm.tokenizer.piece, self.ids))
        return self.prompt + self.text

    @property
    def has_spaces(self) -> bool:
        """Whether tokens are whole words, with a gap between them."""
        return self.lm.tokenizer.is_spaced

    @one_at_once
    def logits(self) -> Tensor:
        """The logits from which the next token is drawn [vocab_size]."""
        with self.speedometer.logits(is_new=self.tree.cached_values(self.tree.current) is None):
            return self.tree.compute_after().logits

    @one_at_once
    def step(self) -> None:
        """Draw one more token; of a text that is written again, the next one."""
        if self.ahead:
            choice = self.ahead.popleft()
            self._grow(lambda: self.tree.follow(choice))
            if not self.ahead:
                self._arrive()
        else:
            self._grow(self.tree.step)

    @one_at_once
    def follow(self, route: Route, line: str) -> None:
        """Go along a `route` from the prompt as far as the tree has its tokens; the others are
        `ahead`.

        Args:
            line: the route as the link has it.
        """
        self.tree.go(ROOT)
        self.ahead = deque(route.choices)
        self.linked = line
        self._checksum = route.checksum
        while self.ahead and self.tree.has_token(self.ahead[0]):
            self.tree.follow(self.ahead.popleft())
        if not self.ahead:
            self._arrive()

    def _arrive(self) -> None:
        """The text of a link is written again."""
        self.differs = checksum(self.ids) != self._checksum
        self.linked = ""
        self.playing = False

    def _leave_route(self) -> None:
        self.ahead.clear()
        self.linked = ""
        self.differs = False

    @one_at_once
    def take(self, token: int, after: int | None = None) -> None:
        """Go on with `token` after a node of the tree (default: the current one)."""
        self._leave_route()
        if after is not None:
            self.go(after)
        self._grow(lambda: self.tree.take(token))

    def _grow(self, act: Callable[[], TreeNode]) -> None:
        if self.is_full:
            return
        self.logits()
        with self.speedometer.draw():
            act()
        self.attention_of = None
        has_ended = self.stops and self.is_at_end and not self.ahead
        self.playing = self.playing and not self.is_full and not has_ended

    @one_at_once
    def go(self, node: int) -> None:
        """Go on from a node: undo, redo and switch branch in one."""
        self.playing = False
        self._leave_route()
        self.speedometer.interrupt()
        self.tree.go(node)

    @one_at_once
    def undo(self, steps: int = 1) -> None:
        """Step back; what was written stays as a branch."""
        self.playing = False
        self._leave_route()
        self.speedometer.interrupt()
        self.tree.go_back(steps)

    @one_at_once
    def bring(self, tokens: Sequence[int], origin: str | Sequence[str]) -> None:
        """Put a text of the same prompt next to this one, as a branch that says where it comes
        from, its `origin`, or where each of its tokens does.
        """
        self.tree.bring(tokens, origin)
        self.speedometer.interrupt()

    def restart(self) -> None:
        """Back to the prompt."""
        self.go(ROOT)

    @one_at_once
    def play(self) -> None:
        """Start growing."""
        self.playing = not self.is_full
        self.pace.start()

    def pause(self) -> None:
        """Stop growing."""
        self.playing = False

    @one_at_once
    def step_by_hand(self) -> None:
        """Stop, and draw one token."""
        self.playing = False
        self.step()

    @one_at_once
    def attend(self, node: int) -> None:
        """Show the attention of the step after `node` too."""
        self.playing = False
        self.attention_of = node

    def tick(self, rate: float) -> None:
        """While playing: draw the tokens that are due at `rate` tokens a second, until somebody
        pauses.

        What a slow model cannot do in time is left out.
        """
        started = perf_counter()
        for _ in range(self.pace.tokens_due(rate)):
            if perf_counter() - started >= TICK_SECONDS:
                return
            with self.lock:
                if not self.playing:
                    return
                self.step()


@dataclass(frozen=True)
class Begun:
    """A text that was written at once: its tree, with what the model computed, and how fast that
    was.
    """

    tree: Snapshot
    speedometer: Speedometer


def written_with(edits: tuple[str, ...]) -> str:
    """The edits of the model with which a branch was written, in words."""
    if not edits:
        return "written without edits"
    named = ", ".join(edits[:MOST_NAMED]) + (", …" if len(edits) > MOST_NAMED else "")
    return f"written with {format_count(len(edits), 'edit')}: {named}"


def topic(subject: Subject) -> Topic:
    """See `Topic`."""
    return subject.key, tuple(subject.encoding.ids)


def begin(writing: Writing) -> None:
    """Write a text as long as the page writes at once; of a model with edits, with branches: see
    `add_others`.
    """
    with writing.lock:
        if len(writing.tree.nodes) > 1:
            _write(writing)
        else:
            begun = _begun_texts()(writing)
            writing.tree.restore(begun.tree)
            writing.speedometer = deepcopy(begun.speedometer)
        writing.opened_as = writing.state


def _write(writing: Writing) -> Begun:
    with _ONE_AFTER_THE_OTHER:
        grow(writing, FIRST_TOKENS - writing.length)
        writing.logits()
        if writing.edits:
            add_others(writing)
    return Begun(writing.tree.snapshot(at_hand=True), deepcopy(writing.speedometer))


def grow(writing: Writing, tokens: int, budget: float = BUDGET) -> None:
    """Draw up to `tokens` tokens, fewer where the text is at its end or they cost more than
    `budget`, see `affordable`.
    """
    length = len(writing.tree.prompt) + writing.length
    for _ in range(affordable(writing.lm.model, length, tokens, budget)):
        if writing.stops and writing.is_at_end:
            return
        writing.step()


def add_others(writing: Writing) -> None:
    """Add branches with what a model with edits writes without them, and with its directions turned
    round where it has some, with the same random numbers.
    """
    length = len(writing.tree.prompt)
    original = writing.lm.original
    if writing.stops:
        most = to_write(writing.lm, length, FORK_TOKENS)
    else:
        most = FORK_TOKENS
    never = writing.lm.tokenizer.unused_ids
    turned = tuple(map(turned_round, writing.edits))
    for edits in [(), *([turned] if turned != writing.edits else [])]:
        model = original.edited(*edits, text=writing.lm.edit_text).model
        grown = Generation(model, torch.tensor(writing.tree.prompt), writing.sampling, never=never)
        many = affordable(model, length, most, BUDGET / 4)
        tokens = [
            int(step.tokens[0]) for step in until_drawn(islice(grown, many), end_tokens(writing.lm))
        ]
        writing.bring(tokens, written_with(edits))


def fork(writing: Writing) -> None:
    """Add a branch that goes on from another token, if the model gave that one nearly as high a
    probability.

    The place is in the first half of the text, after its first sixth.
    """
    with writing.lock:
        path = writing.written_nodes
        current = writing.tree.current
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
        with writing.tree.write_aside():
            writing.take(token, after)
            grow(writing, FORK_TOKENS - 1, BUDGET / 2)
        writing.go(current)


@st.cache_resource(show_spinner=False, max_entries=1)
def _begun_texts() -> Callable[[Writing], Begun]:
    """The texts that were written at once, by all that they depend on: who asks for the same one
    gets a copy.
    """
    kept = byte_cache(lambda begun: begun.tree.bytes, MOST_BEGUN_BYTES)
    return cached(
        kept,
        key=lambda writing: (writing.about, writing.sampling, writing.stops),
        condition=Condition(),
    )(_write)


def bring(writing: Writing, before: Writing) -> None:
    """Put the text `before`, which the model wrote with other edits, next to this one, as far as it
    is read in a moment.
    """
    many = affordable(writing.lm.model, len(writing.tree.prompt), before.length, BUDGET / 2)
    writing.bring(before.ids[:many], written_with(before.edits))


def begin_short(writing: Writing) -> None:
    """Write what is shown for a moment, between two steps of training that is being played."""
    with writing.lock:
        writing.cut_short = True
        # while training is played, a text is shown for a moment only
        grow(writing, FIRST_TOKENS, LEAST)
        writing.opened_as = writing.state


def begin_again(writing: Writing) -> None:
    """Write the text once more from the prompt, with the settings of now; what was written stays as
    a branch.
    """
    with writing.lock:
        writing.go(ROOT)
        grow(writing, FIRST_TOKENS)
