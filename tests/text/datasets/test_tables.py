"""Tables: cells that a spreadsheet would take for formulas, there and back."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gptviz.text.datasets.labelled_texts import labelled_of, texts_of
from gptviz.text.datasets.pairs import pairs_of
from gptviz.text.datasets.prompt_pairs import prompt_rows
from gptviz.text.datasets.tables import guard_cell, table_rows, unguard_cell

WITHOUT_RETURNS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"))
LIKE_FORMULAS = st.from_regex(r"[ \t\r\n']{0,3}[=+@\-]?.{0,5}", fullmatch=True)


@given(st.text() | LIKE_FORMULAS)
def test_no_cell_begins_like_a_formula_and_every_text_comes_back(text: str) -> None:
    cell = guard_cell(text)
    assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert unguard_cell(cell) == text
    assert unguard_cell(unguard_cell(guard_cell(guard_cell(text)))) == text


def test_texts_that_are_no_formulas_are_left_alone() -> None:
    for text in ("", "a=b", "it's", "'tis", "1-1", "⏎", "語", "−1"):
        assert guard_cell(text) == unguard_cell(text) == text


@given(
    st.lists(
        (st.text(st.characters(codec="utf-8", exclude_characters="\r\x00")) | LIKE_FORMULAS).filter(
            str.strip
        ),
        min_size=1,
    )
)
@example(["=1+1", "'=1+1", " '-", "\t@x", "-5"])
def test_a_table_that_is_read_has_the_texts_that_were_written(texts: list[str]) -> None:
    texts = [text.replace("\r", "").rstrip() or "x" for text in texts]
    written = io.StringIO(newline="")
    csv.writer(written).writerows([guard_cell(text)] for text in texts)
    read = [cells[0] for _, cells in table_rows(written.getvalue(), ",", "file")]
    assert read == [text if guard_cell(text) != text else text.strip() for text in texts]


# All that reads a table whose first line names its columns.
READERS: dict[str, Callable[[str], object]] = {
    "text,label": lambda content: labelled_of(content.encode(), "file"),
    "text": lambda content: texts_of(content.encode(), "file"),
    "source,target": lambda content: pairs_of(content.encode(), "file"),
    "clean,corrupted": lambda content: prompt_rows(content, "file"),
}


@pytest.mark.parametrize("header", READERS)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("again", [str, str.title, "  {}  ".format, '"{}"'.format])
def test_the_names_of_the_columns_are_no_row_further_down(
    header: str, separator: str, again: Callable[[str], str]
) -> None:
    if separator == "\t" and header == "source,target":
        again = str.title  # between tabs a quotation mark is a character like any other
    names = header.split(",")
    rows = [[f"{name} {number}" for name in names] for number in range(3)]
    repeated = [again(name) for name in names]
    lines = [separator.join(cells) for cells in (names, *rows, repeated, *rows)]
    with pytest.raises(ValueError, match="file.*, line 5: it names the columns again"):
        READERS[header]("\n".join(lines))
    del lines[4]
    READERS[header]("\n".join(lines))


# A list of pairs always has two columns, which are told by their places.
@pytest.mark.parametrize("header", [header for header in READERS if header != "source,target"])
def test_two_columns_of_one_name_are_refused(header: str) -> None:
    first, *others = header.split(",")
    names = [first, *others, first.upper()]
    rows = [[f"{number} {name}" for name in names] for number in range(3)]
    with pytest.raises(ValueError, match=f"line 1: two columns are called '{first}': rename one"):
        READERS[header]("\n".join(map(",".join, [names, *rows])))
