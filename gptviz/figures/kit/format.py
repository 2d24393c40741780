"""Numbers as the interface writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percent(probability: float) -> str:
    """As the interface writes probabilities: three significant digits, below 0.1 % no more than
    that.
    """
    if probability < 0.001:
        if probability == 0:
            return "0 %"
        return "< 0.1 %"
    if probability >= 0.9995:
        digits = 0
    elif probability >= 0.09995:
        digits = 1
    elif probability >= 0.009995:
        digits = 2
    else:
        digits = 3
    return f"{100 * probability:.{digits}f} %"


def change_in_words(before: float, after: float) -> str:
    """How a probability changes, as far as `percent` shows it: "falls from 20.2 % to 0.374 %",
    "stays at 100 %".
    """
    if percent(before) == percent(after):
        return f"stays at {percent(before)}"
    return f"{'falls' if after < before else 'rises'} from {percent(before)} to {percent(after)}"


def format_signed(value: float, places: int | None = None) -> str:
    """Three significant digits, or `places` decimals, after a sign, as of what is added or taken
    away.
    """
    if places is None:
        return _not_finite(value) or ("−" if value < 0 else "+") + brief(abs(value))
    return _not_finite(value) or format(value, f"+.{places}f").replace("-", "−")


def join_words(words: Sequence[str]) -> str:
    """The words as they stand in a sentence: "a", "a and b", "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def format_ordinal(number: int) -> str:
    """A place in an order: "1st", "2nd", "3rd", "4th", "11th", "22nd"."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    is_teen = number // 10 % 10 == 1
    return f"{number:,}{'th' if is_teen else ends.get(number % 10, 'th')}"


def format_count(number: int, name: str, several: str = "") -> str:
    """A number of things: "1 block", "2 blocks"; `several` is what more of them are called where an
    s is not enough.
    """
    return f"{number:,} {name if number == 1 else several or name + 's'}"


def power(number: float) -> str:
    """A size as a person writes it: 0.0512, 1 300, 9.5 · 10⁻⁵⁴."""
    if math.isnan(number):
        return "no number, it overflows"
    if math.isinf(number):
        return "more than any number"
    if number == 0 or 1e-3 <= number < 1e4:
        if number < 1e3:
            return f"{number:.3g}"
        return f"{number:,.0f}".replace(",", "\u202f")
    digits, exponent = f"{number:.1e}".split("e")
    return (
        f"{digits} · 10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    )


def brief(number: float, digits: int = 3) -> str:
    """A number with this many significant digits, a real minus, and never as 1e-05."""
    text = f"{abs(number):.{digits}g}"
    return _not_finite(number) or ("−" if number < 0 else "") + (
        power(abs(number)) if "e" in text else text
    )


def format_fixed(number: float, places: int = 2) -> str:
    """A number with this many decimal places and a real minus; what is rounded to nothing has no
    sign.
    """
    return f"{round(number, places) + 0.0:.{places}f}".replace("-", "−")


def format_small(number: float, places: int) -> str:
    """A number from 0 on with this many decimal places; what they would show as 0 is a power of
    ten: 7.0 · 10⁻⁸.
    """
    if 0 < number < 0.5 * 10**-places:
        return power(number)
    return format_fixed(number, places)


def _not_finite(number: float) -> str:
    """The sign for a number that is not finite or is too large; empty for all others."""
    if math.isnan(number):
        return "no number"
    if math.isfinite(number):
        return ""
    if number > 0:
        return "∞"
    return "−∞"


def side_by_side(values: Sequence[float]) -> list[str]:
    """Numbers that a reader compares: each after its sign, all with as many decimals as the largest
    needs for three digits.

    What is too small for these decimals is "≈ 0", nothing at all "0", and what is no number is
    empty.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest:
        decimals = min(8, max(0, 2 - math.floor(math.log10(largest))))
    else:
        decimals = 0

    def format_value(value: float) -> str:
        if not math.isfinite(value):
            return ""
        if not round(value, decimals):
            if value:
                return "≈ 0"
            return "0"
        return f"{value:+.{decimals}f}".replace("-", "−")

    return [format_value(float(value)) for value in values]


def in_words(count: float) -> str:
    """A large number: "12.8 million"."""
    for word, scale in (
        ("quadrillion", 1e15),
        ("trillion", 1e12),
        ("billion", 1e9),
        ("million", 1e6),
    ):
        if count >= scale:
            return f"{count / scale:.3g} {word}"
    return f"{count:,.0f}"


def moment(seconds: float) -> str:
    """A time that a machine takes for one thing: "7.91 s", "3.25 ms", "26.4 µs"."""
    if seconds >= 1:
        if seconds < 1_000:
            return f"{seconds:,.3g} s"
        return f"{seconds:,.0f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} µs"


def duration(seconds: float | None) -> str:
    """A length of time in the words people use for it; empty if none is known."""
    if not seconds:
        return ""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes >= 48 * 60:
        return f"{minutes / (24 * 60):.0f} days"
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
