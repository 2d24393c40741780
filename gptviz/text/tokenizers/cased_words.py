"""Tokens of ordinary English: words as they are written, with their capital letters, and every sign
as one token.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from .base import Ids
from .word_vocabulary import WordVocabulary

SPECIAL_TOKENS: Final = ("⟨end⟩", "⟨unknown⟩")
"""The two tokens that are no words, as they are written and read; their ids follow those of the words, in this order."""

_OPENING: Final = frozenset("([{“‘")
_CLOSING: Final = frozenset(")]}”’,.;:!?")
# A word may have apostrophes and hyphens inside: don't, well-known.
_TOKEN: Final = re.compile(rf"{'|'.join(SPECIAL_TOKENS)}|[^\W_]+(?:['’-][^\W_]+)*|\S")
# The quotation mark of a keyboard opens at the beginning, after white space and after an opening
# bracket; else it closes.
_OPENS: Final = re.compile(r'(?<![^\s(\[{“‘])"')


def tokens_of(text: str) -> list[str]:
    """The words and signs of a text; the quotation marks of a keyboard become “ and ”."""
    return _TOKEN.findall(_OPENS.sub("“", text).replace('"', "”"))


class CasedWordTokenizer(WordVocabulary):
    """One token per word or sign: `Mary saw (the dog).` is seven tokens.

    White space is not read. Decoding writes it as English has it: none before `,` or after `(`, one
    space between words. A piece carries the space before it, so that a text with a piece appended
    reads as the same tokens and that one.
    """

    kind = "cased words"
    without = "no word or sign that this model can read"
    special_tokens = SPECIAL_TOKENS
    word_is = "a token must be one word or one sign"

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__(words)
        self.end = len(self.words)  #: the token after the last one of a text
        self.unknown = self.unknown_id = len(self.words) + 1

    @staticmethod
    def split_words(text: str) -> list[str]:
        return tokens_of(text)

    def decode(self, ids: Sequence[int] | Ids) -> str:
        return self._join_words(ids, "(")  # no space stands at the beginning, as after a bracket

    def continuation(self, ids: Sequence[int] | Ids) -> str:
        """The text that these tokens add to another text: as decoded, after the space before the
        first token.
        """
        return self._join_words(ids, "")

    def piece(self, id: int) -> str:
        """The token with this id, after the space before it; a closing sign has no space before
        it.
        """
        token = self._token(id)
        return _gap("", token) + token

    def _join_words(self, ids: Sequence[int] | Ids, before: str) -> str:
        tokens = [before, *(self._tokens[i] for i in self.check_ids(ids).tolist())]
        return "".join(_gap(last, token) + token for last, token in pairwise(tokens))


def _gap(before: str, token: str) -> str:
    """The text between two tokens: a space, or nothing before a sign that closes and after one that
    opens.
    """
    if token in _CLOSING or before in _OPENING:
        return ""
    return " "
