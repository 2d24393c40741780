"""Axes: what they write at their ticks, where rows and cells lie, and names that categories can have."""

from __future__ import annotations

import pytest

from gptviz.figures.kit.axes import axis, distinct, rows, span


def written(value: float, form: str) -> str:
    """A number as d3 writes it in the format "d" or "~f": https://d3js.org/d3-format."""
    return str(round(value)) if form == "d" else f"{value:.6f}".rstrip("0").rstrip(".")


@pytest.mark.parametrize(("value", "text"), [(0.5, "0.5"), (2.25, "2.25"), (3, "3"), (12_000, "12000"), (0, "0")])
def test_an_axis_writes_the_numbers_at_its_ticks_as_they_are(value: float, text: str) -> None:
    form = axis("tokens")["tickformat"]
    assert form in ("d", "~f")  # what `written` knows
    assert written(value, form) == text


@pytest.mark.parametrize("down", [False, True])
def test_the_middle_of_every_cell_and_nothing_else_lies_within_its_span(down: bool) -> None:
    low, high = sorted(span(4, down=down)["range"])
    assert [place for place in range(-3, 9) if low < place < high] == [0, 1, 2, 3]
    assert (span(4, down=down)["range"][0] > 0) == down


def test_the_first_row_is_at_the_top_and_each_has_its_name() -> None:
    look = rows(["one", "two"])
    assert dict(zip(look["tickvals"], look["ticktext"], strict=True)) == {0: "one", 1: "two"}
    assert look["range"][0] > look["range"][1]  # plotly draws the end of the range at the top


def test_categories_differ_and_are_read_as_they_were() -> None:
    names = ["a", "b", "a", "a", ""]
    made = distinct(names)
    assert len(set(made)) == len(names)
    assert [name.replace("\u200b", "") for name in made] == names
