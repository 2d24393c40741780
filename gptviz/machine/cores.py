"""How many threads compute at a time: one for each core that other processes do not use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import floor, inf, isinf
from threading import Lock
from time import monotonic

import psutil

# The shortest time, in seconds, over which it is seen how busy the cores are.
SPAN = 0.5
# How much of a core others may use that counts as free. A thread that waits for one without a core
# takes more of the processor than it saves: with one other busy process on two cores, a text was
# written in five times the time that one thread takes, and a step of training took thirty times as
# long.
SHARED = 0.3


def idle_seconds() -> float:
    """The time, in seconds summed over cores, that other processes did not use; infinite where the
    system does not say it.

    It counts the cores that this process may use: the seconds in which they were idle, and those in
    which they worked for it.
    """
    process = psutil.Process()
    try:
        times = psutil.cpu_times(percpu=True)
        if hasattr(process, "cpu_affinity"):
            allowed = process.cpu_affinity()
        else:
            allowed = range(len(times))
    except (OSError, psutil.Error):
        return inf
    if max(allowed) < len(times):  # else this is a container that numbers its own cores from 0
        times = [times[core] for core in allowed]
    idle = sum(core.idle + getattr(core, "iowait", 0.0) for core in times)
    if idle:
        return float(idle + sum(process.cpu_times()[:2]))
    return inf


class FreeCores:
    """The cores that other processes leave to this one: a browser that draws and a training take
    theirs.
    """

    def __init__(
        self, clock: Callable[[], float] = monotonic, idle: Callable[[], float] = idle_seconds
    ) -> None:
        self._clock = clock
        self._idle = idle
        self._lock = Lock()
        self._seen = (clock(), idle())
        self._free = inf

    def count(self) -> float:
        """How many there were on average since the last look, which was at least `SPAN` seconds
        ago; infinite at first.
        """
        with self._lock:
            now, (at, before) = self._clock(), self._seen
            if now - at >= SPAN:
                self._seen = now, self._idle()
                if isinf(self._seen[1]):
                    self._free = inf
                else:
                    self._free = (self._seen[1] - before) / (now - at)
            return self._free

    def threads(self, most: int) -> int:
        """How many threads find a core each: from 1 to `most`."""
        return max(1, floor(min(most, self.count() + SHARED)))


@contextmanager
def sharing(most: int | None = None) -> Iterator[Callable[[], None]]:
    """For a long computation in this thread: a function that, called between its steps, has the
    next ones computed by as many threads as find a core each, and at most by `most`. At the end
    there are as many as before.
    """
    import torch  # what shows how busy the cores are is imported before it

    cores = FreeCores()
    threads = torch.get_num_threads()
    try:
        yield lambda: torch.set_num_threads(cores.threads(min(threads, most or threads)))
    finally:
        torch.set_num_threads(threads)
