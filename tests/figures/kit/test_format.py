"""Probabilities and lengths of time as the interface writes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from gptviz.figures.kit.format import (
    brief,
    change_in_words,
    duration,
    format_count,
    format_fixed,
    format_small,
    in_words,
    join_words,
    moment,
    percent,
    power,
    side_by_side,
)

# What each of them writes of a number.
WRITTEN: dict[Callable[[Any], str], dict[float | None, str]] = {
    # three digits, down to a tenth of a percent
    percent: {
        1.0: "100 %",
        0.99999: "100 %",
        0.8467: "84.7 %",
        0.09999: "10.0 %",
        0.0999: "9.99 %",
        0.04321: "4.32 %",
        0.00999: "0.999 %",
        0.001: "0.100 %",
        0.00099: "< 0.1 %",
        1e-30: "< 0.1 %",
        0.0: "0 %",
    },
    # in the words that people use
    duration: {
        None: "",
        0.0: "",
        3.4: "3 s",
        22: "22 s",
        59.6: "1 min",
        61: "1 min",
        3_540: "59 min",
        3_599: "1 h 0 min",
        5_220: "1 h 27 min",
        172_000: "47 h 47 min",
        1e6: "12 days",
    },
    # a real minus, and no e
    brief: {
        3.14159: "3.14",
        -0.3291: "−0.329",
        0.0: "0",
        0.00081: "0.00081",
        4e-8: "4.0 · 10⁻⁸",
        -1234.0: "−1\u202f234",
        math.nan: "no number",
        -math.inf: "−∞",
    },
    # a power of ten where it is far from one
    power: {
        0.0: "0",
        1.0: "1",
        0.05123: "0.0512",
        9.96e-4: "1.0 · 10⁻³",
        1234.5: "1\u202f234",
        2.3e7: "2.3 · 10⁷",
        1e-54: "1.0 · 10⁻⁵⁴",
        math.inf: "more than any number",
    },
    # in the unit that suits it
    moment: {7910.0: "7,910 s", 7.91: "7.91 s", 0.00325: "3.25 ms", 2.64e-5: "26.4 µs"},
    in_words: {12_800_000: "12.8 million", 80.2e9: "80.2 billion", 97.0: "97"},
    # no sign where it is rounded to nothing
    format_fixed: {-0.001: "0.00", 0.001: "0.00", -0.234: "−0.23", 1.0: "1.00"},
}


@pytest.mark.parametrize(
    ("write", "number", "text"),
    [(write, *one) for write, texts in WRITTEN.items() for one in texts.items()],
)
def test_a_number_is_written_as_people_read_it(
    write: Callable[[Any], str], number: float | None, text: str
) -> None:
    assert write(number) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.5, -3, 0.004, 0], ["+0.50", "−3.00", "≈ 0", "0"]),
        ([0.0312, -0.0004, 1e-9], ["+0.0312", "−0.0004", "≈ 0"]),
        ([1234.5, -0.2], ["+1234", "≈ 0"]),
        ([float("nan"), 2], ["", "+2.00"]),
        ([0.0, 0.0], ["0", "0"]),
        ([], []),
    ],
)
def test_numbers_side_by_side_have_the_decimals_of_the_largest(
    values: list[float], texts: list[str]
) -> None:
    assert side_by_side(values) == texts


def test_one_thing_is_one_thing() -> None:
    assert [format_count(n, "box", "boxes") for n in (0, 1, 1_000)] == [
        "0 boxes",
        "1 box",
        "1,000 boxes",
    ]
    assert format_count(2, "block") == "2 blocks"


def test_what_looks_the_same_before_and_after_stays() -> None:
    assert change_in_words(0.999_99, 0.999_98) == "stays at 100 %"
    assert change_in_words(0.2, 0.1) == "falls from 20.0 % to 10.0 %"
    assert change_in_words(0.1, 0.2) == "rises from 10.0 % to 20.0 %"


def test_what_would_be_rounded_to_nothing_is_a_power_of_ten() -> None:
    assert [format_small(value, 4) for value in (0.0, 7.05e-8, 0.00006, 1.75)] == [
        "0.0000",
        "7.1 · 10⁻⁸",
        "0.0001",
        "1.7500",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")],
)
def test_words_are_joined_as_in_a_sentence(words: list[str], said: str) -> None:
    assert join_words(words) == said
