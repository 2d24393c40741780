"""Time on the page Generate: how many tokens are due while a text plays, and how fast the model
computes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

# A late tick makes up for at most this many seconds.
CATCH_UP = 0.5


class Pace:
    """How many tokens are due while a text plays."""

    def __init__(self) -> None:
        self._due = self._counted_at = 0.0

    def start(self) -> None:
        """Begin to count: one token is due at once."""
        self._due = 1.0
        self._counted_at = perf_counter()

    def tokens_due(self, rate: float) -> int:
        """How many whole tokens are due since the last call, at `rate` tokens a second; the
        fraction counts next time.
        """
        now = perf_counter()
        self._due += rate * min(now - self._counted_at, CATCH_UP)
        self._counted_at = now
        whole = int(self._due)
        self._due -= whole
        return whole


class Speedometer:
    """How many tokens a second the model computes, without the time that the page takes.

    A token takes two computations: the pass that gives the logits, which may come long before the
    token is drawn, and the draw.
    """

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=100)  # of each of the last tokens
        self._seconds_of_logits = 0.0
        self._is_single = True

    @property
    def tokens_per_second(self) -> float | None:
        """The mean over the last 100 tokens; None before the first."""
        if self._seconds:
            return len(self._seconds) / sum(self._seconds)
        return None

    def interrupt(self) -> None:
        """The text goes on from another place: the next pass may compute many tokens and is not
        counted.
        """
        self._is_single = False

    @contextmanager
    def logits(self, is_new: bool) -> Iterator[None]:
        """Measures the pass for the next token, where `is_new`; else the logits were there
        already.
        """
        started = perf_counter()
        yield
        if is_new and self._is_single:
            self._seconds_of_logits = perf_counter() - started

    @contextmanager
    def draw(self) -> Iterator[None]:
        """Measures the draw of a token from these logits."""
        started = perf_counter()
        yield
        if self._seconds_of_logits:
            self._seconds.append(self._seconds_of_logits + perf_counter() - started)
        self._seconds_of_logits = 0.0
        self._is_single = True
