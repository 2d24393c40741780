"""Tasks with known answers: random sequences, for which it is known how well the best possible
model can predict them.

`floor` is that limit: the entropy of the sequences, given their first token, per prediction that
counts. Every random choice that can be seen in a sequence adds its nats; tokens that follow from
earlier ones add nothing.
"""

import re
from dataclasses import dataclass, fields
from functools import lru_cache
from math import lgamma, log
from typing import Any, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gptviz.settings.fields import setting
from gptviz.text.tokenizers.base import Ids, Tokenizer
from gptviz.text.tokenizers.characters import CharTokenizer
from gptviz.text.tokenizers.symbols import SymbolTokenizer

from .base import HELD_OUT, Choices, Examples, Task, all_counted, validation_rng
from .jobs import Jobs
from .quotes import Quotes
from .sentences import Sentences

_MOST_SYMBOLS: Final = 10_000
_MOST_TOKENS: Final = 4_096


@dataclass(frozen=True)
class Reversal(Task):
    """`x[length − 1 − i] = x[i]`: random symbols, then the same backwards. With an odd length, the
    middle one occurs once.
    """

    name = "reversal"
    sentence = (
        "Random symbols, then the same symbols backwards: the second half can be known from the "
        "first, "
        "and the first half cannot be known at all."
    )

    vocab: int = setting(100, "Symbols", "How many different symbols there are.")
    length: int = setting(16, "Length", "How many tokens a sequence has.")

    def limits(self) -> dict[str, tuple[int, int]]:
        return {"vocab": (2, _MOST_SYMBOLS), "length": (2, _MOST_TOKENS)}

    @property
    def tokenizer(self) -> Tokenizer:
        return _numbers(self.vocab)

    @property
    def floor(self) -> float:
        """`(h − 1) / (length − 1) · ln vocab`, h being half the length, rounded up.

        Each of the first h symbols is a random choice of ln vocab nats, and the very first is not
        predicted; the others are known. By default ln 100 · 7/15 = 2.149.
        """
        return (self._half - 1) / (self.length - 1) * log(self.vocab)

    def examples(self, count: int, rng: Generator) -> Examples:
        half = rng.integers(self.vocab, size=(count, self._half))
        # [count, length]
        return all_counted(np.concatenate((half, half[:, : self.length // 2][:, ::-1]), axis=1))

    @property
    def _half(self) -> int:
        return (self.length + 1) // 2


@dataclass(frozen=True)
class Addition(Task):
    """`123+456=9750`: two numbers of `digits` digits and their sum, of one digit more, written
    backwards.

    The sum begins with its ones because it is calculated in this order: each digit needs the carry
    of the one before. About one problem in ten, always the same ones, is never trained on, and
    neither is its mirror image `456+123`.
    """

    name = "addition"
    sentence = (
        "Two numbers and their sum, its last digit first: the digits of the sum follow from the "
        "problem, "
        "and only they count; the model is tested with problems that it was never trained on."
    )

    tokenizer = CharTokenizer("0123456789+=")
    floor = 0.0  # only the answer counts, and it follows from the problem
    is_new = True  # `examples` has none that is held out
    writes = (
        "Ones first: the model writes the last digit of the sum first, as one does on paper, so "
        "123+456= goes on with 9750."
    )

    digits: int = setting(3, "Digits", "How many digits each of the two numbers has.")

    def limits(self) -> dict[str, tuple[int, int]]:
        return {"digits": (1, 9)}  # a pair of numbers fits in 64 bits

    @property
    def length(self) -> int:
        return 3 * self.digits + 3

    def holds_out(self, a: Ids, b: Ids) -> NDArray[np.bool_]:
        """Whether a + b is never trained on: true for a fixed tenth of all pairs {a, b}, chosen by
        a hash.
        """
        pair = np.minimum(a, b) * 10**self.digits + np.maximum(a, b)
        return _hash(pair.astype(np.uint64)) % np.uint64(10) == 0

    def examples(self, count: int, rng: Generator) -> Examples:
        """Problems that are not held out, all equally probable. Only the answer counts."""
        return self._solve_problems(self._problems(count, rng, held_out=False))

    def held_out(self, count: int = HELD_OUT, seed: int = 0) -> Examples:
        """Problems that are never trained on, all equally probable; with few digits they repeat."""
        return self._solve_problems(self._problems(count, validation_rng(seed), held_out=True))

    def token_labels(self, ids: Ids) -> dict[str, Ids]:
        """The carry: whether 1 is carried into the next digit of the sum, at the token from which
        that digit is guessed.
        """
        digits = ids - self.tokenizer.encode("0").ids[0]  # [count, length]
        # the ones first
        a = digits[:, : self.digits][:, ::-1]
        b = digits[:, self.digits + 1 :][:, : self.digits][:, ::-1]
        carry = np.full_like(ids, -1)
        carried = np.zeros(len(ids), np.int64)
        for place in range(self.digits):
            carried = (a[:, place] + b[:, place] + carried) // 10
            carry[:, self._problem_length + place] = carried
        return {"carry": carry}

    def choices(self, part: str, count: int, *, held_out: bool = False) -> Choices:
        """A digit of the sum, at any of its places; wrong is the digit that a wrong carry gives."""
        rng = validation_rng(0) if held_out else np.random.default_rng(0)
        ids = self._solve_problems(self._problems(count, rng, held_out=held_out)).ids
        row = np.arange(count)
        at = rng.integers(self._problem_length - 1, self.length - 1, size=count)
        right = ids[row, at + 1]
        zero = self.tokenizer.encode("0").ids[0]
        step = np.where(self.token_labels(ids)["carry"][row, at] == 1, -1, 1)
        return Choices(ids, at, right, zero + (right - zero + step) % 10)

    def as_people_write(self, text: str) -> str:
        """`123+456=9750` as "123 + 456 = 579", and the sum if that is another one; empty if it is
        no whole problem and answer.
        """
        if (solved := re.fullmatch(r"(\d+)\+(\d+)=(\d+)", text)) is None:
            return ""
        a = int(solved[1])
        b = int(solved[2])
        answer = int(solved[3][::-1])
        return f"{a} + {b} = {answer}" + ("" if answer == a + b else f" (the sum is {a + b})")

    @property
    def _problem_length(self) -> int:
        return 2 * self.digits + 2

    def _problems(self, count: int, rng: Generator, *, held_out: bool) -> Ids:
        """Both numbers of each problem [2, count]; numbers of the wrong part are drawn again until
        none is left.
        """
        numbers = rng.integers(10**self.digits, size=(2, count))
        wrong = np.flatnonzero(self.holds_out(*numbers) != held_out)
        while wrong.size:
            numbers[:, wrong] = rng.integers(10**self.digits, size=(2, wrong.size))
            wrong = wrong[self.holds_out(*numbers[:, wrong]) != held_out]
        return numbers

    def _solve_problems(self, numbers: Ids) -> Examples:
        """The problems [2, count] as sequences with their answers."""
        plus, zero, equals = self.tokenizer.encode("+0=").ids
        a, b = zero + _digits(numbers, self.digits)[:, :, ::-1]  # [count, digits] each
        answer = zero + _digits(numbers.sum(0), self.digits + 1)  # [count, digits + 1]
        sign = np.ones((len(answer), 1), np.int64)
        ids = np.concatenate((a, plus * sign, b, equals * sign, answer), axis=1)  # [count, length]
        # [length - 1], by the token predicted
        counted = np.arange(1, self.length) >= self._problem_length
        return Examples(ids, np.tile(counted, (len(ids), 1)))


@dataclass(frozen=True)
class Copy(Task):
    """`x[t] = x[t − lag]`: `lag` random symbols, repeated to the end."""

    name = "copy"
    sentence = (
        "Random symbols that repeat at a fixed distance: after the first ones, each token is the "
        "same as the one that many "
        "places before it."
    )

    vocab: int = setting(32, "Symbols", "How many different symbols there are.")
    lag: int = setting(8, "Lag", "After how many places a token comes again.")
    length: int = setting(32, "Length", "How many tokens a sequence has.")

    def limits(self) -> dict[str, tuple[int, int]]:
        """The lag is shorter than the sequence, so that something is repeated."""
        return {
            "vocab": (2, _MOST_SYMBOLS),
            "length": (2, _MOST_TOKENS),
            "lag": (1, self.length - 1),
        }

    @property
    def tokenizer(self) -> Tokenizer:
        return _numbers(self.vocab)

    @property
    def floor(self) -> float:
        """`(lag − 1) / (length − 1) · ln vocab`.

        Each of the first `lag` symbols is a random choice of ln vocab nats, and the very first is
        not predicted; the others are known.
        """
        return (self.lag - 1) / (self.length - 1) * log(self.vocab)

    def examples(self, count: int, rng: Generator) -> Examples:
        block = rng.integers(self.vocab, size=(count, self.lag))
        return all_counted(block[:, np.arange(self.length) % self.lag])  # [count, length]


@dataclass(frozen=True)
class Induction(Task):
    """A block of different random symbols, repeated to the end. Every sequence has a block of
    another random size.

    Looking back by a fixed distance does not help here. It helps to find where the current token
    occurred before and to read the token that followed it: an induction head (Olsson et al. 2022,
    arXiv:2209.11895).
    """

    name = "induction"
    sentence = (
        "A block of random symbols, repeated, its size different in each sequence: the next token "
        "is the one that followed the "
        "current token when it came before."
    )

    vocab: int = setting(64, "Symbols", "How many different symbols there are.")
    length: int = setting(65, "Length", "How many tokens a sequence has.")
    shortest: int = setting(8, "Shortest block", "The fewest symbols of a block that repeats.")
    longest: int = setting(24, "Longest block", "The most symbols of a block that repeats.")

    def limits(self) -> dict[str, tuple[int, int]]:
        """No symbol occurs twice in a block, and at least its first symbol is repeated."""
        most = min(self.vocab, self.length - 1)
        blocks = {"shortest": (1, most), "longest": (self.shortest, most)}
        return {"vocab": (2, _MOST_SYMBOLS), "length": (2, _MOST_TOKENS), **blocks}

    @property
    def tokenizer(self) -> Tokenizer:
        return _numbers(self.vocab)

    @property
    def floor(self) -> float:
        """`(ln n + mean over p of ln((vocab − 1)! / (vocab − p)!)) / (length − 1)`, n sizes p from
        shortest to longest.

        As long as nothing has been repeated, the best model gives the first token the probability
        P(p = t | p ≥ t) to be token t, and divides the rest equally among the vocab − t symbols
        that have not occurred yet; after that it knows every token. By the chain rule the entropies
        of its predictions add up to that of the whole sequence given its first token. That is the
        entropy of two choices, both of which can be seen in the sequence: the size, one of n, and
        the other p − 1 symbols of the block, which have (vocab − 1)! / (vocab − p)! orders.
        """
        sizes = range(self.shortest, self.longest + 1)
        orders = sum(lgamma(self.vocab) - lgamma(self.vocab - p + 1) for p in sizes) / len(sizes)
        return (log(len(sizes)) + orders) / (self.length - 1)

    def examples(self, count: int, rng: Generator) -> Examples:
        """Blocks of different symbols, repeated. Every prediction counts.

        In each sequence all sizes are equally likely. Together the sequences have every size
        equally often, as far as `count` allows: small blocks cost few nats and large ones many, and
        a random mixture of them would blur the loss.
        """
        n_sizes = self.longest - self.shortest + 1
        sizes = self.shortest + (rng.integers(n_sizes) + np.arange(count)) % n_sizes  # [count]
        symbols = np.tile(np.arange(self.vocab), (count, 1))
        shuffled = rng.permuted(symbols, axis=1, out=symbols)  # [count, vocab]
        places = np.arange(self.length) % sizes[:, None]  # [count, length]
        return all_counted(np.take_along_axis(shuffled, places, axis=1))


@dataclass(frozen=True)
class Modular(Task):
    """`52 + 30 = 23`: two numbers below `modulus`, and what their sum leaves when it is divided by
    it (here 59).

    A third of all pairs, always the same ones, is trained on again and again; the others are held
    out. A model can learn that third by heart, and much later finds a rule that holds for all
    pairs: grokking (Power et al. 2022, arXiv:2201.02177; what the rule is: Nanda et al. 2023,
    arXiv:2301.05217).
    """

    name = "modular"
    sentence = (
        "Sums on a clock: two numbers, and what their sum leaves when it is divided by a fixed "
        "number. A third of all sums is "
        "learned again and again; the model is tested with the others."
    )
    length = 5  # two numbers, two signs and the answer
    floor = 0.0  # only the answer counts, and it follows from the two numbers
    is_new = True  # `examples` has none that is held out

    modulus: int = setting(
        59, "Modulus", "How many hours the clock has: sums begin again at 0 there."
    )

    def limits(self) -> dict[str, tuple[int, int]]:
        return {"modulus": (3, 499)}  # small enough that all pairs can be listed

    @property
    def tokenizer(self) -> Tokenizer:
        return _numbers(self.modulus, "+", "=")

    def all_learned(self) -> Examples:
        """A third of all pairs, in an order without meaning."""
        return self.solve_pairs(_pairs(self.modulus)[0])

    def examples(self, count: int, rng: Generator) -> Examples:
        """Pairs of the third that is trained on, all equally probable. Only the answer counts."""
        learned, _ = _pairs(self.modulus)
        return self.solve_pairs(learned[rng.integers(len(learned), size=count)])

    def held_out(self, count: int = HELD_OUT, seed: int = 0) -> Examples:
        """Pairs that are never trained on, each once; they come again only if there are fewer than
        `count`.
        """
        return self.solve_pairs(
            np.resize(validation_rng(seed).permutation(_pairs(self.modulus)[1]), (count, 2))
        )

    def as_people_write(self, text: str) -> str:
        """The remainder too, if the answer is another one; empty if the text is right or no whole
        problem and answer.
        """
        if (solved := re.fullmatch(r"(\d+) \+ (\d+) = (\d+)", text)) is None:
            return ""
        a, b, answer = map(int, solved.groups())
        right = (a + b) % self.modulus
        if answer == right:
            return ""
        return f"{text} ({a + b} modulo {self.modulus} is {right})"

    def solve_pairs(self, pairs: Ids) -> Examples:
        """The pairs [count, 2] as sequences with their answers."""
        a, b = pairs.T
        plus, equals = (np.full_like(a, self.modulus + i) for i in range(2))
        ids = np.stack((a, plus, b, equals, (a + b) % self.modulus), axis=1)  # [count, 5]
        return Examples(ids, np.tile(np.arange(1, 5) == 4, (len(ids), 1)))


TASKS: dict[str, type[Task]] = {
    kind.name: kind
    for kind in (Reversal, Addition, Copy, Induction, Modular, Sentences, Jobs, Quotes)
}


def task(name: str, /, **settings: Any) -> Task:
    """The task of this name with these settings, or their defaults; a ValueError for unknown ones
    and values beyond limits.
    """
    kind = TASKS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"there is no task {name!r:.80}; there are {', '.join(TASKS)}")
    known = [field.name for field in fields(kind)]
    if strange := [setting for setting in settings if setting not in known]:
        raise ValueError(
            f"the task {name} has no setting {strange[0]!r:.80}; it has {', '.join(known)}"
        )
    return kind(**settings)


@lru_cache(maxsize=16)
def _numbers(count: int, *signs: str) -> SymbolTokenizer:
    """The numbers below `count`, and signs."""
    return SymbolTokenizer([*map(str, range(count)), *signs])


@lru_cache(maxsize=4)
def _pairs(modulus: int) -> tuple[Ids, Ids]:
    """All pairs of numbers below the modulus, in an order that looks random: the third that is
    trained on, and the others.
    """
    every = np.arange(modulus**2)
    pairs = np.stack(
        np.divmod(every[_hash(every.astype(np.uint64)).argsort(kind="stable")], modulus), axis=1
    )
    pairs.flags.writeable = False  # all who ask share them
    return pairs[: len(pairs) // 3], pairs[len(pairs) // 3 :]


def _digits(numbers: Ids, width: int) -> Ids:
    """The last `width` decimal digits, ones first [..., width]."""
    return numbers[..., None] // 10 ** np.arange(width) % 10


def _hash(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 bits that look random, the same on every machine: the first output of SplitMix64 with each
    key as its seed.

    Source: Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195, with the constants of
    Stafford's variant 13.
    """
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
