"""How much memory is free, and sizes in words."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

import torch

from .hosting import hosting

FLOAT32 = 4  # bytes
# Beyond this share of what is free nothing is begun: the rest of the machine needs some too.
MOST_OF_MEMORY = 0.9


def available(device: torch.device | str = "cpu") -> int | None:
    """Bytes of memory that are free on `device`; None if the system does not say."""
    device = torch.device(device)
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    limits = [free for free in (_meminfo(), _of_container(), _of_windows(), _of_setting()) if free is not None]
    return min(limits) if limits else _of_sysconf()


def _meminfo() -> int | None:
    """Linux: the memory available without swapping, in bytes."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return None


def _of_container() -> int | None:
    """The bytes a container with a memory limit may still take (cgroup 2); None without such a limit."""
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit, taken = (int((group / file).read_text()) for file in ("memory.max", "memory.current"))
        # Files that were read count as taken, and give way to whatever needs their room.
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return limit - taken + int(stat.get("inactive_file", 0))
    return None


class _Windows(ctypes.Structure):
    """What Windows says of its memory (MEMORYSTATUSEX), in bytes."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("percent_taken", ctypes.c_uint32),
        ("memory", ctypes.c_uint64),
        ("free_memory", ctypes.c_uint64),
        *((f"other_{number}", ctypes.c_uint64) for number in range(5)),
    )


def _of_windows() -> int | None:
    """Windows: the bytes of memory that are free without swapping."""
    if sys.platform != "win32":
        return None
    status = _Windows(length=ctypes.sizeof(_Windows))
    answered = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.free_memory) if answered else None


def _of_setting() -> int | None:
    """The bytes that this process may still take where the server has a limit; None without one, or where its size is unknown."""
    most = hosting().memory
    if most is None:
        return None
    held = _resident()
    return None if held is None else max(0, int(most * 1e6) - held)


def _resident() -> int | None:
    """Linux: the bytes of memory that this process takes now."""
    if sys.platform == "win32":
        return None
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


def _of_sysconf() -> int | None:
    """Other systems: the bytes in free pages; if these are not known, half of all memory."""
    if sys.platform == "win32":
        return None
    for name, share in (("SC_AVPHYS_PAGES", 1.0), ("SC_PHYS_PAGES", 0.5)):
        with contextlib.suppress(OSError, ValueError):
            return int(share * os.sysconf(name) * os.sysconf("SC_PAGE_SIZE"))
    return None


# Where less than this was added since memory was given back last, it is not looked for. Within a pass it is more: a block needs
# some of what it would give back at once again.
LEAST_GIVEN_BACK, LEAST_WITHIN_A_PASS = 64 * 2**20, 128 * 2**20
_held_before = 0


def give_back(least: int = LEAST_GIVEN_BACK) -> None:
    """Give back to the system what was freed and the allocator still holds, where that may be much: where the process has grown
    by `least` bytes since the last time.

    Every thread of a server has a heap of its own, and glibc gives back only what was freed at the end of a heap: after a model
    was opened, and after pages over long texts, several hundred MB stayed.
    """
    global _held_before
    held = _resident()
    if sys.platform != "linux" or held is None:
        return
    _held_before = min(_held_before, held)  # what was freed since then may have been given back by itself
    if held < _held_before + least:
        return
    with contextlib.suppress(OSError, AttributeError):  # another C library has no such function
        ctypes.CDLL(None).malloc_trim(0)
    _held_before = _resident() or 0


def size(count: float) -> str:
    """A number of bytes with a unit, as in "1.5 kB"."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}" if count < 999.5 * scale else f"{count / scale:,.0f} {unit}"
    return f"{count:.0f} bytes"
