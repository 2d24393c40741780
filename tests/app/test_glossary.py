"""The words of the field: every page explains its own, in one place."""

from __future__ import annotations

import pytest

from gptviz.ui.shell import glossary
from gptviz.ui.shell.pages import PAGES
from tests.app.opening import opened


def test_every_page_has_words_that_are_explained_and_no_explanation_is_left_over() -> None:
    assert set(glossary.WORDS) == set(PAGES)
    assert {word for words in glossary.WORDS.values() for word in words} == set(glossary.MEANINGS)
    for words in glossary.WORDS.values():
        assert len(words) == len(set(words))


@pytest.mark.parametrize("meaning", [pytest.param(text, id=word) for word, text in glossary.MEANINGS.items()])
def test_a_meaning_is_short_and_ends_as_a_sentence(meaning: str) -> None:
    assert len(meaning) < 140
    assert meaning.endswith(".")


def test_the_words_are_on_the_page() -> None:
    at = opened("pages/gradients.py")
    assert any("**residual connection**: The way past" in text.value for text in at.markdown)
