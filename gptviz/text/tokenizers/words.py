"""Word tokens: a text in small letters, without accents, as the words of a learned vocabulary."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from .base import Encoding, Ids, Tokenizer, Unknown

MOST_WORDS: Final = 1_000_000
SPECIAL_TOKENS: Final = ("⟨unknown⟩", "⟨padding⟩")
"""The two tokens that are not words, as they are shown; their ids follow those of the words, in this order."""

_DROPPED: Final = re.compile("['`’\u200d]")
# The seed's [A-Za-z][A-Za-z]+\b finds the same words, but in a long run it tries every letter as a beginning.
_WORD: Final = re.compile(r"(?<![A-Za-z])[A-Za-z]{2,}+(?!\w)")


def cleaned(text: str) -> str:
    """The text in small letters, without accents ("é" is "e") and apostrophes ("don't" is "dont"), each newline a space.

    Source: L. Sinai, "Building a transformer in Julia" (2022).
    """
    decomposed = unicodedata.normalize("NFD", text.lower())
    bare = decomposed if decomposed.isascii() else "".join(c for c in decomposed if unicodedata.category(c)[0] != "M")
    return _DROPPED.sub("", bare).replace("\n", " ")


def words_of(text: str) -> list[str]:
    """The words of a `cleaned` text: runs of at least two Latin letters, without a digit or another letter after them."""
    return _WORD.findall(cleaned(text))


class WordTokenizer(Tokenizer):
    """One token per word; what stands between words is not read.

    A text may have no word in it, and then no ids. A piece carries the space before it, so that a text with a piece
    appended reads as the same tokens and that one.

    Attributes:
        words: the vocabulary in the order of the ids; two special tokens follow it.
        unknown: the token read for a word that the vocabulary lacks.
        padding: the token that fills up the shorter texts of a batch.

    Args:
        words: those of the vocabulary, in the order of their ids.

    Raises:
        ValueError: there are no words or more than `MOST_WORDS`; or one occurs twice, or is not found by `words_of` as it is.
    """

    kind = "words"
    is_spaced = True
    without = "no word that this model can read: a word has two or more of the letters a to z"
    padding: int

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        if not self.words:
            raise ValueError("there are no words to make a vocabulary of")
        if len(self.words) > MOST_WORDS:
            raise ValueError(f"{len(self.words):,} words are too many: at most {MOST_WORDS:,}")
        self._ids: dict[str, int] = {}
        for i, word in enumerate(self.words):
            if words_of(word) != [word]:
                raise ValueError(f"a word must be two or more of the letters a to z, not {word!r:.80}")
            if self._ids.setdefault(word, i) != i:
                raise ValueError(f"the word {word!r:.80} stands twice in the vocabulary")
        self.unknown = len(self.words)
        self.padding = len(self.words) + 1

    @classmethod
    def learn(cls, texts: Iterable[str], vocab_size: int) -> "WordTokenizer":
        """The most frequent words of the texts, by frequency; equally frequent ones in alphabetical order.

        Words that occur only once are left out, unless there are no others. They say little, and where they are read as the
        unknown token, a model learns what to make of words that it does not know.

        Args:
            vocab_size: how many tokens there are at most, with the unknown and the padding token.

        Raises:
            ValueError: no text has a word, or `vocab_size` is below 3.
        """
        if vocab_size < 3:
            raise ValueError(f"a vocabulary of words has at least 3 tokens: a word, the unknown and padding, not {vocab_size}")
        counts = Counter(word for text in texts for word in words_of(text))
        if not counts:
            raise ValueError("there is nothing to learn from: no text has a word of two or more of the letters a to z")
        counts = Counter({word: count for word, count in counts.items() if count > 1}) or counts
        return cls(sorted(counts, key=lambda word: (-counts[word], word))[: vocab_size - len(SPECIAL_TOKENS)])

    @classmethod
    def from_fields(cls, fields: dict[str, object]) -> "WordTokenizer":
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
        """How many tokens there are: the words, the unknown and the padding."""
        return len(self.words) + len(SPECIAL_TOKENS)

    @property
    def unknown_id(self) -> int:
        """The token that is read for a word that the vocabulary lacks."""
        return self.unknown

    def encode(self, text: str) -> Encoding:
        """The ids of a text, one per word, and the words the vocabulary lacks."""
        instead = self.label(self.unknown)
        words = words_of(text)
        unknown = tuple(Unknown.of(i, word, instead) for i, word in enumerate(words) if word not in self._ids)
        return Encoding([self._ids.get(word, self.unknown) for word in words], unknown)

    def encode_ids(self, text: str) -> Ids:
        """The ids of a text [n_words]."""
        matches = _WORD.finditer(cleaned(text))
        return np.fromiter((self._ids.get(match[0], self.unknown) for match in matches), np.int64)

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The words with these ids, a space between any two; padding is left out."""
        return " ".join(self.label(i) for i in self.checked(ids).tolist() if i != self.padding)

    def piece(self, id: int) -> str:
        """The word with this id, after the space that separates it from the word before; padding adds nothing."""
        return "" if id == self.padding else " " + self.label(id)

    def id_of(self, piece: str) -> int | None:
        """The id of a word, with or without white space around it, None for one the vocabulary lacks."""
        word = piece.strip()
        return len(self.words) + SPECIAL_TOKENS.index(word) if word in SPECIAL_TOKENS else self._ids.get(word)

    def label(self, id: int) -> str:
        """The word, without the separating space; ⟨unknown⟩, ⟨padding⟩."""
        i = int(self.checked([id])[0])
        return self.words[i] if i < len(self.words) else SPECIAL_TOKENS[i - len(self.words)]

    def to_json(self) -> str:
        """`kind` and `words`, a list in the order of the ids."""
        return json.dumps({"kind": self.kind, "words": self.words})
