"""The vocabulary of tokenizers of whole words or symbols: a list of them, then special tokens."""

import json
from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Self

import numpy as np

from gptviz.machine.bounded import SURROGATE
from gptviz.text.visible_form import make_visible

from .base import Encoding, Ids, Tokenizer, Unknown


class WordVocabulary(Tokenizer):
    """One token per word of a text, as `split_words` finds them. A ValueError if there are no words
    or more than `most`, or one occurs twice, or is not one word to `split_words`.
    """

    is_spaced = True
    #: those that are no words, in the order of their ids, as they are shown
    special_tokens: ClassVar[tuple[str, ...]] = ()
    one_of: ClassVar[str] = "words"  #: what they are called, in JSON and in messages
    word_is: ClassVar[str]  #: what a word must be, for a message
    most: ClassVar[int] = 1_000_000  #: the most words of a vocabulary
    unknown: int  #: the token read for a word that the vocabulary lacks

    def __init__(self, words: Iterable[str]) -> None:
        #: the vocabulary in the order of the ids; the special tokens follow it
        self.words = tuple(words)
        if not self.words:
            raise ValueError(f"there are no {self.one_of} to make a vocabulary of")
        if len(self.words) > self.most:
            raise ValueError(
                f"{len(self.words):,} {self.one_of} are too many: at most {self.most:,}"
            )
        self._tokens = self.words + self.special_tokens
        self.vocab_size = len(self._tokens)
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        for i, word in enumerate(self.words):
            if [*self.split_words(word)] != [word] or SURROGATE.search(word):
                raise ValueError(f"{self.word_is}, not {word!r:.80}")
            if self._ids[word] != i:
                raise ValueError(
                    f"the {self.one_of[:-1]} {word!r:.80} stands twice in the vocabulary"
                )

    @classmethod
    def from_fields(cls, fields: dict[str, object]) -> Self:
        """The tokenizer whose parsed JSON this is."""
        words = fields.get(cls.one_of)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"the tokenizer's '{cls.one_of}' must be a list of texts")
        return cls(words)

    @staticmethod
    @abstractmethod
    def split_words(text: str) -> Iterable[str]:
        """The words of a text, as they stand in a vocabulary."""

    def encode(self, text: str) -> Encoding:
        words = [*self.split_words(text)]
        instead = self.label(self.unknown)
        unknown = tuple(
            Unknown.name_text(i, word, instead)
            for i, word in enumerate(words)
            if word not in self._ids
        )
        return Encoding([self._ids.get(word, self.unknown) for word in words], unknown)

    def encode_ids(self, text: str) -> Ids:
        return np.fromiter(
            (self._ids.get(word, self.unknown) for word in self.split_words(text)), np.int64
        )

    def id_of(self, piece: str) -> int | None:
        """The id of a word, with or without white space around it, None for one the vocabulary
        lacks.
        """
        return self._ids.get(piece.strip())

    def is_special(self, id: int) -> bool:
        return id >= len(self.words)

    def label(self, id: int) -> str:
        """The visible form of a token, without the space before it."""
        return make_visible(self._token(id))

    def to_json(self) -> str:
        """`kind` and the words, a list in the order of the ids."""
        return json.dumps({"kind": self.kind, self.one_of: self.words})

    def _token(self, id: int) -> str:
        return self._tokens[int(self.check_ids([id])[0])]
