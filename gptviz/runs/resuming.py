"""What everything shares that takes steps in a folder of its own and can go on from there: a model
that is trained, and a dictionary that is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from gptviz.machine.bounded import require_regular
from gptviz.machine.errors import reason_of

from .checkpoints import CheckpointError
from .status import RunError, StopRequest, write_status

SAVE_EVERY = 60.0  # seconds


class Resumable(Protocol):
    """What takes the steps."""

    def restore(self, state: dict[str, Tensor], /) -> None:
        """Go on from this state; a ValueError if it is that of another run."""


class RequestedError(Exception):
    """The user requested the end during a computation that can be interrupted."""

    def __init__(self, how: StopRequest) -> None:
        super().__init__(how)
        self.how: StopRequest = how


@contextmanager
def failures_noted(folder: Path, *, writes: bool = True) -> Iterator[None]:
    """Write an error of this block into the status of the run in `folder`, if `writes`."""
    try:
        yield
    except (ValueError, OSError, RuntimeError, MemoryError) as error:
        with suppress(CheckpointError):
            if writes:
                write_status(folder, "failed", reason_of(error))
        raise


def restore_state(folder: Path, trainer: Resumable) -> dict[str, Tensor]:
    """Restore `trainer` from the state saved in `folder`, and return that state; it is empty if
    nothing was saved.
    """
    path = folder / "state.safetensors"
    try:
        require_regular(path)
        state = load_file(path)
        trainer.restore(state)
    except FileNotFoundError:
        return {}
    except (OSError, SafetensorError, ValueError) as error:
        raise RunError(
            f"{folder.name}/{path.name} is damaged ({reason_of(error)}): begin the run again"
        ) from None
    return state
