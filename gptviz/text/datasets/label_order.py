"""Labels that have an order, such as one to five stars: found by the numbers they begin with."""

import re
from collections.abc import Sequence
from typing import Final

LEAST_ORDERED: Final = 3
"""With two labels every mistake is one label off, so that an order tells nothing more."""

_NUMBER: Final = re.compile(r"[-−+]?\d{1,9}(?:\.\d{1,9})?(?![\w.])")


def label_order(names: Sequence[str]) -> tuple[int, ...] | None:
    """The indices of the labels from the lowest to the highest, by the numbers they begin with
    ("3", "4 stars", "-1").

    None if no order can be found: there are fewer than `LEAST_ORDERED`, one does not begin with a
    number, or two begin with the same number.
    """
    beginnings = filter(None, (_NUMBER.match(name.strip()) for name in names))
    numbers = [float(beginning[0].replace("−", "-")) for beginning in beginnings]
    if len(names) < LEAST_ORDERED or len(set(numbers)) < len(names):
        return None
    return tuple(sorted(range(len(names)), key=lambda i: numbers[i]))
