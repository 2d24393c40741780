"""What was fitted to a model and took long, kept as a file of tensors in the user's folder: it is
found again by a digest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from gptviz.machine.bounded import read_regular
from gptviz.machine.files import home, in_place_of, length_of, written
from gptviz.machine.hosting import hosting
from gptviz.machine.location import BUNDLED

from .checkpoints import DICTIONARY

# The most bytes of one file, and of all together: the oldest ones go first.
MOST_OF_ONE, MOST_BYTES = 600 * 2**20, 2**31
# A server that keeps nothing has the last ones in memory, of about so many bytes.
MOST_IN_MEMORY = 2**30
_in_memory: dict[str, Mapping[str, Tensor]] = {}
# What the name of a dictionary ends with that lies beside a model that ships.
_OF_MODEL = "-features"


def named(name: str, digest: str) -> str:
    """The name that something is kept under: what was typed, in small letters, and the beginning of
    a digest.
    """
    return f"{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')[:40] or 'unnamed'}-{digest[:8]}"


def kept(digest: str) -> dict[str, Tensor]:
    """The tensors that are kept under this digest; none where there is no such file, or it cannot
    be read.
    """
    if digest in _in_memory:
        return dict(_in_memory[digest])
    return _read(_folder() / f"{digest}.safetensors")


def shipped(name: str) -> dict[str, Tensor]:
    """The tensors that lie beside a model that ships, by the name of the model and "-features";
    none where there are none.
    """
    return (
        _read(BUNDLED / name.removesuffix(_OF_MODEL) / DICTIONARY)
        if name.endswith(_OF_MODEL)
        else {}
    )


def _read(path: Path) -> dict[str, Tensor]:
    try:
        return load(read_regular(path, MOST_OF_ONE))
    except (OSError, SafetensorError):
        return {}


def names(beginning: str) -> list[str]:
    """The digests under which something is kept that begin so."""
    every = {*_in_memory, *(path.stem for path in _folder().glob("*.safetensors"))}
    return sorted(name for name in every if name.startswith(beginning))


def shipped_names() -> list[str]:
    """The names of all that `shipped` finds."""
    return sorted(f"{path.parent.name}{_OF_MODEL}" for path in BUNDLED.glob(f"*/{DICTIONARY}"))


def keep(digest: str, tensors: Mapping[str, Tensor]) -> None:
    """Keep tensors under a digest, unless read-only, and remove the oldest files if all are too
    large; an OSError if it fails.
    """
    if hosting().read_only:
        _in_memory[digest] = tensors
        while (
            len(_in_memory) > 1
            and sum(t.nbytes for tensors in [*_in_memory.values()] for t in tensors.values())
            > MOST_IN_MEMORY
        ):
            _in_memory.pop(next(iter(_in_memory)))
        return
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / f"{digest}.safetensors", tensors)
    newest = sorted(
        folder.glob("*.safetensors"), key=lambda path: written(path) or (0, 0), reverse=True
    )
    for path, total in zip(newest, accumulate(map(length_of, newest)), strict=True):
        if total > MOST_BYTES:
            with suppress(OSError):
                path.unlink()


def write(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors to a file. An OSError if it cannot be written."""
    with in_place_of(path.absolute()) as fresh:
        save_file({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, fresh)


def _folder() -> Path:
    return home() / "fitted"
