"""Long computations on a page: how far they are, and a way to stop them. See `gptviz.machine.job`.

A page either follows a computation, which goes on while the page is used, reloaded or left; or it
waits for one, since it can show nothing without its value. What it waits for is a cached function:
a click that has nothing to do with it, or a reload, runs the page again, which then finds the same
computation and goes on waiting. One that no page waits for any more ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import nullcontext
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

import streamlit as st

from gptviz.machine import job as registry
from gptviz.machine.job import Job, Stage
from gptviz.streamlit_internals import is_fragment, outside_cache, session

from .buttons import press_button
from .controls import notice_place
from .markdown import escape_markdown

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

# Seconds between two updates of a page that follows a computation.
FOLLOWED = 0.5
# A page that waits shows the bar after `AT_FIRST` seconds, and updates it every `LOOK` seconds.
AT_FIRST = 0.5
LOOK = 0.3
# Seconds without a page that waits after which a computation ends; a reload takes less.
LEFT = 5.0
# The key of the session's state that holds the key of the computation which the user stopped.
_STOPPED = "stopped computation"


def words(job: Job[Any]) -> str:
    """How far a computation is, as Markdown."""
    if job.is_stopping:
        far = "stopping"
    elif job.state == "waiting":
        far = "waits for another computation to end"
    else:
        far = job.progress.words
    return escape_markdown(f"{job.title}: {far}")


def follow(job: Job[Any], key: str, shown: Stage | None = None) -> None:
    """How far a computation is, and a way to stop it, as long as it goes on; then how it ended,
    unless all is done.

    The page runs again when a result is ready and when the computation ends.

    Args:
        job: the computation.
        key: tells the computations of one page apart.
        shown: its stage before the page read from it, if the page has done so: it may have ended
            since then.
    """
    if shown is None:
        shown = job.stage
    _keep_up(job, shown)
    if not shown.is_active:
        if job.state == "stopped":
            st.caption(f"{escape_markdown(job.title)}: stopped; what was ready is shown.")
        elif job.state == "failed":
            st.error(f"{escape_markdown(job.title)}: {escape_markdown(job.problem)}")
        return

    @st.fragment(run_every=FOLLOWED)
    def look() -> None:
        job.look()
        _keep_up(job, shown)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(job.progress.share, words(job))
            if press_button(
                "Stop",
                key=f"stop {key}",
                icon=":material/stop:",
                help="What is ready by then stays.",
            ):
                job.stop()

    look()


def _keep_up(job: Job[Any], shown: Stage) -> None:
    """Run the page again if it shows an earlier stage."""
    if job.stage != shown:
        st.rerun()


def begin_button(label: str, begin: Callable[[], Job[Any]], **look: Any) -> None:
    """A button that begins a computation; `look` are other arguments of `st.button`."""

    def click_button() -> None:
        begin()

    st.button(label, on_click=click_button, **look)


def on_demand(
    key: Hashable,
    title: str,
    compute: Callable[[], R],
    *,
    begins: bool,
    waits: float | None = None,
    spins: bool = False,
) -> tuple[Job[R] | None, Callable[..., None]]:
    """A computation that a page begins by itself where that takes a moment, and else when somebody
    asks for it.

    Args:
        key: as in `gptviz.machine.job.begin`.
        title: as there.
        compute: as there.
        begins: whether it is begun now, unless it was begun before, and waited for.
        waits: the seconds that the page waits for it at most; None for any number.
        spins: whether the page says meanwhile what it waits for.

    Returns:
        The computation, or None if it was not begun yet. And a function that shows how far it is,
        to be called once the page has read its results, with the label of the button that begins
        it, that of the button that begins it again, a key that tells the computations of one page
        apart, and the help of the button.
    """

    def begin() -> Job[R]:
        return registry.begin(key, title, compute)

    known: Job[R] | None = registry.find_job(key)
    if known is None and begins:
        known = begin()
        with st.spinner(title) if spins else nullcontext():
            known.wait(waits)
    stage = None if known is None else known.stage

    def show(label: str, again: str, key: str, help: str | None = None) -> None:
        if known is None or known.state in ("stopped", "failed"):
            look = {"icon": ":material/calculate:", "key": f"compute {key}", "help": help}
            begin_button(label if known is None else again, begin, **look)
        if known is not None:
            follow(known, key, stage)

    return known, show


class Cached(Protocol[P, R_co]):
    """A function that keeps its values."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def clear(self) -> None:
        """Forget all values."""


