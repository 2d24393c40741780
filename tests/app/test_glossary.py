"""The words of the field: every page explains its own, in one place."""

from __future__ import annotations

from gptviz.ui.menu import PAGES
from gptviz.ui.shell.around import glossary
from tests.app.opening import opened


def test_every_page_has_words_that_are_explained_and_no_explanation_is_left_over() -> None:
    assert {word for page in PAGES.values() for word in page.words} == set(glossary.MEANINGS)
    for page in PAGES.values():
        assert page.words, page.name
        assert len(page.words) == len(set(page.words)), page.name


def test_a_meaning_is_short_and_ends_as_a_sentence() -> None:
    assert [word for word, text in glossary.MEANINGS.items() if len(text) >= 140 or not text.endswith(".")] == []


def test_the_words_are_on_the_page() -> None:
    at = opened("pages/gradients.py")
    assert any("**residual connection**: The way past" in text.value for text in at.markdown)
