"""Little English sentences, word by word, in which some words can be known from earlier ones: four
tasks in one.

names       `When Mary and John went to the shop, John gave a book to` **Mary**: the one of the two
who does not act. agreement   `The keys to the old cabinet` **are** lost: the verb agrees with the
first noun, and with the time of the sentence. brackets    `Mary saw the house (the dog near [a
tree` **]).**: open brackets are closed, the last one first. colours     `Mary has a red hat. We
went to the park. It was a long day. The hat is` **red**: a fact stated early is needed late.

A sentence is a *template* with a *pair* of words in it. In each task some templates and some pairs
are held out:

| task | template | pair |
|---|---|---|
| names | how it begins, where the two are, what is done | the two names, in any order |
| agreement | how it begins, the preposition, the number of adjectives | the two nouns, in this
order, in singular or plural |
| brackets | the order of two or three kinds of brackets | the noun before the brackets and that in
the innermost |
| colours | the verb of the fact, the sentences between, the question | a thing and its colour |

A sentence to train on has neither; a sentence to validate on has both. So every word of a held-out
sentence is known from training, also as an answer of the task, but never in this template and never
with this partner. (A single bracket has only three templates: these are trained on and not tested.
For each thing, the held-out colour is the one that it never has in training.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations, product
from typing import Final, TypeVar
from zlib import crc32

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gptviz.text.tokenizers.base import Ids
from gptviz.text.tokenizers.cased_words import SPECIAL_TOKENS, CasedWordTokenizer

from .base import HELD_OUT, Choices, Contrast, Examples, Task, validation_rng

T = TypeVar("T")
Words = tuple[str, ...]

LENGTH: Final = 27
"""Tokens of the longest sentence and its end: a fact about a colour, two sentences between, and the longest question."""
_END: Final = SPECIAL_TOKENS[0]
_TEMPLATES_PER_HELD_OUT = 5
_PAIRS_PER_HELD_OUT = 6
_SENTENCES_PER_WHOLE = 8

_NAMES = (
    "Mary",
    "John",
    "Tom",
    "Ann",
    "Sue",
    "Paul",
    "Kate",
    "Mark",
    "Lucy",
    "Peter",
    "Emma",
    "David",
    "Alice",
    "James",
)
_PLACES = (
    "shop",
    "park",
    "school",
    "garden",
    "station",
    "market",
    "river",
    "beach",
    "library",
    "town",
)
_GIFTS = ("book", "letter", "ball", "map", "ring", "cup", "cake", "drink", "pen", "flower")
_THINGS = ("hat", "coat", "bag", "car", "door", "chair", "bike", "boat", "shirt", "lamp")
_COLOURS = ("red", "blue", "green", "white", "black", "yellow", "brown", "grey", "pink", "golden")
_NOUNS = {
    **{
        noun: f"{noun}s"
        for noun in (
            "key",
            "cabinet",
            "dog",
            "book",
            "letter",
            "house",
            "tree",
            "picture",
            "flower",
            "king",
        )
    },
    "child": "children",
    "man": "men",
    "woman": "women",
    "box": "boxes",
}
_ADJECTIVES = ("small", "big", "long", "new", "dark", "clean")
_STATES = ("here", "lost", "new", "small", "clean", "dark")
_PREPOSITIONS = ("to", "near", "behind", "above", "with")
_BRACKETS = {"(": ")", "[": "]", "“": "”"}

_BEGINNINGS = ("When", "While", "After", "Then , when", "One day , after")
_MEETINGS = ("went to the", "were at the", "met at the", "came to the", "walked to the")
_GIVINGS = (
    "gave a {} to",
    "showed a {} to",
    "sold a {} to",
    "wanted to give a {} to",
    "bought a {} for",
)
# When a sentence about agreement plays, by its beginning; the verb is that of the time, in singular
# and plural.
_TIMES = {
    "The": ("is", "are"),
    "Today the": ("is", "are"),
    "Now the": ("is", "are"),
    "Yesterday the": ("was", "were"),
} | {"Last week the": ("was", "were")}
_SEEING = ("saw", "found", "drew", "liked")
_OWNING = ("has", "bought", "found")
_DAY = "It was a long day ."
_WALK = "We went to the {} ."
_BETWEEN = ("", _DAY, _WALK, f"{_DAY} {_WALK}", f"{_WALK} {_DAY}")
_QUESTIONS = ("The {} is", "Now the {} is", "The colour of the {} is")


def contrasts() -> tuple[Contrast, ...]:
    """One contrast for each task: two prompts between which to patch, and two tokens whose logits
    to compare.
    """
    return (
        Contrast(
            "names",
            "Who gets the book?",
            "The name that is said twice decides who does not get it.",
            "When Mary and John went to the shop, John gave a book to",
            "When Mary and John went to the shop, Mary gave a book to",
            "Mary",
            "John",
        ),
        Contrast(
            "agreement",
            "One key or many",
            "The first noun decides between are and is, though another noun stands in between.",
            "The keys to the new cabinet",
            "The key to the new cabinet",
            "are",
            "is",
        ),
        Contrast(
            "brackets",
            "Which bracket closes",
            "The bracket that was opened last has to close first.",
            "Mary saw the house [the dog near (a tree",
            "Mary saw the house (the dog near [a tree",
            ")",
            "]",
        ),
        Contrast(
            "colours",
            "What colour is the hat?",
            "A fact from the beginning is asked at the end.",
            "Mary has a red hat. We went to the park. It was a long day. The hat is",
            "Mary has a blue hat. We went to the park. It was a long day. The hat is",
            "red",
            "blue",
        ),
    )


class _Picker:
    """Picks one of some options at random, each as likely as the others; 4,096 random numbers are
    drawn at a time.
    """

    def __init__(self, rng: Generator) -> None:
        self._rng = rng
        self._numbers: list[int] = []

    def __call__(self, options: Sequence[T]) -> T:
        if not self._numbers:
            self._numbers = self._rng.integers(2**40, size=4_096).tolist()
        return options[self._numbers.pop() % len(options)]


@dataclass(frozen=True)
class _Part:
    """One of the tasks."""

    templates: tuple[tuple[Words, ...], tuple[Words, ...]]  #: those to train on, and those held out
    pairs: tuple[tuple[Words, ...], tuple[Words, ...]]  #: those to train on, and those held out
    #: makes a sentence from a template, a pair and a picker of everything else; a space stands
    #: between any two tokens, and a `*` before each token that can be known
    write: Callable[[Words, Words, _Picker], str]


def _name_sentence(template: Words, pair: Words, pick: _Picker) -> str:
    beginning, meeting, giving = template
    one, other = pick(tuple(permutations(pair)))
    actor, receiver = pick(((one, other), (other, one)))
    return (
        f"{beginning} {one} and {other} {meeting} {pick(_PLACES)} , {actor} "
        f"{giving.format(pick(_GIFTS))} *{receiver} ."
    )


def _agreement_sentence(template: Words, pair: Words, pick: _Picker) -> str:
    beginning, preposition, adjectives = template
    is_plural = pick((False, True))
    other_plural = pick((False, True))
    noun, other = (
        _NOUNS[word] if plural else word
        for word, plural in zip(pair, (is_plural, other_plural), strict=True)
    )
    described = " ".join(pick(("old", *_ADJECTIVES)) for _ in range(int(adjectives)))
    verb = _TIMES[beginning][is_plural]
    return f"{beginning} {noun} {preposition} the {described} {other} *{verb} {pick(_STATES)} ."


def _bracket_sentence(template: Words, pair: Words, pick: _Picker) -> str:
    outer, innermost = pair
    opened = ""
    for bracket in template[:-1]:
        noun = pick(tuple(_NOUNS))
        opened += f" {bracket} the {pick(('', 'old', *_ADJECTIVES))} {noun} {pick(_PREPOSITIONS)}"
    opened += f" {template[-1]} a {pick(('', *_ADJECTIVES))} {innermost}"
    closed = " ".join(f"*{_BRACKETS[bracket]}" for bracket in reversed(template))
    return f"{pick(_NAMES)} {pick(_SEEING)} the {outer}{opened} {closed} *."


def _colour_sentence(template: Words, pair: Words, pick: _Picker) -> str:
    owning, between, question = template
    thing, colour = pair
    story = between.format(pick(_PLACES))
    return (
        f"{pick(_NAMES)} {owning} a {colour} {thing} . {story} {question.format(thing)} *{colour} ."
    )


def _split(options: Sequence[Words], one_in: int) -> tuple[tuple[Words, ...], tuple[Words, ...]]:
    """The options to train on, and about one in `one_in` that is held out, chosen by a hash: the
    same on every machine.
    """
    held_out = tuple(option for option in options if crc32(" ".join(option).encode()) % one_in == 0)
    return tuple(option for option in options if option not in held_out), held_out


@lru_cache(maxsize=1)
def _parts() -> dict[str, _Part]:
    templates = _TEMPLATES_PER_HELD_OUT
    pairs = _PAIRS_PER_HELD_OUT
    nouns = _split(tuple(permutations(_NOUNS, 2)), pairs)
    trained, held_out = _split(
        [kinds for depth in (2, 3) for kinds in product(_BRACKETS, repeat=depth)], templates
    )
    own = tuple(zip(_THINGS, _COLOURS, strict=True))
    coloured = tuple(pair for pair in product(_THINGS, _COLOURS) if pair not in own), own
    return {
        "names": _Part(
            _split(tuple(product(_BEGINNINGS, _MEETINGS, _GIVINGS)), templates),
            _split(tuple(combinations(_NAMES, 2)), pairs),
            _name_sentence,
        ),
        "agreement": _Part(
            _split(tuple(product(_TIMES, _PREPOSITIONS, "012")), templates),
            nouns,
            _agreement_sentence,
        ),
        "brackets": _Part(
            ((*((kind,) for kind in _BRACKETS), *trained), held_out), nouns, _bracket_sentence
        ),
        "colours": _Part(
            _split(tuple(product(_OWNING, _BETWEEN, _QUESTIONS)), templates),
            coloured,
            _colour_sentence,
        ),
    }


@lru_cache(maxsize=1)
def _tokenizer() -> CasedWordTokenizer:
    """Every word that a sentence can have, each once, in the order of the lists above."""
    signs = (",", ".", *_BRACKETS, *_BRACKETS.values())
    verbs = tuple(verb for both in _TIMES.values() for verb in both)
    phrases = (
        *_BEGINNINGS,
        *_MEETINGS,
        *_GIVINGS,
        *_TIMES,
        *_SEEING,
        *_OWNING,
        *_BETWEEN,
        *_QUESTIONS,
        "a the and old",
    )
    nouns = (*_NAMES, *_PLACES, *_GIFTS, *_THINGS, *_NOUNS, *_NOUNS.values())
    texts = (*signs, *nouns, *_COLOURS, *_ADJECTIVES, *_STATES, *_PREPOSITIONS, *verbs, *phrases)
    return CasedWordTokenizer(
        dict.fromkeys(word for text in texts for word in text.split() if word != "{}")
    )


@lru_cache(maxsize=1)
def _numbers() -> dict[str, int]:
    """For each word of a sentence its id plus 1, negative where the word stands after a `*`."""
    labels = [*_tokenizer().words, _END]
    return {word: i for i, word in enumerate(labels, 1)} | {
        f"*{word}": -i for i, word in enumerate(labels, 1)
    }


@lru_cache(maxsize=1)
def _opposite_answers() -> dict[int, int]:
    """For each verb, closing bracket and colour another one: that of the other number, or the next
    in its list.
    """
    words = [
        *((one, other) for verbs in _TIMES.values() for one, other in (verbs, verbs[::-1])),
        *(
            (one, other)
            for of in (tuple(_BRACKETS.values()), _COLOURS)
            for one, other in zip(of, of[1:] + of[:1], strict=True)
        ),
    ]
    numbers = _numbers()
    return {numbers[one] - 1: numbers[other] - 1 for one, other in words}


@dataclass(frozen=True)
class Sentences(Task):
    """The four tasks of this file, equally many sentences of each, one in a row, filled up with the
    token ⟨end⟩.

    A model is tested on the words that can be known: those that follow from the words before them.
    In training, one sentence in eight counts as a whole, with its end, so that a model also learns
    to write. In the others, too, only the words that can be known count: they are two of fifteen,
    and the loss of the random ones would hide them.
    """

    name = "sentences"
    sentence = (
        "Little English sentences in which some words follow from earlier ones: who gets the "
        "book, is or are, which bracket "
        "closes, what colour it was. Only these are tested, in sentences that the model was never "
        "trained on; in training all "
        "words of one sentence in eight count too, so that the model learns to write."
    )
    parts = ("names", "agreement", "brackets", "colours")
    has_places = False
    length = LENGTH
    # Held-out sentences count only where the next word follows from the words before it, in each of
    # the four tasks. names: a name stands after "to" or "for": the one of the two that is not the
    # subject of the second clause. agreement: a verb follows the second noun; the beginning decides
    # its time, the first noun its number. brackets: the noun after "a" is the last word of the
    # innermost bracket; then all that are open are closed, and a full stop follows. colours: there
    # is one colour in a sentence.
    floor = 0.0
    is_new = True  # `examples` has none that is held out

    @property
    def tokenizer(self) -> CasedWordTokenizer:
        return _tokenizer()

    @property
    def end(self) -> int:
        return self.tokenizer.end

    def examples(self, count: int, rng: Generator) -> Examples:
        """Sentences to train on. In about one of eight every prediction counts, up to that of the
        end; else those to be known.
        """
        ids, known, part = self._sentences(count, rng, held_out=False)
        is_whole = rng.integers(_SENTENCES_PER_WHOLE, size=(count, 1)) == 0
        ended = np.cumsum(ids == self.end, axis=1)  # [count, length]
        return Examples(ids, known[:, 1:] | (is_whole & (ended <= 1))[:, 1:], part)

    def held_out(self, count: int = HELD_OUT, seed: int = 0) -> Examples:
        """Sentences with a template and a pair that training never has. Only the words that can be
        known count.
        """
        ids, known, part = self._sentences(count, validation_rng(seed), held_out=True)
        return Examples(ids, known[:, 1:], part)

    def example_prompt(self) -> str:
        """The first of the prompts with known answers; no sentence to train on is made by its
        template.
        """
        return self.contrasts()[0].clean

    def opposites(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """The first noun in plural and in singular, where the verb comes next."""
        ends = "near the old tree", "behind the old cabinets"
        nouns = {noun: plural for noun, plural in _NOUNS.items() if noun not in ("tree", "cabinet")}
        plural, singular = (
            tuple(f"The {noun} {end}" for noun in form for end in ends)
            for form in (nouns.values(), nouns)
        )
        return "number", plural, singular

    def contrasts(self) -> tuple[Contrast, ...]:
        return contrasts()

    def choices(self, part: str, count: int, *, held_out: bool = False) -> Choices:
        """The first word of each sentence that can be known. Wrong is the name of who acts, the
        verb of the other number, another bracket or another colour.
        """
        rng = validation_rng(0) if held_out else np.random.default_rng(0)
        # One in `len(parts)` is of this part, and a draw of them begins with any.
        drawn, is_known, parts = self._sentences(
            (count + 1) * len(self.parts), rng, held_out=held_out
        )
        is_asked = parts == self.parts.index(part)
        ids = drawn[is_asked][:count]  # [count, length]
        place = is_known[is_asked][:count].argmax(1)  # [count]
        right = ids[np.arange(count), place]
        if part == "names":
            comma = self.tokenizer.encode(",").ids[0]
            # Who acts stands after the last comma.
            actor = ids.shape[1] - (ids == comma)[:, ::-1].argmax(1)
            wrong = ids[np.arange(count), actor]
        else:
            wrong = np.array([_opposite_answers()[int(token)] for token in right])
        return Choices(ids, place - 1, right, wrong)

    def _sentences(
        self, count: int, rng: Generator, *, held_out: bool
    ) -> tuple[Ids, NDArray[np.bool_], Ids]:
        """Ids [count, length], whether each token can be known, and which task each row is of
        [count].
        """
        pick = _Picker(rng)
        parts = list(_parts().values())
        # the first is about names: the best known of the four
        first = 0 if held_out else rng.integers(len(parts))
        part = (np.arange(count) + first) % len(parts)
        sentences = [
            of.write(pick(of.templates[held_out]), pick(of.pairs[held_out]), pick).split()
            for of in (parts[number] for number in part.tolist())
        ]
        token = _numbers()
        filled = [_END] * LENGTH
        # [count, length]
        rows = np.array(
            [[token[word] for word in (sentence + filled)[:LENGTH]] for sentence in sentences]
        )
        return np.abs(rows) - 1, rows < 0, part
