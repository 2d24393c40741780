"""A word is replaced by one of its kind: the text stays one that people could write."""

import re

import pytest

from gptviz.text.datasets.sentences import _COLOURS, _NAMES
from gptviz.text.datasets.word_kinds import KINDS, other_of_its_kind, with_another_word


def changed_words(text: str, other: str) -> list[tuple[str, str]]:
    """The words that differ, before and after; both texts have as many words, and the same
    characters between them.
    """
    assert re.split(r"\w+", text) == re.split(r"\w+", other)
    both = zip(re.findall(r"\w+", text), re.findall(r"\w+", other), strict=True)
    return [(one, another) for one, another in both if one != another]


@pytest.mark.parametrize(
    "text",
    [
        "When Mary and John went to the shop, John gave a book to",
        "The capital of France is Paris. The capital of Germany is",
        "Is 2+3 “red”? He, Tom, says: two dogs and 3 cats\n",
    ],
)
def test_one_word_is_replaced_by_another_of_its_kind_and_nothing_else_changes(text: str) -> None:
    found = with_another_word(text)
    assert len(found) == len(set(found)) > 0
    for other in found:
        ((one, another),) = changed_words(text, other)
        assert any(one in kind and another in kind for kind in KINDS)


def test_nobody_meets_himself_but_a_name_that_came_before_may_be_that_of_another() -> None:
    found = with_another_word("When Mary and John went to the shop, John gave a book to")
    assert found[0] == "When Mary and John went to the shop, Mary gave a book to"
    assert not [text for text in found if re.search(r"(\w+) and \1 ", text)]


def test_a_text_without_a_word_of_a_known_kind_is_left_alone() -> None:
    assert with_another_word("What is the meaning of it?") == with_another_word("") == []


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


@pytest.mark.parametrize("words", [_NAMES, _COLOURS])
def test_the_words_of_the_task_sentences_are_of_one_kind(words: tuple[str, ...]) -> None:
    assert any({*words} <= {*kind} for kind in KINDS)
    for word in words:
        assert other_of_its_kind(f"{words[0]} {word} {words[1]}", word) not in (None, word)
