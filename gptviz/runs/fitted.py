"""What was fitted to a model and took long, kept as a file of tensors in the user's folder: it is
found again by a digest.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save_file
from torch import Tensor

from gptviz.machine.bounded import read_regular
from gptviz.machine.files import file_stamp, home, in_place_of, kept_until_written, length_of, renew
from gptviz.machine.hosting import hosting
from gptviz.machine.location import BUNDLED
from gptviz.machine.memory import in_bytes

from .checkpoints import DICTIONARY

# The most bytes of one file, and of all together.
MOST_OF_ONE = 600 * 2**20
MOST_BYTES = 2**31
# The files whose tensors stay in memory while they are the same: the last ones.
MOST_OPEN = 4
# What is fitted for visitors who only read is in memory until the server ends: the last ones, of
# about so many bytes.
MOST_IN_MEMORY = 2**30
# The tensor of a lens with how well it does: numbers where it was fitted here, so that it can be
# fitted again; NaN where it was read from a file.
MEASURED = "measured"
_in_memory: dict[str, Mapping[str, Tensor]] = {}
# The file of a dictionary that lies beside a model that ships, by what its name ends with: of the
# stream, and of the MLP of a block.
_SHIPPED = re.compile("(?P<model>.+)-(?:features|mlp-(?P<block>[0-9]{1,3}))")


def name_with_digest(name: str, digest: str) -> str:
    """The name that something is kept under: what was typed, in small letters, and the beginning of
    a digest.
    """
    return f"{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')[:40] or 'unnamed'}-{digest[:8]}"


def kept_tensors(digest: str) -> dict[str, Tensor]:
    """The tensors that are kept under this digest; none where there is no such file, or it cannot
    be read. What is read stays longer than what is not.
    """
    if digest in _in_memory:
        return dict(_in_memory[digest])
    renew(path := _path(digest))
    return dict(_read_tensors(path))


def shipped_tensors(name: str) -> dict[str, Tensor]:
    """The tensors that lie beside a model that ships, by the name of the model and "-features", or
    "-mlp-0" of the MLP of a block; none where there are none.
    """
    if (match := _SHIPPED.fullmatch(name)) is None:
        return {}
    file = DICTIONARY if match["block"] is None else f"mlp-{match['block']}.safetensors"
    return dict(_read_tensors(BUNDLED / match["model"] / file))


# One picture reads the same file for many models with edits.
@kept_until_written("", most=MOST_OPEN)
def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load(read_regular(path, MOST_OF_ONE))
    except (OSError, SafetensorError):
        return {}


def names(beginning: str) -> list[str]:
    """The digests under which something is kept that begin so."""
    # what others fitted who only read is found by who has its name, and by them
    of_readers = _in_memory if hosting().read_only else ()
    every = {*of_readers, *(path.stem for path in _files())}
    return sorted(name for name in every if name.startswith(beginning))


def shipped_names() -> list[str]:
    """The names of all that `shipped_tensors` finds."""
    of_streams = (f"{path.parent.name}-features" for path in BUNDLED.glob(f"*/{DICTIONARY}"))
    of_mlps = (f"{path.parent.name}-{path.stem}" for path in BUNDLED.glob("*/mlp-*.safetensors"))
    return sorted([*of_streams, *of_mlps])


def keep(digest: str, tensors: Mapping[str, Tensor]) -> None:
    """Keep tensors under a digest: as a file, or for a visitor who only reads in memory.

    Where all files are too large together, lenses that can be fitted again go, the one that was
    read longest ago first, and nothing else. Where there is no room, a lens stays in memory, with a
    warning; for all else that is an OSError, which says why.
    """
    path = _path(digest)
    if not hosting().read_only:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _make_room(path, sum(tensor.nbytes for tensor in tensors.values()))
            write(path, tensors)
            return
        except OSError as error:
            reason = f"{error.strerror}; make room on its disk" if error.strerror else error
            problem = f"{digest} is not kept in {path.parent}: {reason}"
        if MEASURED not in tensors:
            raise OSError(problem)
        warnings.warn(problem, stacklevel=2)
    _in_memory[digest] = tensors
    while (
        len(_in_memory) > 1
        and sum(t.nbytes for tensors in [*_in_memory.values()] for t in tensors.values())
        > MOST_IN_MEMORY
    ):
        _in_memory.pop(next(iter(_in_memory)))


def is_kept(digest: str) -> bool:
    """Whether what has this digest is kept for as long as who asks may keep something."""
    return _path(digest).exists() or (hosting().read_only and digest in _in_memory)


def _make_room(path: Path, needed: int) -> None:
    """Remove lenses that can be fitted again, until there is room for `needed` bytes at `path`; an
    OSError, and all files stay, if that is not enough.
    """
    if needed > MOST_OF_ONE:
        raise OSError(f"it takes {in_bytes(needed)}, and {in_bytes(MOST_OF_ONE)} is the most")
    oldest_first = sorted(_files(), key=lambda file: file_stamp(file) or (0, 0))
    sizes = {file: length_of(file) for file in oldest_first if file != path}
    going = []
    for file in filter(_can_be_fitted_again, [*sizes]):
        if sum(sizes.values()) + needed > MOST_BYTES:
            del sizes[file]
            going.append(file)
    if sum(sizes.values()) + needed > MOST_BYTES:
        raise OSError(
            f"the folder is full, with {in_bytes(MOST_BYTES)} at most: delete the directions, "
            "dictionaries and lenses there that you need no more"
        )
    for file in going:
        with suppress(OSError):
            file.unlink()


def _can_be_fitted_again(path: Path) -> bool:
    """Whether a file has a lens that was fitted here, and not one that was read from a file."""
    with suppress(OSError, SafetensorError), safe_open(path, "pt") as file:
        if MEASURED in file.keys():  # noqa: SIM118
            return bool(file.get_tensor(MEASURED).isfinite().any())
    return False


def write(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors to a file. An OSError if it cannot be written."""
    content = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    with in_place_of(path.absolute()) as fresh:
        try:
            save_file(content, fresh)
        except SafetensorError as error:  # so it says that a disk is full
            raise OSError(str(error)) from None


def _path(digest: str) -> Path:
    return home() / "fitted" / f"{digest}.safetensors"


def _files() -> Iterable[Path]:
    return (home() / "fitted").glob("*.safetensors")
