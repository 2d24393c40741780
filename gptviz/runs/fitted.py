"""What was fitted to a model and took long, kept as a file of tensors in the user's folder: it is found again by a digest."""

from __future__ import annotations

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

# The most bytes of one file, and of all together: the oldest ones go first.
MOST_OF_ONE, MOST_BYTES = 600 * 2**20, 2**31
# A server that keeps nothing has the last ones in memory, of about so many bytes.
MOST_IN_MEMORY = 2**30
_in_memory: dict[str, Mapping[str, Tensor]] = {}


def kept(digest: str) -> dict[str, Tensor]:
    """The tensors that are kept under this digest; none where there is no such file, or it cannot be read."""
    if digest in _in_memory:
        return dict(_in_memory[digest])
    try:
        return load(read_regular(_folder() / f"{digest}.safetensors", MOST_OF_ONE))
    except (OSError, SafetensorError):
        return {}


def keep(digest: str, tensors: Mapping[str, Tensor]) -> None:
    """Keep tensors under a digest, and remove the oldest files where all together are too many bytes. A read-only server writes
    nothing.

    Raises:
        OSError: the file cannot be written.
    """
    if hosting().read_only:
        _in_memory[digest] = tensors
        while (
            len(_in_memory) > 1 and sum(t.nbytes for tensors in [*_in_memory.values()] for t in tensors.values()) > MOST_IN_MEMORY
        ):
            _in_memory.pop(next(iter(_in_memory)))
        return
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    with in_place_of(folder / f"{digest}.safetensors") as fresh:
        save_file({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, fresh)
    newest = sorted(folder.glob("*.safetensors"), key=lambda path: written(path) or (0, 0), reverse=True)
    for path, total in zip(newest, accumulate(map(length_of, newest)), strict=True):
        if total > MOST_BYTES:
            with suppress(OSError):
                path.unlink()


def _folder() -> Path:
    return home() / "fitted"
