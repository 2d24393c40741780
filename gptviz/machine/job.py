"""Long computations, each in its own thread: it goes on while the page that began it does something
else, and is found again.

A computation reports how far it is by `gptviz.machine.progress`; if it was asked to stop, it ends
at its next report. As long as its results are wanted, it is looked at from time to time. One that
was not looked at for a while is forgotten: it is stopped as soon as another one waits for its slot,
and at once if it needs no slot.
"""

from __future__ import annotations

import atexit
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Event, RLock, Thread
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

from . import progress
from .hosting import carry_rights, hosting
from .memory import release_memory
from .progress import Progress

R = TypeVar("R")
JobState = Literal["waiting", "going on", "done", "stopped", "failed"]

# The number of ended computations that are kept with their results.
MOST_KEPT = 16
# Seconds between two looks of a thread that waits for the end.
LOOK = 0.1
# Seconds that a process waits at its end for computations to stop.
AT_END = 10.0
# Seconds without a look after which a computation is forgotten.
FORGOTTEN = 20.0
# The errors whose message says what a user can do. Any other one is an error of gptviz, and is
# written to the terminal.
EXPECTED = (ValueError, OSError, RuntimeError, MemoryError)


class StoppedError(Exception):
    """The computation was asked to stop, or its result is no longer wanted."""


class Stage(NamedTuple):
    """The stage of a computation that a page shows: if it shows an earlier one, it is out of
    date.
    """

    is_active: bool  #: whether it waits or goes on
    ready: int  #: how often it had a result so far


