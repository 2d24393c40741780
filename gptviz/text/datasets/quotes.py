"""Little quotations, word by word: `One day Mary said “the old dog is here.` **”**.

A quotation that was opened with “ is closed with ”, one that was opened with ‘ is closed with ’.
Which mark closes can be known from the one that opened, and from nothing else. So little is to be
learned that a model with few weights can be read as a whole: it is the first circuit in L. Gao et
al., “Weight-sparse transformers have interpretable circuits” (2025).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.random import Generator

from gptviz.text.tokenizers.base import Ids
from gptviz.text.tokenizers.cased_words import CasedWordTokenizer

from .base import HELD_OUT, Choices, Contrast, Examples, Task, validation_rng

OPENING: Final = ("“", "‘")
CLOSING: Final = ("”", "’")
# What stands before the mark that opens, and what is said. Together they have nine words, so that
# all sentences are equally long, and the mark stands at one of four places.
_FORMS: Final = (
    ("{name} {verb}", "the {0} {noun} is {1} and {2}"),
    ("Then {name} {verb}", "the {0} {noun} is very {1}"),
    ("One day {name} {verb}", "the {0} {noun} is {1}"),
    ("In the park {name} {verb}", "the {noun} is {0}"),
)
_NAMES: Final = ("Mary", "John", "Tom", "Ann", "Sue", "Paul", "Kate", "Mark")
_VERBS: Final = ("said", "wrote", "asked", "answered")
_NOUNS: Final = ("dog", "house", "tree", "book", "cat", "hat", "door", "river")
_ADJECTIVES: Final = ("old", "new", "small", "big", "long", "dark", "clean", "red")


@dataclass(frozen=True)
class Quotes(Task):
    """A sentence with a quotation. Only its last token counts, the mark that closes.

    The first name never speaks of the first noun in training, the second never of the second, and
    so on: these sentences are held out.
    """

    name = "quotes"
    sentence = (
        "Sentences in which somebody is quoted: a quotation that was opened with “ is closed with "
        "”, one that was opened with ‘ with ’. Only the mark that closes counts, in sentences that "
        "the model was never trained on."
    )

    length = 12  # nine words, two marks, a full stop
    floor = 0.0  # only the mark that closes counts, and it follows from the one that opens
    is_new = True  # `examples` has none that is held out

    @property
    def tokenizer(self) -> CasedWordTokenizer:
        return _tokenizer()

    def examples(self, count: int, rng: Generator) -> Examples:
        """Sentences that are not held out."""
        return self._count_marks(self._sentences(count, rng, held_out=False))

    def held_out(self, count: int = HELD_OUT, seed: int = 0) -> Examples:
        """Sentences that are never trained on."""
        return self._count_marks(self._sentences(count, validation_rng(seed), held_out=True))

    def contrasts(self) -> tuple[Contrast, ...]:
        """The same sentence, opened with one mark or with the other."""
        clean, corrupted = (f"One day Mary said {mark}the old dog is red." for mark in OPENING)
        about = "The mark that opened the quotation decides which one closes it."
        return (Contrast(self.name, "the mark that closes", about, clean, corrupted, *CLOSING),)

    def choices(self, part: str, count: int, *, held_out: bool = False) -> Choices:
        """The mark that closes; wrong is the other one."""
        rng = validation_rng(0) if held_out else np.random.default_rng(0)
        ids = self._sentences(count, rng, held_out=held_out)
        one, other = self._closing
        right = ids[:, -1]
        return Choices(ids, np.full(count, self.length - 2), right, one + other - right)

    @property
    def _closing(self) -> list[int]:
        return self.tokenizer.encode("".join(CLOSING)).ids

    def _count_marks(self, ids: Ids) -> Examples:
        counted = np.zeros((len(ids), self.length - 1), bool)
        counted[:, -1] = True
        return Examples(ids, counted)

    def _sentences(self, count: int, rng: Generator, *, held_out: bool) -> Ids:
        """Ids [count, length]."""
        names = rng.integers(len(_NAMES), size=count)
        # Of which noun somebody speaks, counted from the one that is held out.
        away = np.zeros(count, int) if held_out else rng.integers(1, len(_NOUNS), size=count)
        nouns = (names + away) % len(_NOUNS)
        forms, verbs, marks = (
            rng.integers(len(of), size=count) for of in (_FORMS, _VERBS, OPENING)
        )
        every = np.tile(np.arange(len(_ADJECTIVES)), (count, 1))
        adjectives = rng.permuted(every, axis=1)[:, :3]  # three different ones
        token = {word: number for number, word in enumerate(self.tokenizer.words)}
        rows = []
        for form, name, verb, noun, mark, three in zip(
            *(forms, names, verbs, nouns, marks, adjectives), strict=True
        ):
            before, said = _FORMS[form]
            text = f"{before} {OPENING[mark]} {said} . {CLOSING[mark]}".format(
                *(_ADJECTIVES[one] for one in three),
                name=_NAMES[name],
                verb=_VERBS[verb],
                noun=_NOUNS[noun],
            )
            rows.append([token[word] for word in text.split()])
        return np.array(rows, dtype=np.int64).reshape(count, self.length)


@lru_cache(maxsize=1)
def _tokenizer() -> CasedWordTokenizer:
    fixed = "Then One day In the park is and very ."
    every = (*OPENING, *CLOSING, *fixed.split(), *_NAMES, *_VERBS, *_NOUNS, *_ADJECTIVES)
    return CasedWordTokenizer(dict.fromkeys(every))
