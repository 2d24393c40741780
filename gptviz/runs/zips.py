"""Zip files from elsewhere: every name and size is checked before anything is written.

A file is written under a name that the caller chooses, never under the one in the zip file, and
only as long as was declared.
"""

from __future__ import annotations

import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from gptviz.machine.bounded import require_regular
from gptviz.machine.files import DEVICE

MOST_ENTRIES = 10_000
LONGEST_NAME = 400  # characters of a path
LONGEST_READ = 2 * 2**20  # bytes that are read at once; the list of all entries is read at once
# How much smaller zip files may be than their content. Weights hardly shrink, and texts are small
# compared with them.
MOST_RATIO = 100
SMALL = 4 * 2**20
CHUNK = 2**20


class ZipError(ValueError):
    """A zip file that is damaged, is not as it says, or holds a name or a size that is refused; the
    message says which.
    """


class ZipEntries:
    """The entries of a zip file of `length` bytes, all of whose names and declared sizes were
    checked.
    """

    def __init__(self, file: zipfile.ZipFile, length: int) -> None:
        self._file = file
        entries = file.infolist()
        if len(entries) > MOST_ENTRIES:
            raise ZipError(
                f"it has {len(entries):,} entries, and {MOST_ENTRIES:,} is the most that is "
                "unpacked"
            )
        for entry in entries:
            # Refuse an entry that is neither a plain file nor a folder, or that is packed in an
            # unusual way.
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR) or (
                stat.S_ISDIR(mode) and not entry.is_dir()
            ):
                raise ZipError(f"{_show_entry(entry)} is a link or a device, not a file")
            if entry.flag_bits & 0x1:
                raise ZipError(f"{_show_entry(entry)} is locked by a password")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ZipError(
                    f"{_show_entry(entry)} is packed by another method than the usual one (deflate)"
                )
        _check_paths(entries)
        self._by_name = {entry.filename: entry for entry in entries if not entry.is_dir()}
        #: the paths of its files, in their order; folders are not listed
        self.names = list(self._by_name)
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > MOST_RATIO * length + SMALL:
            raise ZipError(
                f"its {length:,} bytes would become {unpacked:,}, as those of no model do"
            )

    def size(self, *names: str) -> int:
        """How many bytes these files say they have together."""
        return sum(self._by_name[name].file_size for name in names)

    def read_entry(self, name: str, at_most: int) -> bytes:
        """The content of a file."""
        if self.size(name) > at_most:
            raise ZipError(
                f"{name} has {self.size(name):,} bytes, and {at_most:,} is the most that is read "
                "of such a file"
            )
        return b"".join(self._chunks(name))

    def write(self, name: str, path: Path) -> None:
        """Write the content of a file to a new file at `path`."""
        with path.open("xb") as out:
            for chunk in self._chunks(name):
                out.write(chunk)

    def _chunks(self, name: str) -> Iterator[bytes]:
        entry = self._by_name[name]
        length = 0
        with _explain_errors(), self._file.open(entry) as content:
            while chunk := content.read(CHUNK):
                length += len(chunk)
                if length > entry.file_size:
                    break
                yield chunk
        if length != entry.file_size:
            raise ZipError(f"{name} is not as long as it says")


@contextmanager
def open_zip(file: BinaryIO | Path) -> Iterator[ZipEntries]:
    """The zip file at a path, or in an open file."""
    if isinstance(file, Path):
        require_regular(file)
        with file.open("rb") as content, open_zip(content) as zip_file:
            yield zip_file
        return
    with _explain_errors():
        archive = zipfile.ZipFile(_InPieces(file))
    with archive:
        if not archive.infolist():
            raise ZipError("it is empty")
        yield ZipEntries(archive, file.seek(0, os.SEEK_END))


class _InPieces:
    """A file that is read in pieces of limited size: the list of entries of a hostile zip file may
    fill the memory.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.seek = file.seek
        self.tell = file.tell
        self._read = file.read

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._read(LONGEST_READ + 1 if size < 0 else min(size, LONGEST_READ + 1))
        if len(content) > LONGEST_READ:
            raise ZipError("its list of files is too long")
        return content


@contextmanager
def _explain_errors() -> Iterator[None]:
    try:
        yield
    except ZipError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        ValueError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise ZipError(
            f"it is no zip file, or damaged ({str(error)[:120] or type(error).__name__}): copy or "
            "download it again"
        ) from None


def _check_paths(entries: list[zipfile.ZipInfo]) -> None:
    """Refuse names that lead out of a folder, are special to a system, or could not exist in one
    folder on every disk.
    """
    files: set[str] = set()
    folders: set[str] = set()
    for entry in entries:
        name = entry.orig_filename
        path = name.removesuffix("/")
        parts = path.split("/")
        if len(name) > LONGEST_NAME or not name.isprintable() or set(name) & set('\\:*?"<>|'):
            raise ZipError(f"{_show_entry(entry)} is no name for a file")
        if any(part in ("", ".", "..") for part in parts):
            raise ZipError(f"{_show_entry(entry)} leads out of its folder")
        if any(part[-1] in ". " or DEVICE.fullmatch(part) for part in parts):
            raise ZipError(
                f"{_show_entry(entry)} is a name that some systems take for something else"
            )
        # some disks do not tell such names apart
        alike = unicodedata.normalize("NFC", path).casefold()
        if alike in files or (alike in folders and not entry.is_dir()):
            raise ZipError(f"{_show_entry(entry)} stands twice in it")
        (folders if entry.is_dir() else files).add(alike)
    for path in [*files, *folders]:
        if inside := {str(parent) for parent in PurePosixPath(path).parents} & files:
            raise ZipError(f"{min(inside)[:80]!r} is a file and a folder in it")


def _show_entry(entry: zipfile.ZipInfo) -> str:
    return f"{entry.orig_filename[:80]!r}"


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether the file at this path has the name of a zip file."""
    return Path(path).suffix.lower() == ".zip" and os.path.isfile(path)
