"""Lists of prompts as people type them, and as CSV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.text.datasets.prompt_pairs import PromptRow, as_csv, prompt_rows

CELL = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12).map(str.strip)


def test_typed_lines_have_their_cells_in_order_and_the_last_ones_may_be_missing() -> None:
    typed = "When Mary, and John | When Mary, and Jim | Mary | John\n\nA prompt, alone\nclean|other"
    assert prompt_rows(typed, "list") == [
        PromptRow("When Mary, and John", "When Mary, and Jim", "Mary", "John"),
        PromptRow("A prompt, alone"),
        PromptRow("clean", "other"),
    ]
    assert [row.place for row in prompt_rows(typed, "list")] == [
        "list, line 1",
        "list, line 3",
        "list, line 4",
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_first_line_names_the_columns_in_any_order(separator: str) -> None:
    content = "\n".join(
        separator.join(cells) for cells in (("Right", "clean"), ("b", '"a, a; a"'), ("c", "d"))
    )
    assert prompt_rows(content, "list") == [
        PromptRow("a, a; a", right="b"),
        PromptRow("d", right="c"),
    ]


@given(st.lists(st.builds(PromptRow, CELL.filter(bool), CELL, CELL, CELL), min_size=1, max_size=5))
def test_what_is_written_as_csv_is_read_again(rows: list[PromptRow]) -> None:
    assert (
        prompt_rows(as_csv(rows), "list")
        == prompt_rows(f"\ufeff{as_csv(rows)}", "saved by Excel")
        == rows
    )


@pytest.mark.parametrize("first", ["prompt,corrupted,answer", "a cab,a cad,b", "clean,other"])
def test_a_csv_file_that_does_not_name_its_columns_is_refused_and_its_lines_are_no_prompts(
    first: str,
) -> None:
    with pytest.raises(
        ValueError,
        match="pairs.csv, line 1: name the columns here: clean, and any of corrupted, right, wrong",
    ):
        prompt_rows(f"{first}\n1,2,3\n", "pairs.csv")
    assert prompt_rows("a cab | a cad\n", "pairs.csv") == [PromptRow("a cab", "a cad")]
