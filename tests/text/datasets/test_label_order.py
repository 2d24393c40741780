"""Which labels have an order."""

from __future__ import annotations

import pytest

from gptviz.text import label_order


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (("1", "2", "3", "4", "5"), (0, 1, 2, 3, 4)),
        (("10 stars", "2 stars", "9.5 stars"), (1, 2, 0)),
        (("0", "1", "-1", "−2"), (3, 2, 0, 1)),
        (("1 star", "2 stars", "3"), (0, 1, 2)),
        (("negative", "neutral", "positive"), None),
        (("1", "2", "many"), None),
        (("1 good", "1 bad", "2"), None),  # which of the first two is lower?
        (("1", "1.0", "2"), None),
        (("1", "2"), None),  # every mistake is one off
        (("3rd", "2nd", "1st"), None),  # names, not amounts
        (("1.2.3", "1.2.4", "2"), None),
    ],
)
def test_labels_that_begin_with_different_numbers_have_their_order(names: tuple[str, ...], order: tuple[int, ...] | None) -> None:
    assert label_order(names) == order
