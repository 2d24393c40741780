"""The tree that grows on the Generate page: one object per browser session, and the fragment that shows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import wraps
from itertools import count
from threading import RLock
from time import perf_counter
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from gptviz.components import generation_tree as view
from gptviz.components.generation_tree import Ghost, Look
from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.generate.tree import ROOT, Tree, TreeNode
from gptviz.interp.next_token import predict
from gptviz.ui.shell import scrubber
from gptviz.ui.shell.models import ModelKey, load_call
from gptviz.ui.shell.subject import Subject

# Tokens on one path, and in all branches together.
MOST_TOKENS, MOST_NODES = 2_000, 4_000
# What stands there when the page opens: a text of so many tokens, or fewer of a slow model, and a branch beside it.
FIRST_TOKENS, FIRST_SECONDS = 120, 1.5
FORK_TOKENS, FORK_SECONDS = 60, 0.7
# While training is played a text lasts for one frame only.
FRAME_SECONDS = 0.12
ALTERNATIVES = 8
# Tokens a second of a playing text, by the clock: a late tick catches up, but not for more than CATCH_UP seconds, and
# a tick ends when TICK_SECONDS of computing are up.
SPEEDS = {"Slow": 2.5, "Medium": 20.0, "Fast": 400.0}
TICK, CATCH_UP, TICK_SECONDS = 0.1, 0.5, 0.06

_numbers = count(1)

P = ParamSpec("P")
R = TypeVar("R")


def alone(act: Callable[Concatenate[Writing, P], R]) -> Callable[Concatenate[Writing, P], R]:
    """One at a time: a click starts a new run of the script while the last one may still be drawing tokens."""

    @wraps(act)
    def locked(self: Writing, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return act(self, *args, **kwargs)

    return locked


class Writing:
    """A text that a session's reader plays, steps, undoes and steers: the current path of a tree that keeps its other branches.

    Attributes:
        about: the model at a step of its training and the prompt's ids; another of either is another text.
        number: tells it from other texts of this server.
        tree: all that was written.
        playing: whether it grows by itself.
        cut_short: whether it opened with fewer tokens than usual, since training was being played.
        lock: held while any of this changes.
    """

    def __init__(self, subject: Subject, sampling: Sampling) -> None:
        self.about = topic(subject)
        self.number = next(_numbers)
        self.lm, self.prompt, self.labels = subject.lm, subject.prompt, subject.labels
        self.tree = Tree(
            Generation(subject.lm.model, torch.tensor(subject.encoding.ids), sampling),
            most_nodes=MOST_NODES,
            n_candidates=ALTERNATIVES,
        )
        self.playing = self.cut_short = False
        self.lock = RLock()
        self._asked: int | None = None
        self._due = 0.0
        self._ticked = 0.0
        self._spent = 0.0
        self._straight = True  # nothing is computed again
        self._since = ROOT
        self._durations: deque[float] = deque(maxlen=100)
        self._ghosts: tuple[object, tuple[Ghost, ...]] = None, ()
        self._shown: tuple[object, bytes] = None, b""

    @property
    def sampling(self) -> Sampling:
        """How the next token is drawn."""
        return self.tree.generation.sampling

    @sampling.setter
    def sampling(self, sampling: Sampling) -> None:
        self.tree.generation.sampling = sampling

    @property
    def length(self) -> int:
        """How many tokens the text has after the prompt."""
        return self.tree.nodes[self.tree.current].position + 1 - len(self.tree.prompt)

    @property
    def full(self) -> bool:
        """Whether the text has reached the most this page keeps."""
        return self.length >= MOST_TOKENS

    @property
    def tokens_per_second(self) -> float | None:
        """How fast the model computed the last tokens, whatever the page did in between; None before the first."""
        return len(self._durations) / sum(self._durations) if self._durations else None

    @property
    @alone
    def written(self) -> list[TreeNode]:
        """The tokens after the prompt."""
        return self.tree.path()

    @property
    def ids(self) -> list[int]:
        """Their ids."""
        return [node.token for node in self.written]

    @property
    def text(self) -> str:
        """The text after the prompt."""
        return self.lm.tokenizer.decode(self.ids)

    @property
    def document(self) -> str:
        """The prompt and the text after it."""
        return self.prompt + "".join(map(self.lm.tokenizer.piece, self.ids)) if self.spaced else self.prompt + self.text

    @property
    def spaced(self) -> bool:
        """Whether tokens are words of their own, with a gap between them."""
        return self.lm.tokenizer.kind == "symbols"

    @property
    @alone
    def ghosts(self) -> tuple[Ghost, ...]:
        """The likeliest next tokens, under the settings that hold now."""
        state = (self.tree.current, self.sampling)
        if self._ghosts[0] != state:
            prediction = predict(self._logits(), self.sampling)
            before, few = prediction.before, min(ALTERNATIVES, len(prediction.before))
            top = sorted(np.argpartition(-before, few - 1)[:few].tolist(), key=lambda i: (-before[i], i))
            ghosts = (Ghost(i, float(before[i]), float(prediction.after[i]), str(prediction.cut[i])) for i in top)
            self._ghosts = state, tuple(ghosts)
        return self._ghosts[1]

    @alone
    def step(self) -> None:
        """Draw one more token."""
        self._grow(self.tree.step)

    @alone
    def take(self, token: int, after: int | None = None) -> None:
        """Go on with `token` after a node of the tree (default: the current one)."""
        if after is not None:
            self.go(after)
        self._grow(lambda: self.tree.take(token))

    @alone
    def go(self, node: int) -> None:
        """Go on from a node: undo, redo and switch branch in one."""
        self.playing = self._straight = False
        self.tree.go(node)

    @alone
    def undo(self, steps: int = 1) -> None:
        """Step back; what was written stays as a branch."""
        self.playing = self._straight = False
        self.tree.up(steps)

    def restart(self) -> None:
        """Back to the prompt."""
        self.go(ROOT)

    @alone
    def play(self) -> None:
        """Start growing."""
        self.playing = not self.full
        self._since = max(self.tree.nodes)
        self._due, self._ticked = 1.0, perf_counter()

    def pause(self) -> None:
        """Stop growing."""
        self.playing = False

    @alone
    def step_by_hand(self) -> None:
        """Stop, and draw one token."""
        self.playing = False
        self.step()

    @alone
    def attend(self, node: int) -> None:
        """Show the attention of the step after `node` too."""
        self.playing, self._asked = False, node

    def grow(self, tokens: int, seconds: float) -> None:
        """Draw up to `tokens` tokens, fewer where that takes longer than `seconds`."""
        begun = perf_counter()
        while tokens > 0 and perf_counter() - begun < seconds:
            self.step()
            tokens -= 1

    @alone
    def fork(self) -> None:
        """Write beside the text what becomes of it with another token, where the model believed in that nearly as much."""
        path, here = self.written, self.tree.current
        early = path[len(path) // 6 : -(-len(path) // 2)]
        others = [
            (candidate.probability, node.parent, candidate.token)
            for node in early
            if node.parent is not None
            for candidate in node.candidates
            if candidate.token not in self.tree.nodes[node.parent].children
        ]
        if not others:
            return
        _, after, token = max(others)
        self.take(token, after)
        self.grow(FORK_TOKENS - 1, FORK_SECONDS)
        self.go(here)

    def begin(self) -> None:
        """The text that the page opens on, with a branch."""
        self.grow(FIRST_TOKENS - self.length, FIRST_SECONDS)
        self.fork()

    def tick(self, rate: float) -> None:
        """While playing: draw the tokens that are due at `rate` tokens a second, until somebody pauses."""
        now = perf_counter()
        self._due += rate * min(now - self._ticked, CATCH_UP)
        self._ticked = now
        while self._due >= 1 and perf_counter() - now < TICK_SECONDS:
            with self.lock:
                if not self.playing:
                    return
                self.step()
                self._due -= 1
        self._due %= 1  # what a slow model could not do in time is not owed

    @alone
    def gone_to(self, fields: dict[str, Any]) -> bool:
        """Act on a click on a token of the tree, as `view.place` reads it; whether it counted."""
        if (node := view.place(fields, self.tree, self.number)) is None:
            return False
        self.go(node)
        return True

    @alone
    def taken(self, fields: dict[str, Any]) -> bool:
        """Act on a click on another token, as `view.taken` reads it; whether it counted."""
        if (chosen := view.taken(fields, self.tree, self.number)) is None:
            return False
        self.take(chosen[1], chosen[0])
        return True

    @alone
    def attended(self, fields: dict[str, Any]) -> bool:
        """Act on a request for the attention of a step, as `view.place` reads it; whether it counted."""
        if (node := view.place(fields, self.tree, self.number)) is None:
            return False
        self.attend(node)
        return True

    def lost(self, fields: dict[str, Any]) -> None:
        """While it grows by itself, send all of the tree from now on: the browser had not seen its beginning."""
        if fields.get("number") == self.number:
            self._since = ROOT

    @property
    def code(self) -> str:
        """The lines of Python that make the same tree."""
        return view.code(load_call(self.lm), self.prompt, self.tree)

    @alone
    def shown(self) -> bytes:
        """What the browser gets: the same bytes as long as nothing changes; little while it grows by itself."""
        state = (self.tree.state, self.sampling, self.playing, self.full, self._asked, self._since)
        if self._shown[0] != state:
            look = Look(
                self.number,
                self.labels,
                self.lm.tokenizer.label,
                described,
                self.ghosts,
                code="" if self.playing else self.code,
                playing=self.playing,
                full=self.full,
                spaced=self.spaced,
                status=self._status(),
            )
            packed = view.grown(self.tree, look, self._since) if self.playing else view.whole(self.tree, look, self._asked)
            self._shown = state, packed
        return self._shown[1]

    def _status(self) -> str:
        rate = self.tokens_per_second
        return f"{self.length:,} token{'' if self.length == 1 else 's'}" + (f", computed at {rate:,.0f} a second" if rate else "")

    def _logits(self) -> Tensor:
        fresh = self.tree.kept(self.tree.current) is None
        begun = perf_counter()
        logits = self.tree.after().logits
        self._spent = perf_counter() - begun if fresh and self._straight else self._spent
        return logits

    def _grow(self, act: Callable[[], TreeNode]) -> None:
        if self.full:
            return
        self._logits()
        begun = perf_counter()
        act()
        if self._spent:
            self._durations.append(self._spent + perf_counter() - begun)
        self._spent, self._straight, self._asked = 0.0, True, None
        self.playing = self.playing and not self.full


def topic(subject: Subject) -> tuple[ModelKey, tuple[int, ...]]:
    """What a text goes on from: the model (at a step of its training) and the prompt's ids."""
    return subject.key, tuple(subject.encoding.ids)


