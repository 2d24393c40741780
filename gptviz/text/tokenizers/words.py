"""Word tokens: a text in small letters, without accents, as the words of a learned vocabulary."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from .base import Ids
from .word_vocabulary import WordVocabulary

_DROPPED: Final = re.compile("['`’\u200d]")
# [A-Za-z][A-Za-z]+\b finds the same words, but in a long run of letters it tries every one as a
# beginning.
_WORD: Final = re.compile(r"(?<![A-Za-z])[A-Za-z]{2,}+(?!\w)")


def cleaned(text: str) -> str:
    """The text in small letters, without accents ("é" is "e") and apostrophes ("don't" is "dont"),
    each newline a space.

    Source: L. Sinai, "Building a transformer in Julia" (2022).
    """
    decomposed = unicodedata.normalize("NFD", text.lower())
    if decomposed.isascii():
        bare = decomposed
    else:
        bare = "".join(c for c in decomposed if unicodedata.category(c)[0] != "M")
    return _DROPPED.sub("", bare).replace("\n", " ")


def words_of(text: str) -> list[str]:
    """The words of a `cleaned` text: runs of at least two Latin letters, without a digit or another
    letter after them.
    """
    return [*WordTokenizer.split_words(text)]


class WordTokenizer(WordVocabulary):
    """One token per word; the characters between words are not read.

    A text may have no word in it, and then no ids. A piece carries the space before it, so that a
    text with a piece appended reads as the same tokens and that one.
    """

    kind = "words"
    without = "no word that this model can read: a word has two or more of the letters a to z"
    special_tokens = ("⟨unknown⟩", "⟨padding⟩")
    word_is = "a word must be two or more of the letters a to z"
    padding: int  #: the token that fills up the shorter texts of a batch

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__(words)
        self.unknown = self.unknown_id = len(self.words)
        self.padding = len(self.words) + 1

    @classmethod
    def learn(cls, texts: Iterable[str], vocab_size: int) -> "WordTokenizer":
        """The most frequent words of the texts, by frequency; equally frequent ones in alphabetical
        order. There are at most `vocab_size` tokens, including the unknown and the padding token. A
        ValueError if no text has a word, or the size is below 3.

        Words that occur only once are left out, unless there are no others. They tell little, and
        because they are read as the unknown token, a model learns to handle words that it does not
        know.
        """
        if vocab_size < 3:
            raise ValueError(
                "a vocabulary of words has at least 3 tokens: a word, the unknown and padding, "
                f"not {vocab_size}"
            )
        counts = Counter(word for text in texts for word in words_of(text))
        if not counts:
            raise ValueError(
                "there is nothing to learn from: no text has a word of two or more of the letters "
                "a to z"
            )
        counts = Counter({word: count for word, count in counts.items() if count > 1}) or counts
        return cls(
            sorted(counts, key=lambda word: (-counts[word], word))[
                : vocab_size - len(cls.special_tokens)
            ]
        )

    @staticmethod
    def split_words(text: str) -> Iterator[str]:
        """The words of a text one after the other, see `words_of`: a list of all words of a corpus
        would take much memory.
        """
        return (match[0] for match in _WORD.finditer(cleaned(text)))

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The words with these ids, a space between any two; padding is left out."""
        return " ".join(self.label(i) for i in self.check_ids(ids).tolist() if i != self.padding)

    def piece(self, id: int) -> str:
        """The word with this id, after the space that separates it from the word before; padding
        adds nothing.
        """
        if id == self.padding:
            return ""
        return " " + self.label(id)
