"""Tokens of ordinary English: words as they are written, with their capital letters, and every sign a token of its own."""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from gptviz.text.visible import visible

from .base import Encoding, Ids, Tokenizer, Unknown

MOST_WORDS: Final = 1_000_000
SPECIAL_TOKENS: Final = ("⟨end⟩", "⟨unknown⟩")
"""The two tokens that are no words, as they are written and read; their ids follow those of the words, in this order."""

_OPENING: Final = frozenset("([{“‘")
_CLOSING: Final = frozenset(")]}”’,.;:!?")
# A word may have apostrophes and hyphens inside: don't, well-known.
_TOKEN: Final = re.compile(rf"{'|'.join(SPECIAL_TOKENS)}|[^\W_]+(?:['’-][^\W_]+)*|\S")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# The quotation mark of a keyboard opens at the beginning, after white space and after an opening bracket; else it closes.
_OPENS: Final = re.compile(r'(?<![^\s(\[{“‘])"')


def tokens_of(text: str) -> list[str]:
    """The words and signs of a text; the quotation marks of a keyboard become “ and ”."""
    return _TOKEN.findall(_OPENS.sub("“", text).replace('"', "”"))


class CasedWordTokenizer(Tokenizer):
    """One token per word or sign: `Mary saw (the dog).` is seven tokens.

    White space is not read. Decoding writes it as English has it: none before `,` or after `(`, one space between words. A piece
    carries the space before it, so that a text with a piece appended reads as the same tokens and that one.

    Attributes:
        words: the vocabulary in the order of the ids; two special tokens follow it.
        end: the token after the last one of a text.
        unknown: the token read for a word or sign that the vocabulary lacks.

    Args:
        words: words and signs of the vocabulary, in the order of their ids.

    Raises:
        ValueError: there are no words or more than `MOST_WORDS`; or one occurs twice, or would not be read as one token.
    """

    kind = "cased words"
    is_spaced = True
    without = "no word or sign that this model can read"

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        if not self.words:
            raise ValueError("there are no words to make a vocabulary of")
        if len(self.words) > MOST_WORDS:
            raise ValueError(f"{len(self.words):,} words are too many: at most {MOST_WORDS:,}")
        self._tokens = self.words + SPECIAL_TOKENS
        self._ids: dict[str, int] = {}
        for i, word in enumerate(self._tokens):
            if tokens_of(word) != [word] or _SURROGATE.search(word):
                raise ValueError(f"a token must be one word or one sign, not {word!r:.80}")
            if self._ids.setdefault(word, i) != i:
                raise ValueError(f"the word {word!r:.80} stands twice in the vocabulary")
        self.end, self.unknown = len(self.words), len(self.words) + 1

    @classmethod
    def from_fields(cls, fields: dict[str, object]) -> "CasedWordTokenizer":
        """The tokenizer whose parsed JSON this is.

        Raises:
            ValueError: `to_json` could not have written it.
        """
        words = fields.get("words")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError("the tokenizer's 'words' must be a list of texts")
        return cls(words)

    @property
    def vocab_size(self) -> int:
        """How many tokens there are: words, signs, the end and the unknown."""
        return len(self._tokens)

    @property
    def unknown_id(self) -> int:
        """The token that is read for what the vocabulary lacks."""
        return self.unknown

    def encode(self, text: str) -> Encoding:
        """The ids of a text, and the words and signs that the vocabulary lacks."""
        tokens, instead = tokens_of(text), self.label(self.unknown)
        unknown = tuple(Unknown.of(i, token, instead) for i, token in enumerate(tokens) if token not in self._ids)
        return Encoding([self._ids.get(token, self.unknown) for token in tokens], unknown)

    def encode_ids(self, text: str) -> Ids:
        """The ids of a text [n_tokens]."""
        return np.fromiter((self._ids.get(token, self.unknown) for token in tokens_of(text)), np.int64)

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The text of these ids, spaced as English is."""
        return self._spaced(ids, "(")  # no space stands at the beginning, as after a bracket

    def continuation(self, ids: Sequence[int] | Ids) -> str:
        """The text that these tokens add to another text: as decoded, after the space that stands before the first."""
        return self._spaced(ids, "")

    def piece(self, id: int) -> str:
        """The token with this id, after the space that stands before it, which a closing sign has not."""
        token = self._token(id)
        return _gap("", token) + token

    def id_of(self, piece: str) -> int | None:
        """The id of a word or sign, with or without white space around it, None for one the vocabulary lacks."""
        return self._ids.get(piece.strip())

    def label(self, id: int) -> str:
        """The visible form of a token, without the space before it."""
        return visible(self._token(id))

    def to_json(self) -> str:
        """`kind` and `words`, a list in the order of the ids."""
        return json.dumps({"kind": self.kind, "words": self.words})

    def _spaced(self, ids: Sequence[int] | Ids, before: str) -> str:
        tokens = [before, *(self._tokens[i] for i in self.checked(ids).tolist())]
        return "".join(_gap(last, token) + token for last, token in pairwise(tokens))

    def _token(self, id: int) -> str:
        return self._tokens[int(self.checked([id])[0])]


def _gap(before: str, token: str) -> str:
    """What stands between two tokens: a space, or nothing beside a sign that closes or after one that opens."""
    return "" if token in _CLOSING or before in _OPENING else " "
