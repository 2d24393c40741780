"""Tables of texts: the rows of a CSV file, one after the other, and what is wrong with it said in a sentence."""

import csv
import io
from collections.abc import Iterator


def table_rows(content: str, delimiter: str, file: str, quoted: bool = True) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank: the line each ends in, counted from 1, and its cells without white space around them.

    Without `quoted` a quotation mark is a character like any other. Raises `ValueError` where the table cannot be read,
    which names `file` (what the reader knows it by), the line and what to do.
    """
    lines = io.StringIO(content, newline="")
    if quoted:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
    else:
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        line = f"{file}, line {reader.line_num}"
        if "field limit" in str(error):
            most = csv.field_size_limit()
            long = f"{line}: a text is longer than {most:,} characters"
            raise ValueError(f"{long}: shorten it, or close its quotation mark if it has one") from None
        raise ValueError(f"{line}: {error}: close every quotation mark, double those within") from None
