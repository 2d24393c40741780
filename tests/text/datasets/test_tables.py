"""Tables: cells that a spreadsheet would take for formulas, there and back."""

from __future__ import annotations

import csv
import io

from hypothesis import example, given
from hypothesis import strategies as st

from gptviz.text.datasets.tables import guarded, table_rows, unguarded

WITHOUT_RETURNS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"))
LIKE_FORMULAS = st.from_regex(r"[ \t\r\n']{0,3}[=+@\-]?.{0,5}", fullmatch=True)


@given(st.text() | LIKE_FORMULAS)
def test_no_cell_begins_like_a_formula_and_every_text_comes_back(text: str) -> None:
    cell = guarded(text)
    assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert unguarded(cell) == text
    assert unguarded(unguarded(guarded(guarded(text)))) == text


def test_texts_that_are_no_formulas_are_left_alone() -> None:
    for text in ("", "a=b", "it's", "'tis", "1-1", "⏎", "語", "−1"):
        assert guarded(text) == unguarded(text) == text


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
    csv.writer(written).writerows([guarded(text)] for text in texts)
    read = [cells[0] for _, cells in table_rows(written.getvalue(), ",", "file")]
    assert read == [text if guarded(text) != text else text.strip() for text in texts]
