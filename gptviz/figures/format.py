"""Probabilities as the interface writes them."""

from __future__ import annotations


def percent(probability: float) -> str:
    """As the interface writes probabilities: three significant digits, below 0.1 % no more than that."""
    if probability < 0.001:
        return "0 %" if probability == 0 else "< 0.1 %"
    digits = 0 if probability >= 0.9995 else 1 if probability >= 0.09995 else 2 if probability >= 0.009995 else 3
    return f"{100 * probability:.{digits}f} %"
