"""Waiting for a condition, however busy the machine is."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

PATIENCE = 300.0  # seconds: longer than anything takes on a busy machine, so that only what never comes fails


def wait_until(condition: Callable[[], object], patience: float = PATIENCE, *, every: float = 0.05) -> None:
    """Return as soon as `condition()` is true; an OSError counts as not yet.

    Raises:
        AssertionError: it has not become true within `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            if condition():
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, f"not so within {patience:.0f} seconds"
        time.sleep(every)


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
