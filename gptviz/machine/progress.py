"""How far a long computation is: it reports so between its steps, to a listener. One whose results
grow shows what it has so far.

A listener hears only the reports of its own thread. It may raise an exception: the computation then
ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Progress(NamedTuple):
    """How far a computation is."""

    share: float = 0.0  #: how much of it is done, from 0 to 1
    done: int = 0  #: how many of its steps are done; they may be steps of a part of it
    of: int = 0  #: how many steps there are; 0 as long as that is not known
    step: str = ""  #: the name of one step, such as "block"
    doing: str = ""  #: what is being done now, in words, if that says more than the name of a step

    @property
    def words(self) -> str:
        """The same in words, such as "block 3 of 12" or "3 of 144 (head 3 of block 0)"."""
        if self.of:
            far = f"{self.step} {self.done:,} of {self.of:,}".lstrip()
        else:
            far = "beginning"
        if self.doing:
            return f"{far} ({self.doing})"
        return far


Listener = Callable[[Progress], object]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_viewer: ContextVar[Callable[[Any], object] | None] = ContextVar("viewer", default=None)


@contextmanager
def listen_to(listener: Listener, viewer: Callable[[Any], object] | None = None) -> Iterator[None]:
    """Call `listener` with the reports in this block, and `viewer` with the results so far."""
    before = _listener.set(listener)
    viewer_before = _viewer.set(viewer)
    try:
        yield
    finally:
        _listener.reset(before)
        _viewer.reset(viewer_before)


@contextmanager
def overhear(listener: Listener) -> Iterator[None]:
    """Call `listener` with the reports in this block, before who listens already."""
    outer = _listener.get()

    def hear(now: Progress) -> None:
        listener(now)
        if outer is not None:
            outer(now)

    with listen_to(hear, _viewer.get()):
        yield


def show_so_far(result: object) -> None:
    """Show the result of the whole computation as far as it is known. What is computed within a
    `part` shows nothing: its results are those of a part.
    """
    viewer = _viewer.get()
    if viewer is not None:
        viewer(result)


def is_heard() -> bool:
    """Whether there is a listener: a loop of quick steps asks once instead of reporting each
    step.
    """
    return _listener.get() is not None


def report(done: int, of: int, step: str = "", *, doing: str = "") -> None:
    """Report that the first `done` of the `of` steps are done; see `Progress`."""
    listener = _listener.get()
    if listener is not None:
        listener(Progress(min(done / of, 1.0) if of else 0.0, done, of, step, doing))


@contextmanager
def part(before: int, of: int, size: int = 1, *, step: str = "", doing: str = "") -> Iterator[None]:
    """Count this block as `size` of the `of` steps of the whole, after `before` steps.

    Steps take about equally long. With `step` or `doing` the steps of the whole are reported; the
    steps within the block then only change the share.
    """
    outer = _listener.get()
    if outer is None:
        yield
        return

    def hear(inner: Progress) -> None:
        share = min((before + inner.share * size) / of, 1.0)
        if step or doing:
            outer(Progress(share, before + int(inner.share * size + 1e-6), of, step, doing))
        else:
            outer(inner._replace(share=share))

    if doing:
        hear(Progress(0.0))
    with listen_to(hear):
        yield
    if step or doing:
        hear(Progress(1.0))


def report_each(steps: Iterable[T], of: int, step: str) -> Iterator[T]:
    """The `steps` of an iterator, at most `of` of them, each of which is a `part` while it is
    computed.
    """
    iterator = iter(steps)
    end = object()
    for before in range(of):
        with part(before, of, step=step):
            step_done = next(iterator, end)
        if step_done is end:
            return
        yield step_done  # type: ignore[misc]  # it is not the end mark
