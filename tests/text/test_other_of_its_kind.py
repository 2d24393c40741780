"""The other word of a kind in a text."""

from __future__ import annotations

import pytest

from gptviz.text.datasets.word_kinds import other_of_its_kind


@pytest.mark.parametrize(
    ("text", "word", "other"),
    [
        ("When Mary and John went to the shop, John gave a book to", "Mary", "John"),
        ("When Mary and John went to the shop, John gave a book to", "John", "Mary"),
        ("From Paris to Rome, from Berlin to", "Paris", "Berlin"),
        ("When Mary went to the shop", "Mary", None),
        ("When Mary and John went", "shop", None),
        ("", "Mary", None),
    ],
)
def test_it_is_the_last_other_word_of_the_kind(text: str, word: str, other: str | None) -> None:
    assert other_of_its_kind(text, word) == other
