"""Axes: what is written at their ticks on any scale, where rows and cells lie, and names of
categories and special tokens.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.figures.kit import axes
from gptviz.figures.kit.axes import axis, distinct_names, log_ticks, rows, span
from gptviz.labelled_array import Axis
from gptviz.text import CharTokenizer
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer


def written(value: float, form: str) -> str:
    """A number as d3 writes it in the format "d" or "~f": https://d3js.org/d3-format."""
    return str(round(value)) if form == "d" else f"{value:.6f}".rstrip("0").rstrip(".")


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.5"), (2.25, "2.25"), (3, "3"), (12_000, "12000"), (0, "0")]
)
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
    made = distinct_names(names)
    assert len(set(made)) == len(names)
    assert [name.replace("\u200b", "") for name in made] == names


@given(st.floats(1e-6, 1e6), st.floats(1.002, 1e9))
def test_every_axis_has_some_ticks_within_it_and_not_too_many(low: float, ratio: float) -> None:
    ticks = log_ticks(low, low * ratio)
    assert 2 <= len(ticks) <= 8
    assert ticks == sorted(set(ticks))
    assert low * (1 - 1e-9) <= ticks[0]
    assert ticks[-1] <= low * ratio * (1 + 1e-9)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.25, 1.25, [0.4, 0.6, 0.8, 1.0, 1.2]),
        (0.13, 1.25, [0.2, 0.5, 1]),
        (0.1, 3.0, [0.1, 0.2, 0.5, 1, 2]),
        (0.02, 30.0, [0.1, 1, 10]),
        (1e-6, 100.0, [1e-6, 1e-4, 1e-2, 1, 100]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    ticks = log_ticks(low, high)
    assert len(ticks) == len(expected)
    assert all(math.isclose(tick, other) for tick, other in zip(ticks, expected, strict=True))


TOKENIZER = SpecialTokensTokenizer(CharTokenizer("abc"))
START, END = (TOKENIZER.label(i) for i in (TOKENIZER.start, TOKENIZER.end))


def tokens(labels: tuple[str, ...]) -> Axis:
    return Axis("key", labels)


@pytest.mark.parametrize("n_letters", [3, 38])
def test_a_mark_takes_no_token_its_label_and_the_pointer_names_it_in_full(n_letters: int) -> None:
    labels = (START, *("abc" * n_letters)[:n_letters], END)
    shown = [
        text.replace("<br>", "").strip("\u2068\u2069\u00a0")
        for text in axes.token_axis(tokens(labels))["ticktext"]
    ]
    assert shown == ["⟨", *labels[1:-1], "⟩"]
    names = axes.token_names(tokens(labels))
    assert START in names[0]
    assert END in names[-1]
    assert axes.token_room(tokens(labels)) == axes.token_room(tokens(("a", *labels[1:-1], "c")))


def test_beside_long_tokens_a_mark_is_short_too() -> None:
    names = axes.token_names(tokens(("seven", "12", END)))
    assert [name.split()[1].strip("\u2068\u2069") for name in names] == ["seven", "12", "⟩"]
