"""Cached functions that may take long: a page that waits for one shows how far it is, and a way to stop it.

The function runs in a thread of its own while the page waits. A click that has nothing to do with it, or a reload, runs the page
again, which then finds the same computation and goes on waiting. One that no page waits for any more ends by itself. The
function says how far it is by `gptviz.progress`; that is also where it can be stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Lock, Thread
from typing import Any, Generic, ParamSpec, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import in_cached_function

from gptviz import progress
from gptviz.memory import give_back

from .markdown import escaped

P = ParamSpec("P")
R = TypeVar("R")

# Seconds after which the bar is shown, and between two looks at how far the computation is.
AT_FIRST, LOOK = 1.0, 0.3
# A computation ends when no page has waited for it for so many seconds; a reload takes less.
LEFT = 5.0
# The key of the session's state under which the computation stands that its user stopped.
_STOPPED = "stopped computation"


class _StoppedError(Exception):
    """The computation was stopped, or nobody waits for it any more."""


class _Computation(Generic[R]):
    """A computation in a thread of its own.

    Attributes:
        share: how much of it is done, from 0 to 1.
        doing: where it is, in words.
        value: what it gave, once it has ended.
        error: why it gave nothing.
    """

    def __init__(self, compute: Callable[[], R]) -> None:
        self.share, self.doing = 0.0, ""
        self.value: R | None = None
        self.error: BaseException | None = None
        self.is_stopping = False
        self._compute, self._waited_for = compute, _now()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_left(self) -> bool:
        """Whether no page waits for it any more."""
        return _now() - self._waited_for > LEFT

    @property
    def is_of_use(self) -> bool:
        """Whether it goes on, or has ended with a value that a page may still come back for."""
        return (
            not self.is_stopping and not isinstance(self.error, _StoppedError) and (self._thread.is_alive() or not self.is_left)
        )

    def wait(self, seconds: float) -> bool:
        """Wait so long for its end. Returns whether it has ended."""
        self._waited_for = _now()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Let it end at its next report."""
        self.is_stopping = True

    def _run(self) -> None:
        try:
            with progress.listening(self._hear):
                self.value = self._compute()
        except BaseException as error:  # raised again in the thread of the page
            self.error = error
            give_back()

    def _hear(self, share: float, doing: str) -> None:
        if self.is_stopping or self.is_left:
            raise _StoppedError
        self.share, self.doing = share, doing


def _now() -> float:
    """Seconds on a clock that is never set back."""
    return time.monotonic()


_lock = Lock()
_begun: dict[Hashable, _Computation[Any]] = {}


def resource(title: str, *, max_entries: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """As `st.cache_resource`, for a function that may take long.

    Args:
        title: what is computed, in words.
        max_entries: as there.
    """
    return _cached(st.cache_resource(max_entries=max_entries, show_spinner=title), title)


def data(title: str, *, max_entries: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """As `st.cache_data`, for a function that may take long; arguments as of `resource`."""
    return _cached(st.cache_data(max_entries=max_entries, show_spinner=title), title)


def _cached(cache: Callable[[Callable[P, R]], Any], title: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    def decorated(compute: Callable[P, R]) -> Callable[P, R]:
        # The cache calls it where it has no value, with a lock: others who ask for the same value wait for that.
        @wraps(compute)
        def waited(*args: P.args, **kwargs: P.kwargs) -> R:
            if get_script_run_ctx(suppress_warning=True) is None:  # no page waits; or it waits for what asks for this
                return compute(*args, **kwargs)
            key = compute.__module__, compute.__qualname__, args, tuple(kwargs.items())
            return _wait(key, title, lambda: compute(*args, **kwargs))

        cached: Callable[P, R] = cache(waited)
        return cached

    return decorated


def _wait(key: Hashable, title: str, compute: Callable[[], R]) -> R:
    """The value, computed while the page says how far that is. What ends the run of the page leaves the computation as it is."""
    if st.session_state.get(_STOPPED) == key:
        with _outside_cache():
            _say_stopped(title)
    one = _begin(key, compute)
    if not one.wait(AT_FIRST):
        with _outside_cache():
            _show(one, key)
    with _lock:
        if _begun.get(key) is one:
            del _begun[key]
    if isinstance(one.error, _StoppedError):  # it was about to end when this page found it
        return _wait(key, title, compute)
    if one.error is not None:
        raise one.error
    return one.value  # type: ignore[return-value]  # None only where that is what was computed


def _begin(key: Hashable, compute: Callable[[], R]) -> _Computation[R]:
    """The computation of this key that goes on, or a new one."""
    with _lock:
        for other in [other for other, one in _begun.items() if not one.is_of_use]:
            del _begun[other]
        if key not in _begun:
            _begun[key] = _Computation(compute)
        return _begun[key]


@contextmanager
def _outside_cache() -> Iterator[None]:
    """What is shown within is not shown again whenever the cache has the value; controls may stand there too."""
    before = in_cached_function.set(False)
    try:
        yield
    finally:
        in_cached_function.reset(before)


def _show(one: _Computation[Any], key: Hashable) -> None:
    """How far the computation is, until it has ended, and a way to stop it. Whatever is clicked ends the run of the page here."""

    def stop() -> None:
        st.session_state[_STOPPED] = key
        one.stop()

    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        bar: DeltaGenerator = st.progress(one.share, one.doing)
        st.button("Stop", key=f"stop {id(one)}", icon=":material/stop:", on_click=stop)
    while not one.wait(LOOK):
        bar.progress(one.share, one.doing)
    place.empty()


def _say_stopped(title: str) -> None:
    """That the user stopped the computation, and a way to begin it again. The page ends here."""
    st.info(f"{escaped(title)}: stopped.", icon=":material/stop:")
    st.button("Begin again", key="begin again", icon=":material/refresh:", on_click=st.session_state.pop, args=(_STOPPED, None))
    st.stop()
