"""How the visitors of a server, and what else runs on the machine, share the cores: a pass uses as many as nobody else needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf, isinf
from threading import Lock
from time import monotonic

import psutil

from gptviz.streamlit_internals import session

# Seconds after its last request for which a session counts as present.
RECENT = 20.0
# The shortest time, in seconds, over which it is seen how busy the cores are.
SPAN = 0.5


class Visitors:
    """The sessions that asked this server for something recently.

    Args:
        clock: the time, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._seen, self._lock = clock, dict[str, float](), Lock()

    def count(self, session: str) -> int:
        """How many sessions there are now: this one, and those that asked for something within `RECENT` seconds."""
        with self._lock:
            now = self._seen[session] = self._clock()
            self._seen = {name: seen for name, seen in self._seen.items() if now - seen <= RECENT}
            return len(self._seen)


def idle_seconds() -> float:
    """For how long the cores that this process may use have had nothing to do, together, or have worked for this process.

    Infinite where the system does not say it.
    """
    process = psutil.Process()
    try:
        times = psutil.cpu_times(percpu=True)
        allowed = process.cpu_affinity() if hasattr(process, "cpu_affinity") else range(len(times))
    except (OSError, psutil.Error):
        return inf
    if max(allowed) < len(times):  # else this is a container that numbers its own cores from 0
        times = [times[core] for core in allowed]
    idle = sum(one.idle + getattr(one, "iowait", 0.0) for one in times)
    return float(idle + sum(process.cpu_times()[:2])) if idle else inf


class FreeCores:
    """The cores that other processes leave to this one: a browser that draws and a training take theirs.

    Args:
        clock: the time, in seconds.
        idle: see `idle_seconds`.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, idle: Callable[[], float] = idle_seconds) -> None:
        self._clock, self._idle, self._lock = clock, idle, Lock()
        self._seen, self._free = (clock(), idle()), inf

    def count(self) -> float:
        """How many there were on average since the last look, which was at least `SPAN` seconds ago; infinite at first."""
        with self._lock:
            now, (at, before) = self._clock(), self._seen
            if now - at >= SPAN:
                self._seen = now, self._idle()
                self._free = inf if isinf(self._seen[1]) else (self._seen[1] - before) / (now - at)
            return self._free


_visitors, _free_cores = Visitors(), FreeCores()


@cache
def _all() -> int:
    """The number of threads that torch uses for a single visitor: as many as the machine, or OMP_NUM_THREADS, allows."""
    import torch

    return torch.get_num_threads()


def share() -> None:
    """Let torch compute with an equal share, for each session that is here now, of the cores that no other process uses.

    Threads that wait for one without a core take more of the processor than they save: with thirty visitors on two cores, an
    answer took three times as long with two threads each as with one, and with another busy process a text five times as long.
    """
    import torch

    visitor = session()  # None in a thread that serves no visitor
    if visitor is not None:
        torch.set_num_threads(max(1, round(min(_all(), _free_cores.count())) // _visitors.count(visitor)))