def resource(title: str, *, max_entries: int) -> Callable[[Callable[P, R]], Cached[P, R]]:
    """As `st.cache_resource`, for a function that may take long.

    Args:
        title: what is computed, in words.
        max_entries: as there.
    """
    return _cache_results(st.cache_resource(max_entries=max_entries, show_spinner=title), title)


def data(title: str, *, max_entries: int) -> Callable[[Callable[P, R]], Cached[P, R]]:
    """As `st.cache_data`, for a function that may take long; arguments as of `resource`."""
    return _cache_results(st.cache_data(max_entries=max_entries, show_spinner=title), title)


def _cache_results(
    cache: Callable[[Callable[P, R]], Any], title: str
) -> Callable[[Callable[P, R]], Cached[P, R]]:
    def decorate_function(compute: Callable[P, R]) -> Cached[P, R]:
        # The cache calls this if it has no value, holding a lock: others who ask for the same value
        # wait for it.
        @wraps(compute)
        def call_and_wait(*args: P.args, **kwargs: P.kwargs) -> R:
            key = compute.__module__, compute.__qualname__, args, tuple(kwargs.items())
            return wait_for(key, title, lambda: compute(*args, **kwargs))

        cached: Cached[P, R] = cache(call_and_wait)
        return cached

    return decorate_function


def wait_for(key: Hashable, title: str, compute: Callable[[], R]) -> R:
    """The value of a computation that a page waits for: see the words at the top of this file.

    Args:
        key: tells computations apart.
        title: what is computed, in words.
        compute: computes the value.
    """
    # no page waits here, or it waits already for the computation that calls this
    if session() is None:
        return compute()
    return _wait(key, title, compute)


def _wait(key: Hashable, title: str, compute: Callable[[], R]) -> R:
    """The value, computed while the page says how far that is. If the run of the page ends, the
    computation goes on.
    """
    if st.session_state.get(_STOPPED) == key:
        with outside_cache():
            _say_stopped(title)
    job = registry.begin(key, title, compute, slots=None, patience=LEFT)
    if not job.wait(AT_FIRST):
        with outside_cache():
            _show(job, key)
    registry.forget(key)
    if job.state == "stopped":  # it was already ending when this page found it
        return _wait(key, title, compute)
    return job.result()


def _show(job: Job[Any], key: Hashable) -> None:
    """How far a computation is, until it has ended, and a way to stop it. Whatever is clicked ends
    the run of the page here.
    """

    def stop() -> None:
        st.session_state[_STOPPED] = key
        job.stop()

    # Where messages stand: between two views it would move the lower one, which is then built anew
    # and loses the focus of keys.
    place = (st if is_fragment() else notice_place()).empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(job.progress.share, words(job))
        st.button("Stop", key=f"stop {id(job)}", icon=":material/stop:", on_click=stop)
    while not job.wait(LOOK):
        bar.progress(job.progress.share, words(job))
    place.empty()


def _say_stopped(title: str) -> None:
    """Say that the user stopped the computation, with a way to begin it again. The page ends
    here.
    """
    st.info(f"{escape_markdown(title)}: stopped.", icon=":material/stop:")
    st.button(
        "Begin again",
        key="begin again",
        icon=":material/refresh:",
        on_click=st.session_state.pop,
        args=(_STOPPED, None),
    )
    st.stop()
