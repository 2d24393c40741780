"""Managing the user's own models: renaming, and deleting with undo.

A deleted model moves to the folder `trash` next to the folder of models. Its token there is the
time of deletion and its name. Links are never followed: the folder itself is moved. What cannot be
done is refused with a `CheckpointError`.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

from gptviz.machine.errors import reason_of
from gptviz.machine.files import home, length_of

from . import checkpoints
from .checkpoints import CheckpointError
from .names import claim_name
from .status import RunError, locked, read_status

MOST_DELETED = 20
MOST_DELETED_BYTES = 2 * 2**30

TOKEN = re.compile(r"[0-9]{20}-(?P<name>.+)")


def is_own(folder: Path) -> bool:
    """Whether the model in `folder` is the user's, not one that came with gptviz."""
    return folder.parent == checkpoints.own_folder()


def rename(name: str, new: str) -> Path:
    """Rename the user's model `name` to `new`, and return its folder. Adapters of it name it by its
    new name.
    """
    with _hold_model(name, "renamed") as folder, _claim_folder(new) as target:
        adapters = adapters_of(folder)
        _move(folder, target, f"{name} is not renamed")
    for its_folder in adapters:
        adapter = replace(checkpoints.read_adapter(its_folder), base=target.name)
        checkpoints.write_json(its_folder / "adapter.json", asdict(adapter))
    return target


def adapters_of(base: Path) -> list[Path]:
    """The user's own LoRA adapters that change the weights of the model in the folder `base`."""
    models = []
    for folder in checkpoints.folders().values():
        with suppress(CheckpointError):
            if (
                is_own(folder)
                and checkpoints.is_adapter(folder)
                and checkpoints.base_of(folder) == base
            ):
                models.append(folder)
    return models


def delete(name: str) -> str:
    """Move the user's model `name` to the trash, and return the token for `undelete`.

    The trash keeps the last `MOST_DELETED` models, up to `MOST_DELETED_BYTES` together; the last
    one is kept at any size.
    """
    token = f"{time.time_ns():020d}-{name}"
    with _hold_model(name, "deleted") as folder:
        _move(folder, _trash() / token, f"{name} is not deleted")
    size = 0
    for rank, folder in enumerate(_models_in_trash()):
        size += sum(
            length_of(Path(root, file)) for root, _, files in os.walk(folder) for file in files
        )
        if rank and (rank >= MOST_DELETED or size > MOST_DELETED_BYTES):
            folder.unlink() if folder.is_symlink() else shutil.rmtree(folder, ignore_errors=True)
    return token


def undelete(token: str) -> str:
    """Bring a deleted model back, and return its name: a new one if another model, own or shipped,
    has the old name now.
    """
    if (name := deleted_models().get(token)) is None:
        raise CheckpointError(
            "the model is not in the trash any more: it was brought back already, or removed for "
            "good"
        )
    with _claim_folder(name, or_next=True) as target:
        _move(_trash() / token, target, f"{name} is not brought back")
    return target.name


def deleted_models() -> dict[str, str]:
    """The names of the models that `undelete` can bring back, by token; the last deleted first."""
    return {
        folder.name: name["name"]
        for folder in _models_in_trash()
        if (name := TOKEN.fullmatch(folder.name))
    }


def _trash() -> Path:
    return home() / "trash"


@contextmanager
def _hold_model(name: str, moved: str) -> Iterator[Path]:
    """The folder of the user's model `name`, which nobody trains or moves meanwhile; `moved` names
    the change, for messages.
    """
    checkpoints.check_writable(f"{name} is not {moved}")
    folder = checkpoints.find(name)
    if not is_own(folder):
        raise CheckpointError(
            f"{name} came with gptviz and cannot be {moved}: only models of your own can"
        )
    if read_status(folder).state == "waiting":
        raise CheckpointError(
            f"{name} waits to be trained and cannot be {moved}: stop it first, on the page Train"
        )
    try:
        with locked(folder):
            yield folder
    except OSError as error:
        raise CheckpointError(f"{name} cannot be {moved} ({reason_of(error)})") from None
    except RunError:
        raise CheckpointError(
            f"{name} is being trained and cannot be {moved}: stop it first, on the page Train"
        ) from None


@contextmanager
def _claim_folder(name: str, *, or_next: bool = False) -> Iterator[Path]:
    """The folder for a model called `name`, or by the next free name; nobody else takes the name
    meanwhile.
    """
    try:
        with claim_name(name, or_next=or_next) as claim:
            yield claim.folder
    except RunError as error:
        raise CheckpointError(str(error)) from None


def _move(folder: Path, target: Path, failed: str) -> None:
    """Move the folder by one rename, which happens as a whole or not at all; `failed` begins the
    message of an error.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(target)
    except OSError as error:
        raise CheckpointError(f"{failed} ({reason_of(error)}): it is where it was") from None


def _models_in_trash() -> list[Path]:
    """The models in the trash, the last deleted first. Other files there are left out."""
    with suppress(OSError):
        return sorted(
            (path for path in _trash().iterdir() if TOKEN.fullmatch(path.name)), reverse=True
        )
    return []
