"""How far a long computation is: it says so between its steps, and whoever waits for it may listen.

A listener hears what its own thread computes, and nothing else. It may raise an exception: the computation then ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Is told the share that is done, from 0 to 1, and in words where the computation is.
Listener = Callable[[float, str], object]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let `listener` hear what is reported within."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def is_heard() -> bool:
    """Whether anybody listens: a loop of quick steps asks once instead of reporting each of them to nobody."""
    return _listener.get() is not None


def report(done: int, of: int, step: str) -> None:
    """Say that the first `done` of the `of` steps are done, and what one of them is called, such as "block"."""
    listener = _listener.get()
    if listener is not None:
        listener(done / of, f"{step} {done:,} of {of:,}")


@contextmanager
def part(index: int, of: int) -> Iterator[None]:
    """What is computed within is one of `of` parts that take about equally long, those before `index` being done."""
    outer = _listener.get()
    if outer is None:
        yield
        return
    with listening(lambda share, doing: outer((index + share) / of, doing)):
        yield
