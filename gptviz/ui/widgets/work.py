"""Long computations: each in a thread of the server, where it goes on while a page is reloaded or left.

A computation is found again by its key, which says all that it depends on: a page with the same address finds the same one. One
that no page looks at any more is stopped as soon as another one waits for its place; if it waits itself, it is given up.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Condition, Event, RLock, Thread
from typing import Any, Literal, NamedTuple

import streamlit as st

from gptviz.memory import give_back

from .buttons import pressed
from .markdown import escaped

State = Literal["waiting", "going on", "done", "stopped", "failed"]

# How many computations that have ended are kept with their results.
MOST_KEPT = 16
# Seconds between two looks at how far a computation is.
LOOK = 0.5
# So many go on side by side: one that takes long then holds up no other visitor, and memory is bounded.
AT_ONCE = 2
# A computation that no page has looked at for so many seconds gives its place to one that waits: its page was left.
FORGOTTEN = 20.0


class _StoppedError(Exception):
    """Somebody asked the computation to stop."""


class Stage(NamedTuple):
    """What a page shows of a computation: one that shows an earlier stage is out of date.

    Attributes:
        is_active: whether it waits or goes on.
        ready: how many results it has.
    """

    is_active: bool
    ready: int


class Work:
    """A computation that was begun; it ends by itself or by `stop`, and other threads may look at it at any time.

    Attributes:
        title: what is computed, in words.
        state: whether it waits for another one to end, goes on, or how it ended.
        done: how many of its steps are done.
        of: how many there are; 0 as long as that is not known.
        doing: what it does now, in words.
        results: what is ready, by name; results that are there stay when it is stopped.
        problem: why it failed.
    """

    def __init__(self, title: str, compute: Callable[[Work], object]) -> None:
        self.title, self._compute = title, compute
        self.state: State = "waiting"
        self.done, self.of, self.doing = 0, 0, ""
        self.results: dict[str, Any] = {}
        self.problem = ""
        self._stop = Event()
        self._looked_at = _now()
        self._thread = Thread(target=self._run, name=title, daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Whether it waits or goes on."""
        return self.state in ("waiting", "going on")

    @property
    def stage(self) -> Stage:
        """Where it is now."""
        return Stage(self.is_active, len(self.results))

    @property
    def is_stopping(self) -> bool:
        """Whether somebody has asked it to stop, and it has not done so yet."""
        return self.is_active and self._stop.is_set()

    @property
    def is_forgotten(self) -> bool:
        """Whether no page has looked at it for a while."""
        return _now() - self._looked_at >= FORGOTTEN

    def looked_at(self) -> None:
        """Note that a page looks at it now."""
        self._looked_at = _now()

    def stop(self) -> None:
        """Ask it to stop: it does so at its next report."""
        self._stop.set()

    def report(self, done: int, of: int, doing: str = "") -> None:
        """Say how far the computation is; this is where it ends if somebody asked it to stop."""
        if self._stop.is_set():
            raise _StoppedError
        self.done, self.of, self.doing = done, of, doing or self.doing

    def join(self, seconds: float | None = None) -> None:
        """Wait for its end, or so many seconds: what is soon ready is then shown at once."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self._take_place()
            try:
                self.state = "going on"
                self.report(0, 0)
                self._compute(self)
            finally:
                give_back()
                with _places:
                    _going.remove(self)
                    _places.notify_all()
            self.state = "done"
        except _StoppedError:
            self.state = "stopped"
        except (ValueError, OSError, RuntimeError, MemoryError) as error:
            self.problem = str(error) or "There is not enough memory for it."
            self.state = "failed"
        except BaseException:
            self.problem, self.state = "It ended by an error of gptviz: see what the server wrote to its terminal.", "failed"
            raise

    def _take_place(self) -> None:
        """Wait for a place among those that go on; one that is forgotten is stopped to make room, and does not wait itself."""
        with _places:
            while len(_going) >= AT_ONCE:
                if self.is_forgotten:
                    self.stop()
                self.report(0, 0)
                if not any(other.is_stopping for other in _going):
                    forgotten = next((other for other in _going if other.is_forgotten), None)
                    if forgotten is not None:
                        forgotten.stop()
                _places.wait(0.1)
            _going.append(self)


def _now() -> float:
    """Seconds on a clock that is never set back."""
    return time.monotonic()


# The computations that go on, and what is told when one of them ends.
_going: list[Work] = []
_places = Condition()
_lock = RLock()
_begun: OrderedDict[Hashable, Work] = OrderedDict()


def begin(key: Hashable, title: str, compute: Callable[[Work], object]) -> Work:
    """Begin a computation, or find the one of this key that goes on or is done.

    Args:
        key: all that the results depend on.
        title: what is computed, in words.
        compute: computes it; it reports how far it is, and puts what is ready into `results`.
    """
    with _lock:
        work = _begun.get(key)
        if work is not None and (work.is_active or work.state == "done"):
            work.looked_at()
            return work
        _begun.pop(key, None)
        ended = [other for other, one in _begun.items() if not one.is_active]
        for other in ended[: max(0, len(ended) - MOST_KEPT)]:
            del _begun[other]
        _begun[key] = Work(title, compute)
        return _begun[key]


def found(key: Hashable) -> Work | None:
    """The computation of this key that was begun last; None where there is none, or its results were given up."""
    with _lock:
        work = _begun.get(key)
    if work is not None:
        work.looked_at()
    return work


def forget(key: Hashable) -> None:
    """Give up a computation that has ended, with its results: the next one of this key begins anew."""
    with _lock:
        if key in _begun and not _begun[key].is_active:
            del _begun[key]


def follow(work: Work, key: str, shown: Stage | None = None) -> None:
    """How far a computation is, and a way to stop it, as long as it goes on; then how it ended, unless all is done.

    The page runs again when a result is ready and when the computation ends.

    Args:
        work: the computation.
        key: tells the computations of one page apart.
        shown: its stage before the page read from it, if the page has done so: it may have ended since then.
    """
    if shown is None:
        shown = work.stage
    _keep_up(work, shown)
    if not shown.is_active:
        _ended(work)
        return

    @st.fragment(run_every=LOOK)
    def look() -> None:
        work.looked_at()
        _keep_up(work, shown)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(work.done / work.of if work.of else 0.0, escaped(_said(work)))
            if pressed("Stop", key=f"stop {key}", icon=":material/stop:", help="What is ready by then stays."):
                work.stop()

    look()


def _keep_up(work: Work, shown: Stage) -> None:
    """Run the page again if it shows an earlier stage."""
    if work.stage != shown:
        st.rerun()


def _said(work: Work) -> str:
    if work.is_stopping:
        return f"{work.title}: stopping"
    if work.state == "waiting":
        return f"{work.title}: waits for another computation to end"
    far = f"{work.done:,} of {work.of:,}" if work.of else "beginning"
    return f"{work.title}: {far}" + (f" ({work.doing})" if work.doing else "")


def _ended(work: Work) -> None:
    if work.state == "stopped":
        st.caption(f"{escaped(work.title)}: stopped; what was ready is shown.")
    elif work.state == "failed":
        st.error(f"{escaped(work.title)}: {escaped(work.problem)}")
