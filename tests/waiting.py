"""Waiting for a condition, however busy the machine is."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

# seconds: longer than anything takes on a busy machine, so that only what never comes fails
PATIENCE = 300.0


def wait_until(
    condition: Callable[[], object], patience: float = PATIENCE, *, every: float = 0.05
) -> None:
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


def on_a_free_port(
    start: Callable[[int], subprocess.Popen[bytes]], answers: Callable[[int], object]
) -> tuple[subprocess.Popen[bytes], int]:
    """A server that answers, and its port. One that somebody else takes before the server does is
    given up for another.

    Args:
        start: starts the server on a port.
        answers: whether the server, and nobody else, answers there; an OSError counts as not yet.
    """
    for _ in range(5):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        process = start(port)
        try:
            wait_until(lambda: process.poll() is not None or answers(port))  # noqa: B023 - it is called here alone
        except BaseException:
            process.kill()
            raise
        if process.poll() is None:
            return process, port
    raise AssertionError("five servers in a row ended before they answered: see their log")


def app_answers(log: Path, port: int) -> bool:
    """Whether the app whose output goes to `log` answers on `port`."""
    url = f"http://127.0.0.1:{port}"
    urllib.request.urlopen(f"{url}/_stcore/health", timeout=5).close()
    return url in log.read_text()  # without this, it may be somebody else's server
