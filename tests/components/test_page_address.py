"""What tells the page's address: what it is believed. That it tells it is tested with Share, in a browser."""

from __future__ import annotations

import pytest

from gptviz.components.page_address import LONGEST, told


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"query": "model=bpe&head=2"}', "model=bpe&head=2"),
        ({"query": ""}, ""),
        ({"query": 2}, None),
        ({"query": "x" * (LONGEST + 1)}, None),
    ],
)
def test_only_a_text_of_some_length_is_believed(value: object, expected: str | None) -> None:
    assert told(value) == expected
