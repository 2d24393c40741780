"""The vocabulary of tokenizers of whole words: a list of words, then special tokens, one of them for unknown words."""

import json
from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Final, Self

import numpy as np

from gptviz.machine.bounded import SURROGATE
from gptviz.text.visible import visible

from .base import Encoding, Ids, Tokenizer, Unknown

MOST_WORDS: Final = 1_000_000


class WordVocabulary(Tokenizer):
    """One token per word of a text, as `read` finds them.

    Attributes:
        words: the vocabulary in the order of the ids; the special tokens follow it.
        special_tokens: those that are no words, in the order of their ids, as they are shown.
        word_is: what a word must be, for a message.

    Args:
        words: those of the vocabulary, in the order of their ids.

    Raises:
        ValueError: there are no words or more than `MOST_WORDS`; or one occurs twice, or is not one word to `read`.
    """

    is_spaced = True
    special_tokens: ClassVar[tuple[str, ...]]
    word_is: ClassVar[str]

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        if not self.words:
            raise ValueError("there are no words to make a vocabulary of")
        if len(self.words) > MOST_WORDS:
            raise ValueError(f"{len(self.words):,} words are too many: at most {MOST_WORDS:,}")
        self._tokens = self.words + self.special_tokens
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        for i, word in enumerate(self.words):
            if [*self.read(word)] != [word] or SURROGATE.search(word):
                raise ValueError(f"{self.word_is}, not {word!r:.80}")
            if self._ids[word] != i:
                raise ValueError(f"the word {word!r:.80} stands twice in the vocabulary")

    @classmethod
    def from_fields(cls, fields: dict[str, object]) -> Self:
        """The tokenizer whose parsed JSON this is.

        Raises:
            ValueError: `to_json` could not have written it.
        """
        words = fields.get("words")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError("the tokenizer's 'words' must be a list of texts")
        return cls(words)

    @staticmethod
    @abstractmethod
    def read(text: str) -> Iterable[str]:
        """The words of a text, as they stand in a vocabulary."""

    @property
    @abstractmethod
    def unknown_id(self) -> int:
        """The token that is read for a word that the vocabulary lacks."""

    @property
    def vocab_size(self) -> int:
        """How many tokens there are: the words and the special tokens."""
        return len(self._tokens)

    def encode(self, text: str) -> Encoding:
        """The ids of a text, one per word, and the words that the vocabulary lacks."""
        words, instead = [*self.read(text)], self.label(self.unknown_id)
        unknown = tuple(Unknown.of(i, word, instead) for i, word in enumerate(words) if word not in self._ids)
        return Encoding([self._ids.get(word, self.unknown_id) for word in words], unknown)

    def encode_ids(self, text: str) -> Ids:
        """The ids of a text [n_words]."""
        unknown = self.unknown_id
        return np.fromiter((self._ids.get(word, unknown) for word in self.read(text)), np.int64)

    def id_of(self, piece: str) -> int | None:
        """The id of a word, with or without white space around it, None for one the vocabulary lacks."""
        return self._ids.get(piece.strip())

    def is_special(self, id: int) -> bool:
        """Whether a token is none of the words."""
        return id >= len(self.words)

    def label(self, id: int) -> str:
        """The visible form of a token, without the space before it."""
        return visible(self._token(id))

    def to_json(self) -> str:
        """`kind` and `words`, a list in the order of the ids."""
        return json.dumps({"kind": self.kind, "words": self.words})

    def _token(self, id: int) -> str:
        return self._tokens[int(self.checked([id])[0])]
