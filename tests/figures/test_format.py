"""Probabilities and lengths of time as the interface writes them."""

from __future__ import annotations

import pytest

from gptviz.figures.format import duration, percent, side_by_side


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        (1.0, "100 %"),
        (0.99999, "100 %"),
        (0.8467, "84.7 %"),
        (0.09999, "10.0 %"),
        (0.0999, "9.99 %"),
        (0.04321, "4.32 %"),
        (0.00999, "0.999 %"),
        (0.001, "0.100 %"),
        (0.00099, "< 0.1 %"),
        (1e-30, "< 0.1 %"),
        (0.0, "0 %"),
    ],
)
def test_percent_has_three_digits_down_to_a_tenth(probability: float, text: str) -> None:
    assert percent(probability) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (22, "22 s"),
        (59.6, "1 min"),
        (3_540, "59 min"),
        (5_220, "1 h 27 min"),
        (172_000, "47 h 47 min"),
        (1e6, "12 days"),
    ],
)
def test_a_length_of_time_is_in_the_words_people_use(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


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
def test_numbers_side_by_side_have_the_decimals_of_the_largest(values: list[float], texts: list[str]) -> None:
    assert side_by_side(values) == texts
