"""Hosting: the limits of a public server, set by environment variables. Without any of them
everything is allowed.

The variable of a field called `minutes` is `GPTVIZ_MINUTES`. An impossible value is an error that
names it: a misspelt limit must not mean that there is no limit.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, TypeVar

from gptviz.settings.fields import check_choices, check_numbers, field_info, setting
from gptviz.settings.known_names import name_known

from .location import page_names

R = TypeVar("R")
NO_UPLOADS = "this server takes no files"
# Whether who began what runs here only reads; None where that is asked of the session.
_reads_only: ContextVar[bool | None] = ContextVar("reads only", default=None)


class NotAllowedError(ValueError):
    """Something that the settings of this server do not allow; the message says so."""


@dataclass(frozen=True)
class Hosting:
    """The limits of a server; `gptviz app --help` lists the variables. A ValueError if a value is
    out of range.
    """

    read_only: bool = setting(
        False,
        "Read-only",
        "1: models are shown, and nothing is trained, saved, deleted, imported or uploaded; “Open "
        "a model” looks at no path "
        "and at no name of the hub.",
    )
    lan: bool = setting(
        False,
        "A class in one network",
        "1: guests only read, as with GPTVIZ_READ_ONLY=1; who opens http://localhost on this "
        "machine may do everything. "
        "`gptviz app --lan` sets it.",
    )
    models: str | None = setting(
        None, "Models", "The names of the models that are shown, separated by commas; default: all."
    )
    start: str | None = setting(
        None,
        "Start",
        "What the address of the server opens: the name of a lesson, or the link to a page; "
        "default: Home. `gptviz app --start` sets it.",
    )
    only: str | None = setting(
        None,
        "Only these pages",
        "The names of the pages that visitors may open, separated by commas; default: all. With "
        "GPTVIZ_LAN=1 the owner may open all. `gptviz app --only` sets it.",
    )
    pseudonyms: bool = setting(
        False,
        "Pseudonyms",
        "1: for the owner, the answers of a class are also a list with a line for each browser, "
        "under the name of an animal drawn at random. `gptviz app --pseudonyms` sets it.",
    )
    longest_text: int = setting(
        100_000, "Longest text", "The most characters of a prompt.", low=1, high=1_000_000
    )
    uploads: int = setting(
        1_000,
        "Uploads",
        "The largest file that can be uploaded, in MB; 0 for none.",
        low=0,
        high=1_000,
    )
    training: int = setting(
        1, "Training slots", "How many runs train at a time; the others wait.", low=0, high=64
    )
    waiting: int = setting(30, "Waiting runs", "How many runs may wait.", low=0, high=1_000)
    minutes: float | None = setting(
        None,
        "Training minutes",
        "A run is stopped after so many minutes; what it has learned is kept.",
        above=0,
    )
    memory: float | None = setting(
        None,
        "Memory",
        "The most memory for models and texts, in MB; Python and its libraries take about 750 "
        "more.",
        low=100,
        high=1e7,
    )
    fast: bool = setting(
        True,
        "Fast products",
        "0: GGUF weights are multiplied by PyTorch, with factors rounded to bfloat16, although "
        "gptviz[fast] is installed, which rounds them to 8 bits.",
    )
    language: str | None = setting(
        None,
        "Language",
        "The language of lessons, words and titles, such as es or de; default: that of the "
        "visitor's browser.",
    )

    def __post_init__(self) -> None:
        check_choices(self)
        check_numbers(self)
        known = page_names()
        pages = self.pages_of_class
        if pages is not None and not set() < pages <= set(known):
            wrong = min(pages.difference(known), default="")
            raise ValueError(
                f"only names {wrong!r:.40}, and there is no such page{name_known(wrong, known)}"
            )

    @property
    def pages_of_class(self) -> frozenset[str] | None:
        """The names of the pages that visitors may open; None for all."""
        return _names(self.only)

    @property
    def allowed_pages(self) -> frozenset[str] | None:
        """The same for this visitor: the owner of a server for a class may open all."""
        if self.lan and not self.read_only:
            return None
        return self.pages_of_class

    @property
    def allowed_models(self) -> frozenset[str] | None:
        """The names of the models that are shown; None for all."""
        return _names(self.models)


def _names(given: str | None) -> frozenset[str] | None:
    """The names in a text that has commas between them; None if there is no text."""
    if given is None:
        return None
    return frozenset(name.strip() for name in given.split(",") if name.strip())


def variable(name: str) -> str:
    """The environment variable that sets a field."""
    return f"GPTVIZ_{name.upper()}"


def guests_are(is_guest: Callable[[], bool]) -> None:
    """Say how a server for a class knows whether the visitor whose page runs now comes from another
    machine.
    """
    global _is_guest
    _is_guest = is_guest


def hosting() -> Hosting:
    """The limits of this server for the visitor whose page runs, or who began what runs in another
    thread (see `carry_rights`); a ValueError names the variable whose value makes no sense.
    """
    given = tuple(
        (name, text)
        for name in (limit.name for limit in fields(Hosting))
        if (text := os.environ.get(variable(name)))
    )
    allowed = _hosting(given)
    if (reads_only := _reads_only.get()) is None:
        reads_only = allowed.read_only or (allowed.lan and _is_guest())
    if reads_only is allowed.read_only:
        return allowed
    return replace(allowed, read_only=reads_only)


def carry_rights(act: Callable[[], R], reads_only: bool | None = None) -> Callable[[], R]:
    """`act`, which in any other thread may keep what who asks for it now may keep; or what is said
    here.

    Another thread runs no page, so that nobody could tell whose work it does.
    """
    decided = hosting().read_only if reads_only is None else reads_only

    def act_within() -> R:
        before = _reads_only.set(decided)
        try:
            return act()
        finally:
            _reads_only.reset(before)

    return act_within


def environment() -> dict[str, str]:
    """The environment of a process that does the work of the visitor whose page runs: it keeps
    nothing for one who only reads.
    """
    allowed = hosting()
    own = {
        "lan": "",
        "read_only": "1" if allowed.read_only else "",
        "only": allowed.only or "" if allowed.allowed_pages else "",
    }
    return {**os.environ, **{variable(name): value for name, value in own.items()}}


def _is_guest() -> bool:
    return False  # no page runs until `guests_are` says how to know it


@lru_cache(maxsize=8)
def _hosting(given: tuple[tuple[str, str], ...]) -> Hosting:
    values = {name: _value(name, text) for name, text in given}
    try:
        return Hosting(**values)
    except ValueError as error:
        name, _, rest = str(error).partition(" ")
        raise ValueError(f"{variable(name)} {rest}") from None


def _value(name: str, text: str) -> Any:
    kind = field_info(Hosting, name).kind
    if kind == "text":
        return text
    if kind == "switch":
        known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        return known.get(text.strip().lower(), text)
    try:
        if kind == "whole":
            return int(text)
        return float(text)
    except ValueError:
        return text


def own_address() -> str | None:
    """The address of this machine in its network; None without one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way_out, suppress(OSError):
        # an address of no machine (RFC 5737), so that the usual way out is taken
        way_out.connect(("192.0.2.1", 9))
        return str(way_out.getsockname()[0])
    return None


def require_writable(what: str) -> None:
    """Refuse `what` with a `NotAllowedError` to a visitor who only reads."""
    allowed = hosting()
    if allowed.read_only:
        whose = " of visitors from other machines" if allowed.lan else ""
        set_by = variable("lan" if allowed.lan else "read_only")
        raise NotAllowedError(
            f"{what}: this server shows models and keeps nothing{whose} ({set_by} is set)"
        )


def largest_upload() -> int:
    """The largest file that this server takes, in MB; 0 if it takes none."""
    allowed = hosting()
    if allowed.read_only:
        return 0
    return allowed.uploads


def upload_limit(most: int) -> int | None:
    """The largest upload, in MB, on a page that accepts files of up to `most` MB, or None if
    uploads are not allowed.
    """
    return min(most, largest_upload()) or None
