"""The texts to train on: the user's files, Python's own reference, and Tiny Shakespeare, which is
fetched once.
"""

import hashlib
import os
import re
import stat
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Final

from gptviz.machine.errors import reason_of
from gptviz.machine.files import home, in_place_of
from gptviz.machine.hosting import require_writable

_TINY_SHAKESPEARE = "tinyshakespeare.txt"  # as it is kept
TINY_SHAKESPEARE_ADDRESS = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
)
TINY_SHAKESPEARE_SHA256: Final = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
_TINY_SHAKESPEARE_BYTES: Final = 1_115_394
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class CorpusUnavailableError(OSError):
    """A corpus cannot be opened now; the message says why and what to use instead."""


def check_fraction(fraction: float) -> None:
    """Refuse a `fraction` to train on with a ValueError unless it lies between 0 and 1."""
    if not 0 < fraction < 1:
        raise ValueError(f"the training fraction must lie between 0 and 1, not {fraction}")


@dataclass(frozen=True)
class Corpus:
    """A text to train on. A ValueError if the text is empty."""

    name: str  #: what it is called
    text: str = field(repr=False)  #: all of it
    source: str | None = None  #: the file or the address it was read from, or None if there is none
    sha256: str = field(init=False)  #: of its UTF-8, by which it is found again

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError(f"the corpus “{self.name}” is empty")
        object.__setattr__(
            self, "sha256", hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()
        )

    def split(self, fraction: float = 0.9) -> tuple[str, str]:
        """The first `fraction` of the characters for training, the rest for validation; a
        ValueError if a part is empty.
        """
        check_fraction(fraction)
        cut = int(fraction * len(self.text))
        if not 0 < cut < len(self.text):
            raise ValueError(
                f"{len(self.text)} characters are too few to split at {fraction}: one part would "
                "be empty"
            )
        return self.text[:cut], self.text[cut:]


@dataclass(frozen=True)
class NamedCorpus:
    """A corpus that can be chosen by name."""

    name: str  #: what it is called
    description: str  #: what it is, in one line
    ready: bool  #: whether it opens without a network
    open: Callable[[], Corpus] = field(repr=False)  #: reads it, or fetches it first


def corpora() -> tuple[NamedCorpus, ...]:
    """The corpora that can be chosen by name. Opens and fetches nothing."""
    return (
        NamedCorpus(
            "python-reference",
            "Python's language reference as it ships inside Python: about 460,000 characters of "
            "English, offline",
            True,
            python_reference,
        ),
        NamedCorpus(
            "tiny-shakespeare",
            "40,000 lines of Shakespeare, 1,115,394 characters: fetched once (1.1 MB), then "
            "offline",
            _cache_path(_TINY_SHAKESPEARE).is_file(),
            tiny_shakespeare,
        ),
    )


def read_corpus(path: str | os.PathLike[str], limit: int = 200_000_000) -> Corpus:
    """A text file as a corpus, named after the file: UTF-8, with or without a byte order mark; line
    ends become newlines.

    Raises:
        OSError: the file is missing, a folder, not an ordinary file or not readable.
        ValueError: it is empty, larger than `limit` bytes or not UTF-8 text. Each message names the
            file and what to do.
    """
    file = Path(path)
    try:
        # Opening a pipe would wait for its writer, so the kind of the file is checked first.
        mode = file.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"{file} is a folder: name one text file in it")
        if not stat.S_ISREG(mode):
            raise OSError(f"{file} is not an ordinary file: name a text file")
        with file.open("rb") as opened:
            data = opened.read(limit + 1)
            size = os.fstat(opened.fileno()).st_size
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{file} does not exist: check the name and the folder ({Path.cwd()})"
        ) from None
    except PermissionError:
        raise PermissionError(
            f"{file} may not be read: change its permissions or copy it"
        ) from None
    if len(data) > limit:
        raise ValueError(
            f"{file} has {size:,} bytes, at most {limit:,} are read: shorten it, or raise the limit"
        )
    return Corpus(file.name, _utf8_text(data, str(file)), str(file))


def corpus_of(data: bytes, name: str) -> Corpus:
    """The content of a text file as a corpus called `name`, read as `read_corpus` reads it."""
    return Corpus(name, _utf8_text(data, f"“{name}”"))


