"""Files from elsewhere, which may be of any kind: read within bounds, and without waiting."""

import json
import os
import re
import stat
from pathlib import Path
from typing import Any, Final

# A lone surrogate is no character: UTF-8, and so no file and no message to a browser, can hold it.
SURROGATE: Final = re.compile("[\ud800-\udfff]")
# The two ways to write one in JSON: escaped, and as the bytes that UTF-8 would have for it.
_MAY_HOLD_ONE: Final = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")


class TooMuchError(ValueError):
    """A file is sound, but larger or takes more work than is allowed; the message says what of
    it.
    """


def read_regular(path: Path, at_most: int, *, cut: bool = False) -> bytes:
    """The content of a regular file of at most `at_most` bytes; with `cut`, the beginning of a
    longer one.

    A file from elsewhere may be of any kind: reading from a pipe could wait forever, and a device
    never ends. An OSError if it cannot be read, is no regular file, or is longer.
    """
    require_regular(path)
    # Since that check the file may have been replaced: a pipe opened without O_NONBLOCK waits for
    # its other end.
    flags = (
        os.O_RDONLY
        | getattr(os, "O_NONBLOCK", 0)
        | getattr(os, "O_NOCTTY", 0)
        | getattr(os, "O_BINARY", 0)
    )
    with open(os.open(path, flags), "rb") as file:
        _require_regular(os.fstat(file.fileno()).st_mode)
        content = file.read(at_most + (not cut))
    if len(content) > at_most:
        raise OSError(f"it is longer than {at_most:,} bytes, the most that is read of such a file")
    return content


def require_regular(path: Path) -> None:
    """Refuse with an OSError a path that leads to anything but a regular file, without opening
    it.
    """
    _require_regular(path.stat().st_mode)


def _require_regular(mode: int) -> None:
    for is_kind, name in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if is_kind(mode):
            raise OSError(f"it is {name}, not a regular file")
    if not stat.S_ISREG(mode):
        raise OSError("it is a device, not a regular file")


def n_values(content: bytes | str) -> int:
    """An upper limit for the number of values in JSON, without parsing it; a comma or a bracket
    within a text counts too.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogatepass")
    return 1 + sum(map(content.count, (b",", b"[", b"{")))


def parse_json(content: bytes | str, most_values: int, *, exactly: bool = False) -> Any:
    """The content of JSON. A value takes up to a hundred times as much memory as in the file, so
    that their number is limited. Lone surrogates, which some tokenizers have tokens for, are kept
    `exactly`, or become U+FFFD, which can be shown.

    A ValueError if it is no JSON, or is nested too deeply, and a TooMuchError if it has more values
    than that.
    """
    if (count := n_values(content)) > most_values:
        raise TooMuchError(
            f"it holds {count:,} values, and {most_values:,} is the most that is read of such a "
            "file"
        )
    try:
        value = json.loads(content)
        if isinstance(content, str):
            data = content.encode("utf-8", "surrogatepass")
        else:
            data = content
        if exactly or not _MAY_HOLD_ONE.search(data):
            return value
        return _without_surrogates(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return SURROGATE.sub("\ufffd", value)
        case list():
            return [_without_surrogates(part) for part in value]
        case dict():
            return {
                _without_surrogates(name): _without_surrogates(part) for name, part in value.items()
            }
    return value
