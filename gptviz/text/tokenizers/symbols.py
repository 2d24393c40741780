"""Symbol tokens: a text of symbols with white space between them, each symbol a token."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from .base import Ids
from .word_vocabulary import WordVocabulary

_SYMBOL: Final = re.compile(r"\S+")


class SymbolTokenizer(WordVocabulary):
    """One token per symbol: `7 12 7` is three tokens.

    Any white space separates symbols; decoding writes a single space. A piece carries the space
    before it, so that a text with a piece appended reads as the same tokens and that one. A symbol
    the vocabulary lacks is read as the first symbol, which keeps every other token in its place.
    """

    kind = way = one_of = "symbols"
    word_is = "a symbol must be text without white space"
    most = 65_536
    # no token stands only for unknown symbols
    unknown = 0
    unknown_id = None

    @classmethod
    def numbers(cls, count: int) -> "SymbolTokenizer":
        """The symbols `0` to `count` − 1, each with its own number as id."""
        return cls(map(str, range(count)))

    @staticmethod
    def split_words(text: str) -> Iterator[str]:
        """The symbols of a text, one after the other: a list of all symbols of a corpus would take
        much memory.
        """
        return (match[0] for match in _SYMBOL.finditer(text))

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The symbols with these ids, a space between any two."""
        return " ".join(self.words[i] for i in self.check_ids(ids).tolist())

    def piece(self, id: int) -> str:
        """The symbol with this id, after the space that separates it from the symbol before."""
        return " " + self._token(id)
