"""How much memory is free, and sizes in words."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from .hosting import hosting
from .lines import lines_of

if TYPE_CHECKING:
    import torch

FLOAT32 = 4  # bytes
# The largest share of the free memory that a computation may need: other programs need some too.
MOST_OF_MEMORY = 0.9
# Bytes that Python, PyTorch, Streamlit and the libraries of all pages take, measured in a server
# that had shown every page: the limit of a server is for models and texts, and these are neither.
LIBRARIES = 750 * 10**6
_caches: list[Callable[[], None]] = []


def gives_way(empty: Callable[[], None]) -> None:
    """Note a cache that is emptied by `empty` where memory is short."""
    if empty not in _caches:
        _caches.append(empty)


def room(needed: int, device: torch.device | str = "cpu") -> int:
    """Bytes of memory that are free on `device`; if what is `needed` does not fit, after all caches
    have given way to it.

    They do not for what would not fit then either: caches hold less than the whole process does.
    """
    free = free_bytes(device)
    if needed <= MOST_OF_MEMORY * free or (
        str(device) == "cpu" and needed > MOST_OF_MEMORY * (free + _used_bytes())
    ):
        return free
    for empty in _caches:
        empty()
    gc.collect()
    release_memory(0)
    return free_bytes(device)


def way_out() -> str:
    """What helps where memory is short."""
    limit = hosting().memory
    if limit is None:
        return "close other programs"
    return f"this server has {limit:,.0f} MB for models and texts (GPTVIZ_MEMORY)"


def free_bytes(device: torch.device | str = "cpu") -> int:
    """Bytes of memory that are free on `device`, without swapping and within the server's limit;
    see `room` for what fits.
    """
    if str(device).startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    limits = [psutil.virtual_memory().available]
    if (of_container := _of_container()) is not None:
        limits.append(of_container)
    if (most := hosting().memory) is not None:
        limits.append(max(0, int(most * 1e6) - max(0, _used_bytes() - LIBRARIES)))
    return min(limits)


def _of_container() -> int | None:
    """The bytes a container with a memory limit may still take (cgroup 2); None without such a
    limit.
    """
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit, taken = (
            int((group / file).read_text()) for file in ("memory.max", "memory.current")
        )
        # Cached files count as taken, but the system frees them when memory is needed.
        stat = dict(line.split() for line in lines_of((group / "memory.stat").read_text()))
        return limit - taken + int(stat.get("inactive_file", 0))
    return None


def _used_bytes() -> int:
    """The bytes of memory that this process takes now."""
    return int(psutil.Process().memory_info().rss)


# Nothing is released if the process grew by less than this since the last time. Within a pass it is
# more, since the next block uses the memory again.
LEAST_RELEASED = 64 * 2**20
LEAST_WITHIN_A_PASS = 128 * 2**20
_held_before = 0


def release_memory(least: int = LEAST_RELEASED) -> None:
    """Release to the system the memory that was freed and that the allocator still holds, if the
    process has grown by `least` bytes since the last time.

    Every thread of a server has its own heap, and glibc releases only what was freed at the end of
    a heap: after a model was opened, and after pages over long texts, several hundred MB stayed.
    """
    global _held_before
    if sys.platform != "linux":
        return
    held = _used_bytes()
    # memory that was freed since then may already be released
    _held_before = min(_held_before, held)
    if held < _held_before + least:
        return
    with contextlib.suppress(OSError, AttributeError):  # another C library has no such function
        # psutil has `heap_trim`, but all other threads of Python would wait for it.
        ctypes.CDLL(None).malloc_trim(0)
    _held_before = _used_bytes()


# glibc's numbers for what it gives back to the system only where more is free, and for what it asks
# the system for by itself.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


def keep_memory() -> None:
    """Keep what is freed for the next who asks, up to 1 GB: for a process that needs the same
    memory again in every step.

    glibc gives large arrays back to the system as soon as they are freed. The system has to empty
    each page before it hands it out again, which took a training of 11 million parameters 6 % of
    its time.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library has no such function
            for threshold in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
                ctypes.CDLL(None).mallopt(threshold, 2**30)


def in_bytes(count: float) -> str:
    """A number of bytes with a unit, as in "1.5 kB"."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            if count < 999.5 * scale:
                return f"{count / scale:.3g} {unit}"
            return f"{count / scale:,.0f} {unit}"
    return f"{count:.0f} bytes"
