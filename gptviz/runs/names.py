"""The names of runs: which ones are free, and how a process claims one that no other process then
gets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from gptviz.machine.errors import reason_of
from gptviz.machine.files import sweep

from . import checkpoints
from .checkpoints import LONGEST_NAME, CheckpointError
from .status import RunError, locked, read_status


@dataclass(frozen=True)
class Claim:
    """A name that this thread has claimed: `claim_name` holds its lock, so nobody else writes,
    trains or moves its model.
    """

    folder: Path  #: the folder of the model of this name, which need not exist yet

    @property
    def name(self) -> str:
        """The name."""
        return self.folder.name


def free_name(name: str, root: Path | None = None, ends: Sequence[str] = ("",)) -> str:
    """`name` if no model has it, else the first of `name-2`, `name-3`, … that no model has, in the
    folder `root`, by default the user's own, where names of shipped models are not free either.
    With several `ends`, it is free with each of them behind it.
    """
    return next(
        candidate
        for candidate in _candidates(name)
        if not any(checkpoints.is_in_use(f"{candidate}{end}", root) for end in ends)
    )


def possible_name(name: str) -> str:
    """A name that a model can have, made from the name of a folder or file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("._-")[:LONGEST_NAME].rstrip(".") or "model"


def _candidates(name: str) -> Iterator[str]:
    yield name
    for number in count(2):
        ending = f"-{number}"
        yield name[: LONGEST_NAME - len(ending)] + ending


@contextmanager
def claim_name(
    name: str, root: Path | None = None, *, replace: bool = False, or_next: bool = False
) -> Iterator[Claim]:
    """Claim the name of a new model while the block runs: of all threads and processes that want
    it, one gets it.

    Args:
        root: the folder of models the name is for; default: the user's own.
        replace: whether the name may be that of a model, which is going to be replaced (or hidden,
            if it is a shipped one).
        or_next: whether the next free name is taken (see `free_name`) if this one is in use.

    Raises:
        CheckpointError: the name is impossible, or in use (a `NameInUseError`), or the folder of
            models cannot be written to.
        RunError: another process has claimed the name, or the model to replace is being trained or
            waits to be.
    """
    checkpoints.check_writable(f"{name[:80]} is not saved")
    checkpoints.check_name(name)
    with ExitStack() as held:
        try:
            claim = _enter_first(
                held, _candidates(name) if or_next else iter([name]), root, replace
            )
        except OSError as error:
            raise CheckpointError(
                f"cannot write the model {name} below {root or checkpoints.own_folder()} "
                f"({reason_of(error)})"
            ) from None
        root = claim.folder.parent
        # what killed processes have left in the folders of models: a new run needs the room
        sweep(root)
        with suppress(OSError):
            for folder in root.iterdir():
                sweep(folder)
                sweep(folder / "snapshots")
        yield claim


def _enter_first(held: ExitStack, names: Iterator[str], root: Path | None, replace: bool) -> Claim:
    """The first claim on one of `names` that succeeds; if none does, the error of the last."""
    problem: ValueError | None = None
    for name in names:
        try:
            return held.enter_context(_claimed_alone(name, root, replace))
        except (CheckpointError, RunError) as error:
            problem = error
    assert problem is not None
    raise problem


@contextmanager
def _claimed_alone(name: str, root: Path | None, replace: bool) -> Iterator[Claim]:
    """A claim on only this name, as `claim_name` describes it."""
    folder = checkpoints.destination(name, root)
    if not replace:
        checkpoints.check_is_free(name, root)
    # another process that holds the lock of a new name is going to use it
    with locked(folder, wait=1.0 if replace else 0.0):
        if not replace:
            # until this thread had the lock, another may have written a model
            checkpoints.check_is_free(name, root)
        elif read_status(folder).state == "waiting":
            raise RunError(
                f"the model {name} waits to be trained: take it back first, on the page Train, or "
                "choose another name"
            )
        yield Claim(folder)