def python_reference() -> Corpus:
    """Python's language reference, about 460,000 characters: every topic of `help()`, in the order
    of their names.

    Source: `pydoc_data.topics` of the running Python; text and SHA-256 differ between Python
    versions. A `CorpusUnavailableError` if this Python was installed without that module.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise CorpusUnavailableError(
            "this Python was installed without pydoc_data, its reference text: use a text file of "
            "yours, "
            "Tiny Shakespeare or a generated task"
        ) from None
    return Corpus(
        "python-reference", "\n".join(topics[name] for name in sorted(topics)), "pydoc_data.topics"
    )


def tiny_shakespeare(fetch: bool = True, timeout: float = 20) -> Corpus:
    """Tiny Shakespeare (Karpathy, char-rnn; public domain): from the cache folder, else fetched
    once and kept there.

    It is fetched only if `fetch`, and the network is waited for at most `timeout` seconds. A
    NotAllowedError if it is not in the cache, and this server keeps nothing; a
    CorpusUnavailableError if it is not in the cache and may not be fetched, the network cannot be
    reached in time, or the text that comes does not have the known SHA-256.
    """
    cached = _cache_path(_TINY_SHAKESPEARE)
    data = _cached_bytes(cached)
    if not _is_tiny_shakespeare(data):
        if not fetch:
            raise _no_shakespeare("it may not be fetched")
        require_writable("Tiny Shakespeare is not fetched")
        data = _fetch(TINY_SHAKESPEARE_ADDRESS, timeout)
        if not _is_tiny_shakespeare(data):
            raise _no_shakespeare("what was fetched is not that text (its SHA-256 differs)")
        with suppress(OSError):  # without a cache, the text is fetched again next time
            _cache(cached, data)
    return Corpus("tiny-shakespeare", data.decode(), TINY_SHAKESPEARE_ADDRESS)


def remember(corpus: Corpus) -> None:
    """Keep a copy of the text, found again by its SHA-256: a run that is resumed later must read
    the same text.
    """
    path = _cache_path(f"{corpus.sha256}.txt")
    if not path.is_file():
        _cache(path, corpus.text.encode("utf-8", "surrogatepass"))


def recall(name: str, sha256: str) -> Corpus:
    """The text with this SHA-256: a kept copy, else the corpus of that name; a
    `CorpusUnavailableError` if there is neither.
    """
    if re.fullmatch("[0-9a-f]{64}", sha256):
        data = _cached_bytes(_cache_path(f"{sha256}.txt"))
    else:
        data = b""
    if data and hashlib.sha256(data).hexdigest() == sha256:
        return Corpus(name, data.decode("utf-8", "surrogatepass"))
    for offer in corpora():
        if offer.name == name:
            corpus = offer.open()
            if corpus.sha256 == sha256:
                return corpus
    raise CorpusUnavailableError(
        f"the text “{name[:80]}” is not here any more (SHA-256 {sha256[:12]}…): give it as a file"
    )


def _utf8_text(data: bytes, file: str) -> str:
    """The text in `data`, not empty, without byte order mark and with newlines as line ends."""
    fix = "open it in an editor and save it as UTF-8 text"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{file} is not UTF-8 (byte 0 starts a UTF-16 mark): {fix}")
    if data.startswith(_BYTE_ORDER_MARK):
        mark = len(_BYTE_ORDER_MARK)
    else:
        mark = 0
    try:
        text = data[mark:].decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file} is not UTF-8 (byte {mark + error.start} fits no character): {fix}"
        ) from None
    # Allowed in UTF-8, but in practice a sign of UTF-16 without a byte order mark, or of a file
    # that is not text.
    if "\0" in text:
        raise ValueError(f"{file} is not text (byte {data.index(0)} is zero): {fix}")
    if not text:
        raise ValueError(f"{file} is empty: choose a file with text in it")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _cache_path(name: str) -> Path:
    """Where a copy of a corpus is kept."""
    return home() / "corpora" / name


def _is_tiny_shakespeare(data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest() == TINY_SHAKESPEARE_SHA256


def _no_shakespeare(reason: str) -> CorpusUnavailableError:
    end = "" if reason.endswith("?") else "."
    return CorpusUnavailableError(
        f"Tiny Shakespeare, the text that this needs, is not here: {reason}{end} Get it where "
        "there is a network, from "
        f"{TINY_SHAKESPEARE_ADDRESS}, and put it here as {_cache_path(_TINY_SHAKESPEARE)}; or name "
        "another text: "
        "python-reference, a file of yours, or a task that generates its text"
    )


def _fetch(address: str, timeout: float) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=timeout) as answer:
            # One byte more than the text has is enough to see that it is another text.
            data: bytes = answer.read(_TINY_SHAKESPEARE_BYTES + 1)
            return data
    except (OSError, HTTPException) as error:  # URLError and time-outs are OSErrors
        reason = reason_of(getattr(error, "reason", error))
        raise _no_shakespeare(f"it cannot be fetched ({reason}); are you offline?") from None


def _cached_bytes(path: Path) -> bytes:
    """The content of the cache; nothing if it cannot be read."""
    with suppress(OSError):
        return path.read_bytes()
    return b""


def _cache(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with in_place_of(path) as fresh:
        fresh.write_bytes(data)
