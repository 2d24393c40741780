"""Names and notes of the reader's own on the units of a model, kept on this machine: those of the
user's own model in its folder, where they move with it; those of a model that ships in the user's
folder.

A file of them is replaced as a whole. One that cannot be read is never replaced: the message names
it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from gptviz.machine.bounded import SURROGATE, parse_json, read_regular
from gptviz.machine.errors import reason_of
from gptviz.machine.files import PATIENCE, home, in_place_of, kept_until_written
from gptviz.machine.hosting import require_writable

from .checkpoints import NOTES
from .manage import is_own

LONGEST_NAME: Final = 60
LONGEST_NOTE: Final = 4_000
# The most units of a model that have a name or a note, and the most bytes that are read of them.
MOST_UNITS: Final = 1_000
MOST_BYTES: Final = 32 * 2**20
# How many files stay in memory while they are the same.
MOST_OPEN = 64


class NotesError(ValueError):
    """Names and notes that cannot be read or kept; the message says which file, and what to do."""


@dataclass(frozen=True)
class Note:
    """What the reader calls a unit, and what they wrote about it."""

    name: str = ""  #: one line of at most 60 characters; empty without a name
    note: str = ""  #: of at most 4,000 characters; empty without a note


def clean_name(text: str) -> str:
    """A name in one line, without characters that cannot be seen; a NotesError if it is too
    long.
    """
    name = "".join(sign for sign in " ".join(text.split()) if sign.isprintable())
    return _checked(name, LONGEST_NAME, "a name")


def clean_note(text: str) -> str:
    """A note without space around it; a NotesError if it is too long."""
    return _checked(SURROGATE.sub("\ufffd", text).strip(), LONGEST_NOTE, "a note")


def _checked(text: str, longest: int, what: str) -> str:
    if len(text) > longest:
        raise NotesError(f"{what} has at most {longest:,} characters, and this one {len(text):,}")
    return text


def read_notes(folder: Path) -> Mapping[str, Note]:
    """The names and notes on the units of the model in `folder`, by the name of the unit; a
    NotesError if their file is damaged.
    """
    return _read_file(_file_of(folder))


def write_note(
    folder: Path, unit: str, *, name: str | None = None, note: str | None = None
) -> Note:
    """Keep a name, a note or both of a unit of the model in `folder`, given by its name; None
    leaves one as it is, an empty text takes it away.

    Returns:
        What is kept of the unit now.

    Raises:
        NotesError: a text is too long, there are too many, or their file is damaged.
        NotAllowedError: who writes only reads.
        OSError: the file cannot be written.
    """
    require_writable(f"the note on {unit} is not kept")
    path = _file_of(folder)
    lock = home() / "notes" / "notes.lock"
    for each in (lock.parent, path.parent):
        each.mkdir(parents=True, exist_ok=True)
    # another session may write to the same file
    with FileLock(lock, timeout=PATIENCE):
        every = dict(_read_file(path))
        before = every.pop(unit, Note())
        after = Note(
            before.name if name is None else clean_name(name),
            before.note if note is None else clean_note(note),
        )
        if after != Note():
            every[unit] = after
        if len(every) > MOST_UNITS:
            raise NotesError(
                f"{MOST_UNITS:,} units of {folder.name} have a name or a note, and that is the "
                "most: "
                "take one away first"
            )
        content = {each: asdict(one) for each, one in sorted(every.items())}
        with in_place_of(path) as fresh:
            fresh.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    return after


def _file_of(folder: Path) -> Path:
    if is_own(folder):
        return folder / NOTES
    return home() / "notes" / f"{folder.name}.json"


# Every title on a page asks for them.
@kept_until_written("", most=MOST_OPEN)
def _read_file(path: Path) -> Mapping[str, Note]:
    try:
        content = parse_json(read_regular(path, MOST_BYTES), 8 * MOST_UNITS * LONGEST_NOTE)
        return _notes_in(content)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise NotesError(
            f"the names and notes in {path} cannot be read ({reason_of(error)}), and nothing is "
            "written there: repair the file, or move it to another place"
        ) from None


def _notes_in(content: Any) -> dict[str, Note]:
    if not isinstance(content, dict) or len(content) > MOST_UNITS:
        raise ValueError(f"it is no list of at most {MOST_UNITS:,} units")
    found = {}
    for unit, about in content.items():
        match about:
            case {"name": str(name), "note": str(note)}:
                found[unit] = Note(clean_name(name), clean_note(note))
            case _:
                raise ValueError(f"it says of {unit!r:.60} neither name nor note")
    return found
