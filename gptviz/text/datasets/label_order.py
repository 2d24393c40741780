"""Labels that have an order, such as one to five stars: found by the numbers they begin with."""

import re
from collections.abc import Sequence
from typing import Final

LEAST_ORDERED: Final = 3
"""With two labels every mistake is one label off, so that an order tells nothing more."""

_NUMBER: Final = re.compile(r"[-−+]?\d{1,9}(?:\.\d{1,9})?(?![\w.])")


def number_of(label: str) -> float | None:
    """The number that a label begins with ("3", "4 stars", "-1"), or None if it begins with none."""
    found = _NUMBER.match(label.strip())
    return float(found[0].replace("−", "-")) if found else None


def label_order(names: Sequence[str]) -> tuple[int, ...] | None:
    """The indices of the labels from the lowest to the highest.

    None if no order can be found: there are fewer than `LEAST_ORDERED`, one does not begin with a number, or two begin with the
    same number.
    """
    numbers = [number_of(name) for name in names]
    found = [number for number in numbers if number is not None]
    if len(names) < LEAST_ORDERED or len(set(found)) < len(names):
        return None
    return tuple(sorted(range(len(names)), key=lambda i: found[i]))
