"""Symbol tokens: a text of symbols with white space between them, each symbol a token."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from gptviz.machine.bounded import SURROGATE
from gptviz.text.visible import visible

from .base import Encoding, Ids, Tokenizer, Unknown

MOST_SYMBOLS: Final = 65_536
_SYMBOL: Final = re.compile(r"\S+")


class SymbolTokenizer(Tokenizer):
    """One token per symbol: `7 12 7` is three tokens.

    Any white space separates symbols; decoding writes a single space. A piece carries the space before it, so that
    a text with a piece appended reads as the same tokens and that one. A symbol the vocabulary lacks is read as the
    first symbol, which keeps every other token in its place.

    Attributes:
        symbols: the vocabulary in the order of the ids.

    Args:
        symbols: those of the vocabulary, in the order of their ids.

    Raises:
        ValueError: there are no symbols or more than `MOST_SYMBOLS`; or one is empty, occurs twice, or contains white space or
            a lone surrogate, which is not text.
    """

    kind = way = "symbols"
    is_spaced = True

    def __init__(self, symbols: Iterable[str]) -> None:
        self.symbols = tuple(symbols)
        if not self.symbols:
            raise ValueError("there are no symbols to make a vocabulary of")
        if len(self.symbols) > MOST_SYMBOLS:
            raise ValueError(f"{len(self.symbols):,} symbols are too many: at most {MOST_SYMBOLS:,}")
        self._ids: dict[str, int] = {}
        for i, symbol in enumerate(self.symbols):
            if not _SYMBOL.fullmatch(symbol) or SURROGATE.search(symbol):
                raise ValueError(f"a symbol must be text without white space, not {symbol!r:.80}")
            if self._ids.setdefault(symbol, i) != i:
                raise ValueError(f"the symbol {symbol!r:.80} stands twice in the vocabulary")

    @classmethod
    def numbers(cls, count: int) -> "SymbolTokenizer":
        """The symbols `0` to `count` − 1, each with its own number as id.

        Raises:
            ValueError: the count is below 1 or above `MOST_SYMBOLS`.
        """
        return cls(map(str, range(count)))

    @classmethod
    def from_fields(cls, fields: dict[str, object]) -> "SymbolTokenizer":
        """The tokenizer whose parsed JSON this is.

        Raises:
            ValueError: `to_json` could not have written it.
        """
        symbols = fields.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise ValueError("the tokenizer's 'symbols' must be a list of texts")
        return cls(symbols)

    @property
    def vocab_size(self) -> int:
        """How many symbols there are."""
        return len(self.symbols)

    def encode(self, text: str) -> Encoding:
        """The ids of a prompt, one per symbol, and the symbols the vocabulary lacks."""
        instead = self.label(0)
        symbols = text.split()
        unknown = tuple(Unknown.of(i, symbol, instead) for i, symbol in enumerate(symbols) if symbol not in self._ids)
        return Encoding([self._ids.get(symbol, 0) for symbol in symbols], unknown)

    def encode_ids(self, text: str) -> Ids:
        """The ids of a corpus [n_symbols], read symbol by symbol, at 8 bytes each."""
        return np.fromiter((self._ids.get(match[0], 0) for match in _SYMBOL.finditer(text)), np.int64)

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The symbols with these ids, a space between any two."""
        return " ".join(self.symbols[i] for i in self.checked(ids).tolist())

    def piece(self, id: int) -> str:
        """The symbol with this id, after the space that separates it from the symbol before."""
        return " " + self._symbol(id)

    def id_of(self, piece: str) -> int | None:
        """The id of a symbol, with or without white space around it, None for one the vocabulary lacks."""
        return self._ids.get(piece.strip())

    def label(self, id: int) -> str:
        """The visible form of a symbol, without the separating space."""
        return visible(self._symbol(id))

    def to_json(self) -> str:
        """`kind` and `symbols`, a list in the order of the ids."""
        return json.dumps({"kind": self.kind, "symbols": self.symbols})

    def _symbol(self, id: int) -> str:
        return self.symbols[int(self.checked([id])[0])]
