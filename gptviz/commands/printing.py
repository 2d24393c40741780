"""What a command prints: JSON, or sentences and tables that fit the terminal."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Table(NamedTuple):
    """Rows of texts below the names of their columns; without names a list, the last column of
    which may have several lines.
    """

    rows: Iterable[Sequence[str]]
    names: Sequence[str] = ()


Lines = list[str | Table]


class CommandOutput(NamedTuple):
    """What a command says."""

    content: Any  #: for --json
    lines: Lines  #: for a reader: sentences and tables


def show(shown: CommandOutput, *, as_json: bool) -> None:
    """Print it, as JSON or for a reader."""
    if as_json:
        print_json(shown.content)
        return
    for line in shown.lines:
        if isinstance(line, str):
            print_folded(line)
        elif line.names:
            print_table(line.names, list(line.rows))
        else:
            print_listed(list(line.rows))


def _room() -> int:
    """The characters of a line: of the terminal, or COLUMNS. There is no limit for a file or
    another program.
    """
    return shutil.get_terminal_size(fallback=(sys.maxsize, 1)).columns


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of texts below the names of their columns; the first column names the rows.

    A table wider than the terminal goes on below itself with its other columns: no number is cut.
    """
    room = _room()
    widths = [max(len(row[column]) for row in (names, *rows)) for column in range(len(names))]
    left = list(range(1, len(names)))
    while left:
        taken = 1
        while (
            taken < len(left)
            and widths[0] + sum(2 + widths[column] for column in left[: taken + 1]) <= room
        ):
            taken += 1
        for row in (names, *rows):
            print(
                f"{row[0]:<{widths[0]}}",
                *(f"{row[column]:>{widths[column]}}" for column in left[:taken]),
                sep="  ",
            )
        left = left[taken:]
        if left:
            print()


def print_folded(text: str, indent: int = 0) -> None:
    """Print a line of words; one longer than the terminal goes on below, `indent` characters from
    the left if there is room.
    """
    room = max(_room(), 24)
    lines = textwrap.wrap(
        text,
        room,
        subsequent_indent=" " * (indent if 2 * indent <= room else 4),
        break_on_hyphens=False,
        break_long_words=False,
    )
    print("\n".join(lines))


def print_listed(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of texts without names for their columns; one longer than the terminal goes on
    below its last column.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *left, last in rows:
        before = "".join(f"{cell:<{width}}  " for cell, width in zip(left, widths, strict=False))
        print_folded(f"{before}{last}", indent=len(before))


def print_json(content: Any) -> None:
    """Print what `as_json` makes of it."""
    from gptviz.labelled_array import as_json

    print(json.dumps(without_nan(as_json(content)), allow_nan=False))


def without_nan(content: Any) -> Any:
    """The same with null for every number that JSON has no word for: NaN and the infinities."""
    if isinstance(content, dict):
        return {key: without_nan(value) for key, value in content.items()}
    if isinstance(content, list):
        return [without_nan(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content
