"""The state of a run: status.json, the lock that its process holds, and the request to pause or
stop it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from filelock import FileLock, Timeout

from gptviz.machine.bounded import parse_json, read_regular

from . import checkpoints

LONGEST_FILE = 2**16  # bytes
RunState = Literal[
    "ready", "waiting", "running", "paused", "stopped", "finished", "failed", "interrupted"
]
StopRequest = Literal["pause", "stop"]


class RunError(ValueError):
    """A run that cannot be made or trained further; the message names the run and what to do."""


@dataclass(frozen=True)
class Status:
    """The state of a run."""

    state: RunState  #: the state
    message: str = ""  #: the error, or the present work of the process; may be empty


def read_status(folder: Path) -> Status:
    """The state of the run in `folder`; "interrupted" if its process ended without writing another
    state.

    A folder without a readable status holds a model that was not trained here; its state is
    "finished".
    """
    try:
        content = parse_json(read_regular(folder / "status.json", LONGEST_FILE), LONGEST_FILE)
        status = Status(content["state"], str(content.get("message", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Status("finished")
    if status.state not in get_args(RunState):
        return Status("finished")
    if status.state == "running" and not _is_locked(folder):
        return Status(
            "interrupted", "its process ended; it can be resumed from the last state saved"
        )
    return status


def write_status(folder: Path, state: RunState, message: str = "") -> None:
    """Write the state of the run in `folder`."""
    checkpoints.write_json(folder / "status.json", {"state": state, "message": message})


def mark_waiting(folder: Path) -> None:
    """Write that the run in `folder` waits for its turn, and delete any earlier stop request."""
    clear_stop_request(folder)
    write_status(folder, "waiting")


def request_stop(folder: Path, how: StopRequest) -> None:
    """Ask the process that trains the run in `folder` to pause (save its state and end) or to stop
    (also evaluate).
    """
    (folder / "stop_request").write_text(how, encoding="utf-8")


def stop_request(folder: Path) -> StopRequest | None:
    """The stop request of the run in `folder`, or None if there is none. Any content other than
    "pause" means "stop".
    """
    path = folder / "stop_request"
    if not path.exists():
        return None
    with suppress(OSError):
        content = read_regular(path, LONGEST_FILE, cut=True).decode("utf-8", "replace").strip()
        if not content:
            return None
        if content == "pause":
            return "pause"
        return "stop"
    return None


def clear_stop_request(folder: Path) -> None:
    """Delete the stop request of the run in `folder`."""
    (folder / "stop_request").unlink(missing_ok=True)


def end_before_a_step(folder: Path) -> None:
    """Write that the run in `folder` neither trains nor waits; no step was taken since it was
    submitted.
    """
    clear_stop_request(folder)
    write_status(folder, "paused" if (folder / "state.safetensors").exists() else "ready")


@contextmanager
def locked(folder: Path, wait: float = 1.0) -> Iterator[None]:
    """Keep all other threads and processes from training, replacing or moving the model in
    `folder`, which need not exist yet. A RunError if another one has the lock for more than `wait`
    seconds: `read_status` holds that of a run in training for a moment.

    The lock belongs to the folder's name: its file lies outside of the folder, and stays where it
    is while the folder is renamed or replaced. The system releases it when the process ends, also
    if that is killed. An OSError if the folder that holds `folder` cannot be written to.
    """
    try:
        with FileLock(_lock_file(folder), timeout=wait):
            yield
    except Timeout:
        raise RunError(
            f"{folder.name} is being trained by another process: wait for it, stop it, or choose "
            "another name"
        ) from None


def _lock_file(folder: Path) -> Path:
    return folder.parent / ".locks" / f"{folder.name}.lock"


def _is_locked(folder: Path) -> bool:
    try:
        with FileLock(_lock_file(folder), timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False
