"""Lists of prompts, most of them in pairs of a clean and a corrupted one, with their answers:
typed, or read from a CSV file.
"""

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from typing import Final

from .tables import SEPARATORS, below_header, guard_cell, table_rows

COLUMNS: Final = ("clean", "corrupted", "right", "wrong")
BAR: Final = "|"


@dataclass(frozen=True)
class PromptRow:
    """A row of a list."""

    clean: str  #: the prompt
    #: a prompt with another answer, with as many tokens; empty if there is none
    corrupted: str = ""
    #: the answer to the prompt, a token as text or as it is shown; empty for the likeliest
    right: str = ""
    #: the answer to the corrupted prompt, or another token to compare with; empty for the likeliest
    wrong: str = ""
    place: str = field(default="", compare=False)  #: the file and the line, for messages


def prompt_rows(content: str, file: str) -> list[PromptRow]:
    """The rows of a list. Either the first line names the columns, as in CSV: clean, and any of the
    others. Or each line has a prompt, the corrupted prompt and both answers in this order, with |
    between them, of which the last ones may be left out. White space around a cell and a byte order
    mark at the beginning do not count. A ValueError names the `file`, the line that cannot be read,
    and what to do.
    """
    content = content.removeprefix("\ufeff")
    first = content.lstrip("\n").partition("\n")[0]
    headers = {
        sign: [cell.strip().strip('"').lower() for cell in first.split(sign)] for sign in SEPARATORS
    }
    separator = next(
        (sign for sign, cells in headers.items() if "clean" in cells and {*cells} <= {*COLUMNS}),
        BAR,
    )
    if first and separator == BAR and BAR not in first and file.lower().endswith((".csv", ".tsv")):
        raise ValueError(
            f"{file}, line 1: name the columns here: clean, and any of {', '.join(COLUMNS[1:])}"
        )
    columns = headers.get(separator, list(COLUMNS))
    rows: list[PromptRow] = []
    lines = table_rows(content, separator, file, quoted=separator != BAR)
    if separator != BAR:
        columns, lines = below_header(lines, file, columns)
    for line, cells in lines:
        place = f"{file}, line {line}"
        if len(cells) > len(columns):
            raise ValueError(
                f"{place}: {len(cells)} columns; there are at most {len(columns)}, "
                f"{', '.join(columns)}"
                + (
                    ""
                    if separator == BAR
                    else f" (put a text that has a {separator!r} in it in quotes)"
                )
            )
        row = PromptRow(**dict(zip(columns, cells, strict=False)) | {"place": place})
        if not row.clean:
            raise ValueError(f"{place}: the prompt is empty: fill it in, or take the line out")
        rows.append(row)
    if not rows:
        raise ValueError(
            f"{file} holds no prompts: write one in each line, as in  prompt | corrupted prompt | "
            "right | wrong"
        )
    return rows


def as_csv(rows: Iterable[PromptRow]) -> str:
    """The rows as CSV, which `prompt_rows` reads."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows([guard_cell(cell) for cell in astuple(row)[: len(COLUMNS)]] for row in rows)
    return written.getvalue()
