"""The state of a run: status.json, the lock that its process holds, and the request to pause or stop it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from filelock import FileLock, Timeout

from . import checkpoints

State = Literal["ready", "waiting", "running", "paused", "stopped", "finished", "failed", "interrupted"]
StopRequest = Literal["pause", "stop"]


class RunError(ValueError):
    """A run that cannot be made or trained further; the message names it and what to do."""


@dataclass(frozen=True)
class Status:
    """The state of a run. `message` says what went wrong, or what is being done."""

    state: State
    message: str = ""


def read_status(folder: Path) -> Status:
    """The state of the run in `folder`; "interrupted" where its process ended without writing another state.

    A folder without a readable status holds a model that was not trained here: it counts as "finished".
    """
    try:
        content = json.loads((folder / "status.json").read_text(encoding="utf-8"))
        written = Status(content["state"], str(content.get("message", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Status("finished")
    if written.state not in get_args(State):
        return Status("finished")
    if written.state == "running" and not _is_locked(folder):
        return Status("interrupted", "its process ended; it can be resumed from the last state saved")
    return written


def write_status(folder: Path, state: State, message: str = "") -> None:
    """Write down the state of the run in `folder`.

    Raises:
        CheckpointError: the disk will not take it.
    """
    checkpoints.write_json(folder / "status.json", {"state": state, "message": message})


def mark_waiting(folder: Path) -> None:
    """Write down that the run in `folder` waits for its turn. Whatever was asked of it before is forgotten.

    Raises:
        CheckpointError: the disk will not take it.
    """
    clear_stop_request(folder)
    write_status(folder, "waiting")


def request_stop(folder: Path, how: StopRequest) -> None:
    """Ask the process that trains the run in `folder` to pause (save its state and end) or to stop (evaluate too)."""
    (folder / "stop_request").write_text(how, encoding="utf-8")


def stop_request(folder: Path) -> StopRequest | None:
    """What somebody asked of the run in `folder`, None for nothing. Whatever is not "pause" means "stop"."""
    path = folder / "stop_request"
    if not path.exists():
        return None
    with suppress(OSError):
        content = path.read_text(encoding="utf-8").strip()
        return None if not content else "pause" if content == "pause" else "stop"
    return None


def clear_stop_request(folder: Path) -> None:
    """Forget what was asked of the run in `folder`."""
    (folder / "stop_request").unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from training the run in `folder`. The lock goes with the process, however that ends.

    Raises:
        RunError: another process trains it.
    """
    try:
        # Whoever reads the status holds the lock for a moment.
        with FileLock(folder / ".lock", timeout=1):
            yield
    except Timeout:
        raise RunError(f"{folder.name} is being trained by another process: wait for it, or stop it") from None


def _is_locked(folder: Path) -> bool:
    try:
        with FileLock(folder / ".lock", timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False
