"""Processes that tests start, none of which outlives the tests, and a thread that stands in for
one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any

from gptviz.language_model.fits import model_of, run_fit
from gptviz.model.devices import device
from gptviz.runs import checkpoints, training
from gptviz.runs.status import StopRequest

ROOT = Path(__file__).resolve().parents[1]
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows any signal ends a process at once
# Reads "+pid" and "-pid" until the tests end, and kills what is left. It is in a session of its
# own, so that Ctrl-C, or a signal to the whole group of the tests, does not end it.
_GUARD = """
import os, signal, sys
left = set()
for line in sys.stdin:
    (left.add if line[0] == "+" else left.discard)(int(line[1:]))
for pid in left:
    try:
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    except OSError:
        pass
"""


@lru_cache(maxsize=1)
def _guard() -> IO[str]:
    """The input of the process that kills what these tests leave behind, also when they are killed
    themselves.
    """
    guard = subprocess.Popen(
        [sys.executable, "-S", "-c", _GUARD],
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert guard.stdin is not None
    return guard.stdin


def _tell_guard(line: str) -> None:
    print(line, file=_guard(), flush=True)


class GuardedProcess(subprocess.Popen[Any]):
    """A process that is killed as soon as the process of the tests has ended, however it ended."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_guarded = True
        _tell_guard(f"+{self.pid}")

    def poll(self) -> int | None:
        return self._note(super().poll())

    def wait(self, timeout: float | None = None) -> int:
        code = super().wait(timeout)
        self._note(code)
        return code

    def _note(self, code: int | None) -> int | None:
        if code is not None and self._is_guarded:
            self._is_guarded = False
            _tell_guard(f"-{self.pid}")  # another process may get the number
        return code


@contextmanager
def running(arguments: list[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A Python process in the project's folder with its output as text; it is killed at the end of
    the block.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = GuardedProcess([sys.executable, *arguments], cwd=ROOT, **pipes | options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def guarded(pid: int) -> Iterator[None]:
    """Kills the process of this id, which another process started, at the end of the block or of
    the tests.
    """
    _tell_guard(f"+{pid}")
    try:
        yield
    finally:
        with suppress(OSError):
            os.kill(pid, KILL)
        _tell_guard(f"-{pid}")


class _Killed(BaseException):
    """Ends a training at once, as a signal does that no process can catch."""


class TrainingThread:
    """Stands in for the process that trains a run of the queue: a thread, in which torch is loaded
    already.

    It has what the queue uses of `Popen`. A training that fails leaves one line on `stderr`, as the
    command line does.

    Args:
        begin: what it waits for before it begins; None: nothing.
    """

    def __init__(
        self,
        command: list[str],
        *,
        env: dict[str, str],
        stderr: IO[bytes],
        begin: Event | None = None,
        **options: object,
    ) -> None:
        self.pid = os.getpid()
        self.returncode: int | None = None
        self._folder = (
            Path(env["GPTVIZ_HOME"]) / "checkpoints" / command[command.index("--resume") + 1]
        )
        self._device = command[command.index("--device") + 1] if "--device" in command else "cpu"
        self._stderr = os.fdopen(os.dup(stderr.fileno()), "wb")  # the queue closes its own
        self._begin = begin
        self._killed = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise subprocess.TimeoutExpired("training", timeout or 0)
        return self.returncode

    def kill(self) -> None:
        self._killed.set()
        if self._begin is not None:
            self._begin.set()

    def _run(self) -> None:
        if self._begin is not None:
            self._begin.wait()
        with self._stderr:
            code = self._train()
        self.returncode = code

    def _train(self) -> int:
        try:
            self._die_if_killed()
            for _ in self._events():
                pass
        except _Killed:
            return -getattr(signal, "SIGKILL", -1)  # as of a process that was killed
        except (ValueError, OSError, RuntimeError) as error:
            self._stderr.write(f"gptviz: {' '.join(str(error).split())}\n".encode())
            return 2
        return 0

    def _events(self) -> Iterator[object]:
        if (self._folder / checkpoints.PLAN).exists():
            lm = model_of(self._folder, self._device)
            return run_fit(self._folder, lm, stop_requested=self._die_if_killed)
        return training.train(
            self._folder, device=device(self._device), stop_requested=self._die_if_killed
        )

    def _die_if_killed(self) -> StopRequest | None:
        if self._killed.is_set():
            raise _Killed
        return None
