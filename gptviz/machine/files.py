"""Where the user's own files are kept, and how a file or a folder is replaced so that a crash
leaves the old one. In the user's folder nothing is written for a visitor who only reads.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, wraps
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TypeVar

from filelock import FileLock

from .hosting import hosting, require_writable

T = TypeVar("T")
# Names that Windows takes for a device, with any ending.
DEVICE = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?", re.IGNORECASE
)
JUST_USED = 10.0  # seconds within which a file need not be renewed again
PATIENCE = 10.0  # seconds to wait for a lock that nobody else should hold
_LOCK_FILE = re.compile(r"(?P<stem>\.(?P<name>.+)-[0-9a-f]{8})\.lock")


def home() -> Path:
    """The folder of the user's own checkpoints and corpora: `GPTVIZ_HOME`, else `.cache/gptviz` in
    the user's home.
    """
    return Path(os.environ.get("GPTVIZ_HOME") or "~/.cache/gptviz").expanduser()


@contextmanager
def replacement_path(path: Path) -> Iterator[Path]:
    """A path next to `path` for the file or folder that will replace it. If it still exists at the
    end, it is removed.

    The three names it uses have the same beginning: `.new` is the path, `.old` the place to which
    `swap` moves the old folder, and `.lock` a file that is locked meanwhile. The system releases
    the lock when its process ends in any way. So `sweep` knows which of these files are in use, and
    which were left by a process that was killed. An OSError if the folder does not exist or cannot
    be written to, a NotAllowedError if it is the user's and who writes only reads.
    """
    if path.absolute().is_relative_to(home().absolute()):
        require_writable(f"{path.name} is not kept")
    sweep(path.parent)
    # Two sessions of one process may write at the same time, so each has its own names.
    stem = f".{path.name}-{token_hex(4)}"
    if not path.parent.is_dir():  # a lock would create it
        raise FileNotFoundError(f"there is no folder {path.parent}")
    try:
        with FileLock(path.with_name(f"{stem}.lock"), timeout=PATIENCE):
            try:
                yield path.with_name(f"{stem}.new")
            finally:
                _clear(path, stem)
    finally:
        with suppress(OSError):
            path.with_name(f"{stem}.lock").unlink(missing_ok=True)


@contextmanager
def in_place_of(path: Path) -> Iterator[Path]:
    """A path to write to, renamed to `path` at the end: after a crash or on a full disk the last
    good file stays.

    It lies in a folder of its own. A library may write to another file next to it first, as
    safetensors does: what a killed process leaves of that is removed with the folder. An OSError if
    the file cannot be written, or its folder does not exist.
    """
    with replacement_path(path) as folder:
        folder.mkdir()
        fresh = folder / path.name
        yield fresh
        fresh.replace(path)


@contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """An empty folder, removed at the end: in the user's folder, where there is room for large
    files; for who only reads, where the system has such folders.
    """
    if hosting().read_only:
        with TemporaryDirectory() as folder:
            yield Path(folder)
        return
    home().mkdir(parents=True, exist_ok=True)
    with replacement_path(home() / name) as fresh:
        fresh.mkdir()
        yield fresh


def renew(path: Path) -> None:
    """Let a file count as used last, unless it is read for a visitor who only reads. What was used
    a moment ago counts so already.
    """
    with suppress(OSError):
        if not hosting().read_only and abs(time.time() - path.stat().st_mtime) > JUST_USED:
            os.utime(path)


def swap(fresh: Path, path: Path) -> None:
    """Replace the folder `path` by the folder `fresh`, a path from `replacement_path`; an OSError
    if one cannot be renamed.

    After a crash between the two renames, `sweep` puts the old folder back.
    """
    if path.exists():
        path.rename(fresh.with_suffix(".old"))
    fresh.rename(path)


def sweep(folder: Path) -> None:
    """Remove the files that killed processes have left in `folder`; those of living processes
    stay.
    """
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(folder)
    for lock in filter(None, map(_LOCK_FILE.fullmatch, names)):
        with suppress(OSError):  # a lock that is held is a `Timeout`, which is an OSError
            with FileLock(folder / lock[0], timeout=0):
                _clear(folder / lock["name"], lock["stem"])
            (folder / lock[0]).unlink(missing_ok=True)


def length_of(path: Path) -> int:
    """The bytes of a file, or of a link itself; 0 if it cannot be read."""
    with suppress(OSError):
        return path.lstat().st_size
    return 0


def file_stamp(path: Path) -> tuple[int, int] | None:
    """When a file was written and its bytes, None if it cannot be read: while both stay the same,
    so does its content.
    """
    with suppress(OSError):
        state = path.stat()
        return state.st_mtime_ns, state.st_size
    return None


def kept_until_written(
    *names: str, most: int
) -> Callable[[Callable[[Path], T]], Callable[[Path], T]]:
    """Keep what a function reads in a folder until one of the files `names` in it changes ("" is
    the path itself).

    At most `most` results are kept; all who ask share one.
    """

    def decorate(read: Callable[[Path], T]) -> Callable[[Path], T]:
        kept = lru_cache(maxsize=most)(lambda folder, written: read(folder))
        return wraps(read)(
            lambda folder: kept(folder, tuple(file_stamp(folder / name) for name in names))
        )

    return decorate


def _clear(path: Path, stem: str) -> None:
    """Remove the files left next to `path`; an old folder that was moved aside returns if its place
    is empty.
    """
    fresh = path.with_name(f"{stem}.new")
    old = path.with_name(f"{stem}.old")
    with suppress(OSError):
        if old.exists() and not path.exists():
            old.rename(path)
    for left in (fresh, old):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            with suppress(OSError):
                left.unlink(missing_ok=True)
