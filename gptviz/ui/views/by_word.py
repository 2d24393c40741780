"""The switch that merges the tokens of a word, in the pictures that show a text token by token."""

from __future__ import annotations

from collections.abc import Sequence

from gptviz.text.tokenizers.pieces import words
from gptviz.ui.shell.subject import Subject
from gptviz.ui.widgets import controls

ATTENTION = (
    "Words: attention to a word is the sum over its tokens, attention from a word the mean over "
    "its tokens, so that each row "
    "still sums to 100 %. A word has no query and no key of its own: the arithmetic of a cell, "
    "and values, are of tokens."
)
ABOUT = (
    "Merges the tokens of each word, where the tokenizer splits words: attention to a word, and "
    "what a word adds, are sums over "
    "its tokens; attention from a word is the mean. Signs and spaces are not merged."
)


def split(subject: Subject, ids: Sequence[int]) -> tuple[range, ...] | None:
    """The places of the tokens of each word of a text, or None if every word is one token."""
    places = tuple(words(subject.lm.tokenizer, ids))
    if len(places) < len(ids):
        return places
    return None


def switch() -> bool:
    """The control `words`: whether words are shown in the place of tokens."""
    return controls.switch("Whole words", key="words", help=ABOUT)
