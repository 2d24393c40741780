"""The button that tells what the address says: what it is believed. That it tells it is tested with the lessons, in a browser."""

from __future__ import annotations

import pytest

from gptviz.components.address_button import LONGEST, told


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"block": "1", "head": "2"}', {"block": "1", "head": "2"}),
        ({"head": "2", "other": "3"}, {"head": "2"}),
        ("{}", {}),
        ('{"head": 2}', None),
        ({"head": "x" * (LONGEST + 1)}, None),
    ],
)
def test_only_texts_for_the_names_that_were_asked_for_are_believed(value: object, expected: dict[str, str] | None) -> None:
    assert told(value, ("block", "head")) == expected
