"""Tables of texts: the rows of a CSV file, the separator of their cells, and cells that
spreadsheets would take for formulas.
"""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

Row = TypeVar("Row")

SEPARATORS: Final = ",;\t"
_FORMULA: Final = re.compile(r"[\s']*[=+\-@\t\r\n]")


@dataclass(frozen=True)
class SeparatedTable(Generic[Row]):
    """A table as one separator divides it."""

    rows: list[Row]  #: those before the first that cannot be read
    problem: ValueError | None  #: the error in that row, or None if all can be read


def guard_cell(text: str) -> str:
    """A text as a cell of CSV: one that begins like a formula (=, +, -, @, tab or newline) gets an
    apostrophe before it.

    Otherwise a spreadsheet computes it, which may fetch an address or start a program. White space
    and apostrophes before the sign do not count, so that `unguard_cell` returns every text.
    """
    if _FORMULA.match(text):
        return f"'{text}"
    return text


def unguard_cell(cell: str) -> str:
    """The text from which `guard_cell` made this cell."""
    if cell.startswith("'") and _FORMULA.match(cell):
        return cell[1:]
    return cell


def readings(
    content: str,
    file: str,
    row_of: Callable[[list[str], str], Row],
    *,
    separators: str = SEPARATORS,
    quoted: str = SEPARATORS,
    most: int | None = None,
) -> dict[str, SeparatedTable[Row]]:
    """The table as each of the `separators` divides it.

    Args:
        file: the name of the table in messages.
        row_of: makes a row from its cells and the place where it stands, for messages; a
            `ValueError` ends the reading.
        quoted: the separators that quotation marks can protect; with others a quotation mark is a
            character like any other.
        most: at most this number of rows is read.
    """
    tables: dict[str, SeparatedTable[Row]] = {}
    for separator in separators:
        rows: list[Row] = []
        problem = None
        try:
            for line, cells in islice(
                table_rows(content, separator, file, separator in quoted), most
            ):
                rows.append(row_of(cells, f"{file}, line {line}"))
        except ValueError as error:
            problem = error
        tables[separator] = SeparatedTable(rows, problem)
    return tables


def below_header(
    rows: Iterator[tuple[int, list[str]]], file: str, read: Collection[str]
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The names of the columns in the first of these `rows` of a table, in small letters, and the
    rows below it. A ValueError if two columns that are `read` have one name, or if the names stand
    there again, as in files that were put together.
    """
    line, header = next(rows)
    names = [cell.lower() for cell in header]
    for name in read:
        if names.count(name) > 1:
            raise ValueError(
                f"{file}, line {line}: two columns are called {name!r:.80}: rename one of them"
            )

    def rows_below() -> Iterator[tuple[int, list[str]]]:
        for line, cells in rows:
            if [cell.lower() for cell in cells] == names:
                raise ValueError(
                    f"{file}, line {line}: it names the columns again, as the first line does: "
                    "take it out"
                )
            yield line, cells

    return names, rows_below()


def table_rows(
    content: str, separator: str, file: str, quoted: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank: the line each ends in, counted from 1, and its cells without
    white space around them.

    If `quoted`, a cell in quotation marks may contain separators, and an apostrophe may guard it
    (see `guard_cell`); else both are characters like any other. A ValueError names the `file`, the
    line that cannot be read, and what to do.
    """
    lines = io.StringIO(content, newline="")
    reader = csv.reader(
        lines,
        delimiter=separator,
        strict=quoted,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
    )
    try:
        for row in reader:
            cells = [unguard_cell(cell.strip()) if quoted else cell.strip() for cell in row]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        line = f"{file}, line {reader.line_num}"
        if "field limit" in str(error):
            long = f"{line}: a text is longer than {csv.field_size_limit():,} characters"
            raise ValueError(
                f"{long}: shorten it, or close its quotation mark if it has one"
            ) from None
        raise ValueError(
            f"{line}: {error}: close every quotation mark, double those within"
        ) from None
