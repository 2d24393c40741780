"""The address of a page, so that a reload or a link shows again what is on screen.

Each key of it has one of three writers:

- Streamlit, where a control is bound to the key (`controls`). It leaves out what is at its default.
- The server, with `write` and `put`, for texts (`controls.text`) and for choices that no control is
  bound to (`controls.linked`):
  what is chosen in a figure or a table, the edits, the lesson. Nothing else here changes
  `st.query_params`.
- The browser, with `toAddress` of `components/kit/address.js`, for what is chosen within a view
  without the server.

A suggestion, a link, a step in the browser's history and a typed address may set any key.

A short text stands in the address as it is. A long one would make an address that the server
refuses (it takes 16 KiB for the address and all headers together), and that chats and mails cut
off: it is kept in a file of the user's own folder, and the address has its key, which is a hash of
the text. Such a link works only on this machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote_plus, urlencode

import streamlit as st

from gptviz.machine.bounded import read_regular
from gptviz.machine.files import home, in_place_of, renew
from gptviz.machine.hosting import hosting
from gptviz.settings.address_values import NOTED, Values

# The most characters that a text may take in an address, where a letter beyond the Latin ones takes
# 6 to 12. A page has up to three texts in its address: with everything else they stay below 16 KiB.
LONGEST = 4_000
# Bounds of what is kept: the texts that were used last.
MOST_TEXTS = 200
MOST_BYTES = 16 * 2**20
LONGEST_KEPT = 2**20
_KEY = re.compile(r"kept-[0-9a-f]{32}")
# What chats and mails leave out of a link or end it at: a mark or a space at its end, and marks in
# a row.
_CUT = re.compile(r"[-._~](?=[-._~]|$)|\+$")


class NotKeptError(ValueError):
    """A text that an address names by a key is not on this machine; the message says so."""


def link(base: str, query: Mapping[str, str] | Sequence[tuple[str, str]]) -> str:
    """The address `base` with a query, of which a chat or a mail loses nothing."""
    written = _CUT.sub(lambda found: f"%{ord(found[0].replace('+', ' ')):02X}", urlencode(query))
    return f"{base}{'?' if written else ''}{written}"


def accept_values(key: str, values: Values) -> None:
    """Note which values of `key` in its address the page accepts."""
    st.session_state.setdefault(NOTED, {})[key] = values


def takes_all(values: Mapping[str, Values]) -> None:
    """The same for all keys that a view writes in the browser."""
    for key, each in values.items():
        accept_values(key, each)


def forget_taken() -> None:
    """Forget what was noted: a page begins to run."""
    st.session_state[NOTED] = {}


def write(key: str, value: str | None) -> None:
    """Set `key` of the address to `value`; None removes it.

    Where the address changes, this makes a step in the browser's history.
    """
    if value is None:
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != value:
        st.query_params[key] = value


def put(key: str, text: str | None) -> None:
    """As `write`, for a text, which may be long.

    Raises:
        OSError: the text is long and cannot be kept; the address is then without `key`.
    """
    try:
        value = None if text is None else value_of(text)
    except OSError:
        write(key, None)
        raise
    write(key, value)


def get(key: str) -> str | None:
    """The text that `key` of the address stands for, if the address has that key.

    Raises:
        NotKeptError: the address names a text that is not on this machine.
    """
    value = st.query_params.get(key)
    if value is None:
        return None
    return text_of(value)


def value_of(text: str) -> str:
    """The value for `text` in an address: the text itself, or the key of the file that now holds
    it.

    Raises:
        OSError: the text is long and cannot be kept.
    """
    # A text that looks like a key is kept too: a value in an address then has one meaning.
    if len(text) <= LONGEST and len(quote_plus(text)) <= LONGEST and not _KEY.fullmatch(text):
        return text
    if hosting().read_only:
        raise OSError("this server keeps no texts")
    content = text.encode("utf-8")
    if len(content) > LONGEST_KEPT:
        raise OSError(f"it has {len(content):,} bytes, and at most {LONGEST_KEPT:,} are kept")
    value = _key_of(content)
    with suppress(NotKeptError):
        text_of(value)
        return value
    file = _file(value)
    file.parent.mkdir(parents=True, exist_ok=True)
    with in_place_of(file) as fresh:
        fresh.write_bytes(content)
    _sweep(file)
    return value


def text_of(value: str) -> str:
    """The text that `value` stands for in an address.

    Raises:
        NotKeptError: it is the key of a text that is not on this machine.
    """
    if not _KEY.fullmatch(value):
        return value
    with suppress(OSError):
        content = read_regular(_file(value), LONGEST_KEPT)
        if _key_of(content) == value:
            renew(_file(value))
            return content.decode("utf-8")
    raise NotKeptError(
        f"The link has the key {value[:13]}… of a long text that this machine does not have: it "
        "was typed on another machine, "
        f"or {MOST_TEXTS} other long texts were used since then"
    )


def _file(value: str) -> Path:
    return home() / "texts" / f"{value}.txt"


def _key_of(content: bytes) -> str:
    return f"kept-{hashlib.sha256(content).hexdigest()[:32]}"


def _sweep(newest: Path) -> None:
    """Remove the texts used longest ago until the bounds are kept; `newest` always stays."""
    size = 0
    files = []
    for file in newest.parent.glob("kept-*.txt"):
        with suppress(OSError):
            about = file.stat()
            files.append((file != newest, -about.st_mtime, about.st_size, file))
    for rank, (_, _, length, file) in enumerate(sorted(files)):
        size += length
        if rank and (rank >= MOST_TEXTS or size > MOST_BYTES):
            with suppress(OSError):
                file.unlink()