def described(sampling: Sampling) -> str:
    """The settings in a few words."""
    parts = ["the likeliest" if sampling.temperature == 0 else f"temperature {sampling.temperature:g}"]
    parts += [f"top-k {sampling.top_k}"] if sampling.top_k else []
    parts += [f"top-p {sampling.top_p:g}"] if sampling.top_p else []
    return ", ".join(parts)


def writing(subject: Subject, sampling: Sampling) -> Writing:
    """The session's text: the one begun before, or a new one where model, step or prompt changed, with its first tokens."""
    now: Writing | None = st.session_state.get("writing")
    if now is not None and now.about == topic(subject):
        now.sampling = sampling
        if now.cut_short and not scrubber.is_playing():
            now.cut_short = False
            now.begin()
        return now
    if now is not None and (now.about[0].name, now.about[1]) != (subject.key.name, topic(subject)[1]):
        st.toast("Another model or prompt: the text starts anew.", icon=":material/restart_alt:")
    now = Writing(subject, sampling)
    now.cut_short = scrubber.is_playing()
    if now.cut_short:
        now.grow(FIRST_TOKENS, FRAME_SECONDS)
    else:
        now.begin()
    st.session_state["writing"] = now
    return now


def transport(now: Writing) -> str:
    """The buttons that play, step and undo; the speed chosen."""
    from gptviz.ui.widgets import controls

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        # Two buttons, each with a key of its own: a click that arrives late must not do the opposite.
        if now.playing:
            st.button("Pause", icon=":material/pause:", on_click=now.pause, key="pause", type="primary", help="Stop here.")
        else:
            st.button(
                "Play",
                icon=":material/play_arrow:",
                on_click=now.play,
                key="play",
                type="primary",
                disabled=now.full,
                help="Let the text grow by itself.",
            )
        st.button(
            "Step",
            icon=":material/skip_next:",
            on_click=now.step_by_hand,
            key="one token",
            disabled=now.full,
            help="Draw one token.",
            shortcut="Space",
        )
        st.button(
            "Undo",
            icon=":material/undo:",
            on_click=now.undo,
            key="undo",
            disabled=not now.length,
            help="One token back. What was written stays as a branch; a step draws the same token again.",
        )
        st.button(
            "Restart",
            icon=":material/restart_alt:",
            on_click=now.restart,
            key="restart",
            disabled=not now.length,
            help="Back to the prompt. What was written stays as a branch.",
        )
        return controls.select(
            "Speed",
            list(SPEEDS),
            key="speed",
            default="Medium",
            segmented=True,
            label_visibility="collapsed",
            help="How fast the text grows while it plays: 2.5 or 20 tokens a second, or as fast as the model can.",
        )


def show(now: Writing, speed: str) -> None:
    """The tree; while it grows by itself, in a fragment that runs by the clock."""
    timed = now.playing

    def body() -> None:
        if timed and now.playing:
            now.tick(SPEEDS[speed])
        if now.playing != timed:
            st.rerun()
        view.generation_tree(
            now.shown(),
            key="tree",
            on_go=lambda fields: _then_rerun(now.gone_to(fields)),
            on_take=lambda fields: _then_rerun(now.taken(fields)),
            on_attend=lambda fields: _then_rerun(now.attended(fields)),
            on_lost=now.lost,
        )

    st.fragment(body, run_every=TICK if timed else None)()


def _then_rerun(counted: bool) -> None:
    """Run the whole page, since the buttons beside the tree depend on it too."""
    if counted:
        st.rerun()


def fork_button(now: Writing) -> None:
    """Beside the other things to try: a branch from the text that stands there."""
    st.button(
        "A fork",
        on_click=now.fork,
        key="try A fork",
        disabled=not now.length,
        help="Another token where the model wavered: the same random numbers are drawn, and yet the texts soon have nothing in "
        "common. Compare the means of their log-probabilities, and click the pale branch to go over to it.",
    )
