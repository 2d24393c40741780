"""Numbers as the interface writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percent(probability: float) -> str:
    """As the interface writes probabilities: three significant digits, below 0.1 % no more than that."""
    if probability < 0.001:
        return "0 %" if probability == 0 else "< 0.1 %"
    digits = 0 if probability >= 0.9995 else 1 if probability >= 0.09995 else 2 if probability >= 0.009995 else 3
    return f"{100 * probability:.{digits}f} %"


def signed(value: float) -> str:
    """Three significant digits after a sign, as of what is added or taken away."""
    return f"{value:+.3g}".replace("-", "−")


def side_by_side(values: Sequence[float]) -> list[str]:
    """Numbers that a reader compares: each after its sign, all with as many decimals as the largest needs for three digits.

    What is too small for these decimals is "≈ 0", nothing at all "0", and what is no number is empty.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    decimals = min(8, max(0, 2 - math.floor(math.log10(largest)))) if largest else 0

    def written(value: float) -> str:
        if not math.isfinite(value):
            return ""
        if not round(value, decimals):
            return "≈ 0" if value else "0"
        return f"{value:+.{decimals}f}".replace("-", "−")

    return [written(float(value)) for value in values]


def duration(seconds: float | None) -> str:
    """A length of time in the words people use for it; empty where none is known."""
    if not seconds:
        return ""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes >= 48 * 60:
        return f"{minutes / (24 * 60):.0f} days"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
