"""Where the user's own files are kept, and how a file is replaced so that a crash leaves the old one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident


def home() -> Path:
    """The folder of the user's own checkpoints and corpora: `GPTVIZ_HOME`, else `.cache/gptviz` in the user's home."""
    return Path(os.environ.get("GPTVIZ_HOME") or "~/.cache/gptviz").expanduser()


@contextmanager
def in_place_of(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, renamed to `path` at the end: a crash or a full disk leaves the last good file.

    Raises:
        OSError: the file cannot be written.
    """
    # Two sessions of one process may write at once, so each has a file of its own.
    beside = path.with_name(f".{path.name}-{os.getpid()}-{get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield beside
        beside.replace(path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