class Slots:
    """The `number` of slots for computations that go on at the same time: one that takes long does
    not delay the others, and memory is bounded. Others wait, and go on in the order in which they
    were begun.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._line: list[Job[Any]] = []  # the first ones go on

    def enter(self, job: Job[Any]) -> None:
        """Let a computation go on when its turn comes."""
        with _lock:
            self._line.append(job)
            self.move_up()

    def leave(self, job: Job[Any]) -> None:
        """Give the slot of a computation to the next one."""
        with _lock:
            self._line.remove(job)
            self.move_up()

    def move_up(self) -> None:
        """Start the computations whose turn has come; if some wait, drop forgotten ones, and stop
        one that runs.
        """
        with _lock:
            for job in [job for job in self._line[self.number :] if job.is_forgotten]:
                job.stop()
            going = self._line[: self.number]
            if len(self._line) > self.number and not any(job.is_stopping for job in going):
                forgotten = next((job for job in going if job.is_forgotten), None)
                if forgotten is not None:
                    forgotten.stop()
            for job in going:
                job.start()


class Job(Generic[R]):
    """A computation that was begun; it ends by itself or by `stop`, and other threads may look at
    it at any time. It may keep what who begins it may keep.

    Args:
        title: what is computed, in words.
        compute: computes the value; what is ready earlier it gives to `progress.show_so_far`.
        slots: the slots of which it needs one; None for a computation that starts at once.
        patience: the seconds without a look after which it is forgotten; None for one that is never
            forgotten.
    """

    def __init__(
        self,
        title: str,
        compute: Callable[[], R],
        *,
        slots: Slots | None = None,
        patience: float | None = None,
    ) -> None:
        self.title = title
        self.state: JobState = "waiting"  #: whether it waits for a slot, goes on, or how it ended
        self.progress = Progress()  #: how far it is
        #: the value it returned, once it is done; before that, and when it is stopped, the value so
        #: far, where it has shown one
        self.value: R | None = None
        self.error: BaseException | None = None  #: why it failed
        self._compute: Callable[[], R] | None = compute
        self._n_shown = 0
        self._reads_only = hosting().read_only
        self._slots = slots
        self._patience = patience
        self._stop = Event()
        self._ended = Event()
        self._begun = self._looked_at = _clock_time()
        if slots is None:
            self.start()
        else:
            slots.enter(self)

    @property
    def is_active(self) -> bool:
        """Whether it waits or goes on."""
        return self.state in ("waiting", "going on")

    @property
    def stage(self) -> Stage:
        """Its stage now."""
        return Stage(self.is_active, self._n_shown)

    @property
    def is_stopping(self) -> bool:
        """Whether it was asked to stop, and has not done so yet."""
        return self.is_active and self._stop.is_set()

    @property
    def is_forgotten(self) -> bool:
        """Whether it was not looked at for a while."""
        return self._patience is not None and _clock_time() - self._looked_at >= self._patience

    @property
    def is_of_use(self) -> bool:
        """Whether it has a value that may still be wanted, or will have one."""
        return (
            not self._is_left and not self.is_stopping and (self.is_active or self.state == "done")
        )

    @property
    def problem(self) -> str:
        """Why it failed, in words; empty for one that has not failed."""
        if self.error is None:
            return ""
        if isinstance(self.error, EXPECTED):
            return str(self.error) or "There is not enough memory for it."
        return "It ended by an error of gptviz: see what the server wrote to its terminal."

    @property
    def seconds(self) -> float:
        """The seconds since it was begun."""
        return _clock_time() - self._begun

    def look(self) -> None:
        """Note that its results are wanted now."""
        self._looked_at = _clock_time()
        if self._slots is not None and self.is_active:
            self._slots.move_up()

    def start(self) -> None:
        """Start it, unless it goes on already."""
        with _lock:
            if self.state == "waiting":
                self.state = "going on"
                work = carry_rights(self._run, self._reads_only)
                thread = Thread(target=work, name=self.title, daemon=True)
                _going[self] = thread
                thread.start()

    def stop(self) -> None:
        """Ask it to stop: it does so at its next report."""
        with _lock:
            self._stop.set()
            if self.state == "waiting":
                self._end("stopped")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, at most `seconds`. Returns whether it has ended."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            self.look()
            if until is None:
                left = LOOK
            else:
                left = min(LOOK, until - time.monotonic())
            if self._ended.wait(max(0.0, left)):
                return True
            if until is not None and time.monotonic() >= until:
                return False

    def result(self) -> R:
        """The value, once it is there; a `StoppedError` if it was stopped, or the error by which it
        failed.
        """
        self.wait()
        if self.error is not None:
            raise self.error
        if self.state == "stopped":
            raise StoppedError
        return cast(R, self.value)

    @property
    def _is_left(self) -> bool:
        """Whether it has to end because its result is no longer wanted."""
        return self._slots is None and self.is_forgotten

    def _hear(self, now: Progress) -> None:
        if self._stop.is_set() or self._is_left:
            raise StoppedError
        self.progress = now

    def _show(self, so_far: R) -> None:
        self.value = so_far
        self._n_shown += 1

    def _run(self) -> None:
        state: JobState = "failed"
        try:
            assert self._compute is not None
            with progress.listen_to(self._hear, self._show):
                progress.report(0, 0)  # it may have been stopped before it began
                self.value = self._compute()
            state = "done"
        except StoppedError:
            state = "stopped"
        except BaseException as error:
            self.error = error
            traceback.clear_frames(error.__traceback__)  # they would keep computed values in memory
            if not isinstance(error, EXPECTED):
                raise
        finally:
            self._compute = None
            release_memory()
            self._end(state)

    def _end(self, state: JobState) -> None:
        with _lock:
            self.state = state
            _going.pop(self, None)
            if self._slots is not None:
                self._slots.leave(self)
            self._ended.set()


def _clock_time() -> float:
    """Seconds on a clock that is never set back."""
    return time.monotonic()


_lock = RLock()
_going: dict[Job[Any], Thread] = {}


@atexit.register
def _stop_all() -> None:
    """Stop what goes on: a thread that is within PyTorch when Python ends would abort the
    process.
    """
    until = _clock_time() + AT_END
    with _lock:
        going = dict(_going)
    for job in going:
        job.stop()
    for thread in going.values():
        thread.join(max(0.0, until - _clock_time()))


_begun: OrderedDict[Hashable, Job[Any]] = OrderedDict()
# The slots of computations that are found again by a key.
SLOTS = Slots(2)


def begin(
    key: Hashable,
    title: str,
    compute: Callable[[], R],
    *,
    slots: Slots | None = SLOTS,
    patience: float = FORGOTTEN,
) -> Job[R]:
    """Begin a computation (see `Job`), or find the one of this `key` that goes on or is done;
    results depend on nothing else.
    """
    with _lock:
        job = _begun.get(key)
        if job is not None and job.is_of_use:
            job.look()
            return job
        _begun.pop(key, None)
        ended = [other for other, its_job in _begun.items() if not its_job.is_active]
        unused = [other for other, its_job in _begun.items() if its_job._is_left]
        for other in {*ended[: max(0, len(ended) - MOST_KEPT)], *unused}:
            del _begun[other]
        _begun[key] = Job(title, compute, slots=slots, patience=patience)
        return _begun[key]


def find_job(key: Hashable) -> Job[Any] | None:
    """The computation of this key that was begun last, or None if there is none, or its results
    were dropped.
    """
    with _lock:
        job = _begun.get(key)
    if job is not None:
        job.look()
    return job


def jobs_going_on() -> list[Job[Any]]:
    """The computations with a key that wait or go on."""
    with _lock:
        return [job for job in _begun.values() if job.is_active]


def forget(key: Hashable) -> None:
    """Drop a computation that has ended, with its results: the next one of this key begins
    again.
    """
    with _lock:
        if key in _begun and not _begun[key].is_active:
            del _begun[key]
