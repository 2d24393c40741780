"""The text that grows on the Generate page: one object per browser session, and the fragment that shows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from threading import RLock
from time import perf_counter
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.bars import percent
from gptviz.interp.next_token import Prediction, predict
from gptviz.labelled import Axis, Labelled
from gptviz.learn.generation import Generation
from gptviz.learn.sampling import Sampling

from . import snapshots
from .cache import ModelKey, call
from .frame import Subject

MOST_TOKENS = 2_000
# What stands there when the page opens: this many tokens, or fewer of a model that needs longer.
FIRST_TOKENS, FIRST_SECONDS = 120, 1.5
# While training is played a text lasts for one frame only.
FRAME_SECONDS = 0.12
ALTERNATIVES = 8
# Tokens a second of a playing text, by the clock: a late tick catches up, but not for more than CATCH_UP seconds, and
# a tick ends when TICK_SECONDS of computing are up.
SPEEDS = {"Slow": 2.5, "Medium": 20.0, "Fast": 400.0}
TICK, CATCH_UP, TICK_SECONDS = 0.1, 0.5, 0.06
HEIGHT = 250


P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Candidate:
    """A token that may come next.

    Attributes:
        id: the token.
        label: its visible form.
        probability: what the model gives it.
        drawn_with: its probability after temperature, top-k and top-p.
        cut: what took it out of the draw, "" if nothing did.
    """

    id: int
    label: str
    probability: float
    drawn_with: float
    cut: str

    @property
    def row(self) -> Token:
        """The candidate as a line of the list of what may come next."""
        note = f"cut by {self.cut}: never drawn" if self.cut else f"drawn with {percent(self.drawn_with)}"
        return Token(self.label, self.probability, note=note, faint=bool(self.cut))


@dataclass(frozen=True)
class Written:
    """A token of the text, and what else was likely in its place.

    Attributes:
        taken: the token.
        candidates: the likeliest tokens there, the likeliest first.
        drawn: the settings it was drawn with, None if it was chosen by hand.
        chip: the token as the strip shows it.
    """

    taken: Candidate
    candidates: tuple[Candidate, ...]
    drawn: Sampling | None
    chip: Token


def alone(act: Callable[Concatenate[Writing, P], R]) -> Callable[Concatenate[Writing, P], R]:
    """One at a time: a click starts a new run of the script while the last one may still be drawing tokens."""

    @wraps(act)
    def locked(self: Writing, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return act(self, *args, **kwargs)

    return locked


class Writing:
    """A text that a session's reader plays, steps, undoes and steers.

    Attributes:
        about: the model at a step of its training and the prompt's ids; another of either is another text.
        written: the tokens after the prompt.
        selected: the index in `written` of the token being looked at, None for the one that comes next.
        playing: whether it grows by itself.
        cut_short: whether it opened with fewer tokens than usual, since training was being played.
        lock: held while any of this changes.
    """

    def __init__(self, subject: Subject, sampling: Sampling) -> None:
        self.about = topic(subject)
        self.lm = subject.lm
        self.prompt = [Token(label) for label in subject.labels]
        self.generation = Generation(subject.lm.model, torch.tensor(subject.encoding.ids), sampling)
        self.written: list[Written] = []
        self.selected: int | None = None
        self.playing = self.cut_short = False
        self.lock = RLock()
        self._due = 0.0
        self._ticked = 0.0
        self._spent = 0.0
        self._durations: deque[float] = deque(maxlen=100)
        self._next: tuple[Sampling, tuple[Candidate, ...]] | None = None

    @property
    def full(self) -> bool:
        """Whether the text has reached the most this page keeps."""
        return len(self.written) >= MOST_TOKENS

    @property
    def tokens_per_second(self) -> float | None:
        """How fast the model computed the last tokens, whatever the page did in between; None before the first."""
        return len(self._durations) / sum(self._durations) if self._durations else None

    @property
    def ids(self) -> list[int]:
        """The ids of the tokens after the prompt."""
        return [written.taken.id for written in self.written]

    @property
    def text(self) -> str:
        """The text after the prompt."""
        return self.lm.tokenizer.decode(self.ids)

    @property
    @alone
    def candidates(self) -> tuple[Candidate, ...]:
        """The likeliest tokens at the place being looked at, under the settings that hold there."""
        if self.selected is not None:
            return self.written[self.selected].candidates
        sampling = self.generation.sampling
        if self._next is None or self._next[0] != sampling:
            self._next = sampling, self._likeliest(predict(self._logits(), sampling))
        return self._next[1]

    @alone
    def step(self) -> None:
        """Draw one more token."""
        self._grow(None)

    @alone
    def take(self, token: int, at: int | None = None) -> None:
        """Put `token` at place `at` of `written` (default: the end), forgetting what stood there and after it."""
        if at is not None:
            self.undo(len(self.written) - at)
        self._grow(token)

    @alone
    def undo(self, steps: int = 1) -> None:
        """Forget the last tokens."""
        self.selected, self._next, self._spent = None, None, 0.0
        if steps > 0:
            self.generation.undo(steps)
            del self.written[max(0, len(self.written) - steps) :]

    @alone
    def undo_to_selected(self) -> None:
        """Forget the token being looked at and all after it; the last token if none is."""
        self.playing = False
        self.undo(1 if self.selected is None else len(self.written) - self.selected)

    @alone
    def restart(self) -> None:
        """Back to the prompt alone."""
        self.playing = False
        self.undo(len(self.written))

    @alone
    def play(self) -> None:
        """Start growing."""
        self.playing, self.selected = not self.full, None
        self._due, self._ticked = 1.0, perf_counter()

    def pause(self) -> None:
        """Stop growing."""
        self.playing = False

    @alone
    def step_by_hand(self) -> None:
        """Stop, and draw one token."""
        self.playing = False
        self.step()

    def grow(self, tokens: int, seconds: float) -> None:
        """Draw up to `tokens` tokens, fewer where that takes longer than `seconds`."""
        begun = perf_counter()
        while tokens > 0 and perf_counter() - begun < seconds:
            self.step()
            tokens -= 1

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
    def pick(self, chip: int) -> None:
        """Look at the token of chip `chip` of the strip; at the next token if it was looked at, or is of the prompt."""
        at = chip - len(self.prompt)
        self.playing = False
        self.selected = None if at < 0 or at == self.selected else at

    @alone
    def pick_alternative(self, chip: int, alternative: int) -> None:
        """Take another token instead of that of chip `chip`: the alternative with that index in its card."""
        at = chip - len(self.prompt)
        self.playing = False
        self.take(self.written[at].candidates[alternative].id, at)

    @alone
    def pick_candidate(self, index: int) -> None:
        """Take one of `candidates`."""
        self.playing = False
        self.take(self.candidates[index].id, self.selected)

    def _logits(self) -> Tensor:
        begun = perf_counter()
        logits = self.generation.logits[0]
        self._spent += perf_counter() - begun
        return logits

    def _grow(self, token: int | None) -> None:
        if self.full:
            return
        sampling = self.generation.sampling
        logits = self._logits()
        begun = perf_counter()
        step = next(self.generation) if token is None else self.generation.take(torch.tensor([token]))
        self._durations.append(self._spent + perf_counter() - begun)
        self._spent = 0.0
        prediction = predict(logits, sampling)
        taken = self._candidate(prediction, int(step.tokens[0]))
        candidates = self._likeliest(prediction)
        note = "chosen by hand" if token is not None else f"drawn with {percent(taken.drawn_with)} ({described(sampling)})"
        alternatives = tuple((candidate.label, candidate.probability) for candidate in candidates)
        chip = Token(taken.label, taken.probability, alternatives, note, mark=token is not None)
        self.written.append(Written(taken, candidates, sampling if token is None else None, chip))
        self.selected, self._next = None, None
        self.playing = self.playing and not self.full

    def _likeliest(self, prediction: Prediction) -> tuple[Candidate, ...]:
        few = min(ALTERNATIVES, len(prediction.before))
        top = np.argpartition(-prediction.before, few - 1)[:few]
        return tuple(self._candidate(prediction, int(i)) for i in sorted(top, key=lambda i: (-prediction.before[i], i)))

    def _candidate(self, prediction: Prediction, token: int) -> Candidate:
        label = self.lm.tokenizer.label(token)
        return Candidate(
            token, label, float(prediction.before[token]), float(prediction.after[token]), str(prediction.cut[token])
        )

    def numbers(self) -> Labelled:
        """The probability of each token, under the model and in the draw: [token, stage]."""
        values = np.array([(one.taken.probability, one.taken.drawn_with) for one in self.written]).reshape(-1, 2)
        tokens = Axis("token", tuple(one.taken.label for one in self.written))
        return Labelled(values, (tokens, Axis("stage", ("model", "draw"))), "probability")

    def code(self, prompt: str) -> str:
        """The lines of Python that write the same text."""
        begin = f"import gptviz\n\nlm = {call(self.lm)}\nprompt = {prompt!r}\n"
        settings = {one.drawn for one in self.written}
        if len(settings) == 1 and None not in settings:
            (one,) = settings
            given = f"temperature={one.temperature:g}, top_k={one.top_k}, top_p={one.top_p}, seed={one.seed}" if one else ""
            return f"{begin}print(lm.generate(prompt, {len(self.written)}, {given}))"
        return (
            "import torch\n"
            f"{begin}grown = lm.generation(prompt)\n"
            "# Not all drawn with the same settings: the tokens as they were taken.\n"
            f"for token in {self.ids}:\n"
            "    step = grown.take(torch.tensor([token]))\n"
            "    print(lm.tokenizer.piece(token), step.logits[0].softmax(-1)[token].item())"
        )


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
        now.generation.sampling = sampling
        if now.cut_short and not snapshots.is_playing():
            now.cut_short = False
            now.grow(FIRST_TOKENS - len(now.written), FIRST_SECONDS)
        return now
    if now is not None and (now.about[0].name, now.about[1]) != (subject.key.name, topic(subject)[1]):
        st.toast("Another model or prompt: the text starts anew.", icon=":material/restart_alt:")
    now = Writing(subject, sampling)
    now.cut_short = snapshots.is_playing()
    now.grow(FIRST_TOKENS, FRAME_SECONDS if now.cut_short else FIRST_SECONDS)
    st.session_state["writing"] = now
    return now


def transport(now: Writing) -> str:
    """The buttons that play, step and undo; the speed chosen."""
    from . import controls

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
        back = now.selected is not None
        st.button(
            "Undo to here" if back else "Undo",
            icon=":material/undo:",
            on_click=now.undo_to_selected,
            key="undo",
            disabled=not now.written,
            help="Forget the outlined token and all after it."
            if back
            else "Forget the last token. A step then draws the same one again.",
        )
        st.button(
            "Restart",
            icon=":material/restart_alt:",
            on_click=now.restart,
            key="restart",
            disabled=not now.written,
            help="Back to the prompt.",
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
    """The text and what may come next; while it plays, a fragment that runs by the clock."""
    timed = now.playing

    def body() -> None:
        if timed and now.playing:
            now.tick(SPEEDS[speed])
        if now.playing != timed:
            st.rerun()
        _text(now)

    st.fragment(body, run_every=TICK if timed else None)()


def _text(now: Writing) -> None:
    with now.lock:
        written, selected, candidates = list(now.written), now.selected, now.candidates
    taken = None if selected is None else written[selected].taken
    heading = "What may come next" if selected is None else f"Token {selected + 1}: instead of {written[selected].taken.label}"
    text, aside = st.columns([5, 3], gap="medium")
    with text:
        token_strip(
            [*now.prompt, *(one.chip for one in written)],
            key="text",
            label="The text: the prompt, then what the model wrote",
            legend="probability under the model; grey: the prompt",
            selected=None if selected is None else selected + len(now.prompt),
            on_pick=lambda chip: _then_rerun(now.pick, chip),
            on_alternative=lambda chip, alternative: _then_rerun(now.pick_alternative, chip, alternative),
            height=HEIGHT,
            spaced=now.lm.tokenizer.kind == "symbols",
        )
    with aside:
        st.text(heading)
        # While it plays the list changes under the pointer, so it takes no clicks.
        may_pick = not now.playing and (taken is not None or not now.full)
        token_strip(
            [candidate.row for candidate in candidates],
            key="candidates",
            label="The likeliest tokens, most likely first",
            selected=candidates.index(taken) if taken in candidates else None,
            on_pick=(lambda row: _then_rerun(now.pick_candidate, row)) if may_pick else None,
            bars=True,
        )
        rate = now.tokens_per_second
        st.caption(f"{len(written):,} tokens" + (f", {rate:,.0f} a second of model time" if rate else ""))


def _then_rerun(act: Callable[..., None], *at: int) -> None:
    """Do what a click asks for, then run the whole page, since what stands below the text depends on it too."""
    act(*at)
    st.rerun()
