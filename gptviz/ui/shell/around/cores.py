"""How the visitors of a server share the processor's cores: each pass of a model uses as many as
nobody else needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Lock
from time import monotonic

from gptviz.machine.cores import FreeCores
from gptviz.streamlit_internals import session

# Seconds after its last request for which a session counts as present.
RECENT = 20.0


class Visitors:
    """The sessions that asked this server for something recently.

    Args:
        clock: the time, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._seen = dict[str, float]()
        self._lock = Lock()

    def count(self, session: str) -> int:
        """How many sessions there are now: this one, and those that asked for something within
        `RECENT` seconds.
        """
        with self._lock:
            now = self._seen[session] = self._clock()
            self._seen = {name: seen for name, seen in self._seen.items() if now - seen <= RECENT}
            return len(self._seen)


_visitors = Visitors()
_cores = FreeCores()


@cache
def _thread_count() -> int:
    """The number of threads that torch uses for a single visitor: as many as the machine, or
    OMP_NUM_THREADS, allows.
    """
    import torch

    return torch.get_num_threads()


def share() -> None:
    """Let torch compute with an equal share, for each session that is here now, of the cores that
    no other process uses.

    Threads of one visitor that wait for those of another take more of the processor than they save:
    with thirty visitors on two cores, an answer took three times as long with two threads each as
    with one.
    """
    import torch

    visitor = session()  # None in a thread that serves no visitor
    if visitor is not None:
        torch.set_num_threads(max(1, _cores.threads(_thread_count()) // _visitors.count(visitor)))
