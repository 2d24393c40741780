"""Pairs of texts, a source and its answer: made by tasks that know the answer, or read from a file
of two columns.
"""

import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import date
from functools import cache, cached_property
from hashlib import blake2b, sha256
from string import ascii_lowercase, digits
from typing import ClassVar, Final

import numpy as np
from numpy.random import Generator, default_rng

from gptviz.text.tokenizers.characters import CharTokenizer
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer

from .base import HELD_OUT, validation_rng
from .corpora import check_fraction, corpus_of, read_corpus
from .tables import SEPARATORS, below_header, readings, table_rows

SourceAndAnswer = tuple[str, str]

_SHORT: Final = 3  # characters: there are too few answers of this length to hold some out
_UNITS: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *(
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ),
)
_TENS: Final = (
    "",
    "",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
)
_ORDINALS: Final = (
    *(
        "",
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
    ),
    *(
        "eleventh",
        "twelfth",
        "thirteenth",
        "fourteenth",
        "fifteenth",
        "sixteenth",
        "seventeenth",
        "eighteenth",
    ),
    *(
        "nineteenth",
        "twentieth",
        *(f"twenty-{unit}" for unit in ("first", "second", "third", "fourth", "fifth", "sixth")),
    ),
    *("twenty-seventh", "twenty-eighth", "twenty-ninth", "thirtieth", "thirty-first"),
)
_MONTHS: Final = (
    *("", "January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def cardinal(number: int, joint: str = " and ") -> str:
    """A number from 0 to 999,999 in words, `joint` before the last two digits: 1,042 is "one
    thousand and forty-two".
    """
    if number < 20:
        return _UNITS[number]
    if number < 100:
        return _TENS[number // 10] + (f"-{_UNITS[number % 10]}" if number % 10 else "")
    size, name = (100, "hundred") if number < 1000 else (1000, "thousand")
    rest = number % size
    link = joint if rest < 100 else " "
    return f"{cardinal(number // size, joint)} {name}" + (
        f"{link}{cardinal(rest, joint)}" if rest else ""
    )


def spoken_year(year: int) -> str:
    """A year from 1000 to 2099 as people say it: "nineteen seventy-seven", "eighteen oh five", "two
    thousand and four".
    """
    if year % 1000 < 10:
        return cardinal(year)
    century, rest = divmod(year, 100)
    if rest < 10:
        return f"{cardinal(century)} " + (f"oh {_UNITS[rest]}" if rest else "hundred")
    return f"{cardinal(century)} {cardinal(rest)}"


class PairTask(ABC):
    """A generator of pairs whose answers follow from their sources: a model that has learned it
    makes no mistake.

    Tokens are characters. About one in ten of the answers of four characters or more is held out
    with all its sources: training never draws it. It is always the same ones.
    """

    name: ClassVar[str]  #: what it is called
    sentence: ClassVar[str]  #: what the pairs are and what there is to learn, in one sentence
    example: ClassVar[str]  #: a source to try
    characters: ClassVar[str]  #: all characters of sources and answers
    longest: ClassVar[int]  #: the characters of the longest source; no answer is longer
    #: the characters of every answer, or None if they differ
    answer_length: ClassVar[int | None] = None

    @abstractmethod
    def draw(self, count: int, rng: Generator) -> list[SourceAndAnswer]:
        """`count` pairs, drawn only by `rng`; some of them are held out."""

    @cached_property
    def tokenizer(self) -> SpecialTokensTokenizer:
        """The characters, and the special tokens."""
        return SpecialTokensTokenizer(CharTokenizer(self.characters))

    def holds_out(self, answer: str) -> bool:
        """Whether training never draws this answer: chosen by a hash."""
        return (
            len(answer) > _SHORT and blake2b(answer.encode(), digest_size=8).digest()[0] % 10 == 0
        )

    def pairs(self, count: int, rng: Generator) -> list[SourceAndAnswer]:
        """`count` pairs to train on, drawn only by `rng`; none is held out."""
        pairs: list[SourceAndAnswer] = []
        while len(pairs) < count:
            pairs += [pair for pair in self.draw(count, rng) if not self.holds_out(pair[1])]
        return pairs[:count]

    def held_out(self) -> list[SourceAndAnswer]:
        """`HELD_OUT` pairs to validate on, each with another answer, always the same ones."""
        return list(_held_out(self))

    def example_prompt(self) -> str:
        """A source to try."""
        return self.example


@cache
def _held_out(task: PairTask) -> tuple[SourceAndAnswer, ...]:
    rng = validation_rng(0)
    sources: dict[str, str] = {}  # by answer
    while len(sources) < HELD_OUT:
        for source, answer in task.draw(HELD_OUT, rng):
            if task.holds_out(answer):
                sources.setdefault(answer, source)
    return tuple((source, answer) for answer, source in list(sources.items())[:HELD_OUT])


class Dates(PairTask):
    """`the third of march 1977` → `1977-03-03`: every day of the years 1000 to 2099, in the
    Gregorian calendar throughout.
    """

    name = "dates"
    sentence = (
        "A date as people write it, and the same date in the order and the digits of ISO 8601: "
        "the model has to find year, "
        "month and day wherever they are, and turn names into numbers."
    )
    example = "the third of march 1977"
    longest = 55
    answer_length = 10

    FORMS: ClassVar = (
        "the {ordinal} of {month} {year}",
        "{ordinal} of {month}, {year}",
        "{month} the {ordinal}, {year}",
        "the {day}{suffix} of {month} {year}",
        "{month} {day}{suffix}, {year}",
        "{month} {day}, {year}",
        "{day} {month} {year}",
        "{day} {short} {year}",
        "{short} {day}, {year}",
        "{month} {ordinal}, {spoken}",
        "the {ordinal} of {month} {spoken}",
    )
    # Any of them also without commas, and with capitals or without.

    characters = "".join(
        [
            *(
                " -,",
                digits,
                *_UNITS[1:],
                *_TENS,
                *_ORDINALS,
                *_MONTHS,
                "thousand hundred and oh of the",
            ),
            *(word[:1].upper() for word in (*_ORDINALS, "the")),
            *(month.lower() for month in _MONTHS),
        ]
    )

    def draw(self, count: int, rng: Generator) -> list[SourceAndAnswer]:
        """Dates, all equally probable, each in a form drawn for it."""
        days = rng.integers(
            date(1000, 1, 1).toordinal(), date(2099, 12, 31).toordinal() + 1, size=count
        )
        forms = rng.integers(len(self.FORMS), size=count)
        lower, bare = rng.integers(2, size=(2, count))
        return [
            (
                self.as_text(when, self.FORMS[form], capitals=not small, commas=not without),
                when.isoformat(),
            )
            for when, form, small, without in zip(
                map(date.fromordinal, days.tolist()),
                forms.tolist(),
                lower.tolist(),
                bare.tolist(),
                strict=True,
            )
        ]

    def as_text(self, when: date, form: str, *, capitals: bool = False, commas: bool = True) -> str:
        """A date in one of the `FORMS`."""
        day = when.day
        month = _MONTHS[when.month]
        year = when.year
        if day in (11, 12, 13):
            suffix = "th"
        else:
            suffix = {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
        of_month = {"month": month, "short": month[:3]}
        of_year = {"year": year, "spoken": spoken_year(year)}
        text = form.format(day=day, suffix=suffix, ordinal=_ORDINALS[day], **of_month, **of_year)
        if not commas:
            text = text.replace(",", "")
        if capitals:
            return text[0].upper() + text[1:]
        return text.lower()


class Numbers(PairTask):
    """`forty-two thousand and seven` → `42007`: the numbers below 100,000."""

    name = "numbers"
    sentence = (
        "A number in words, and in digits: a word's place in the answer depends on the words "
        "around it, "
        "and what is not said becomes a zero."
    )
    example = "forty-two thousand and seven"
    characters = "".join((" -", digits, *_UNITS, *_TENS, "thousand hundred and"))
    longest = 54

    def draw(self, count: int, rng: Generator) -> list[SourceAndAnswer]:
        """Numbers of one to five digits, all lengths equally probable, with and without "and", with
        and without hyphens.
        """
        numbers = rng.integers(10 ** rng.integers(1, 6, size=count))
        joints, hyphens = rng.integers(2, size=(2, count))
        pairs = []
        for number, joint, hyphen in zip(
            numbers.tolist(), joints.tolist(), hyphens.tolist(), strict=True
        ):
            words = cardinal(number, " and " if joint else " ")
            pairs.append((words if hyphen else words.replace("-", " "), str(number)))
        return pairs


class Mirror(PairTask):
    """`stressed` → `desserts`: letters and spaces, backwards."""

    name = "mirror"
    sentence = (
        "A text and the same text backwards: the answer reads its source from the last character "
        "to the first."
    )
    example = "stressed"
    characters = " " + ascii_lowercase
    longest = 24

    def draw(self, count: int, rng: Generator) -> list[SourceAndAnswer]:
        """Random letters, all lengths equally probable; about one in seven is a space, but never at
        an end or next to another.
        """
        lengths = rng.integers(1, self.longest + 1, size=count).tolist()
        letters = np.array([*ascii_lowercase, *(" " * 4)])[
            rng.integers(30, size=(count, self.longest))
        ]
        texts = [
            " ".join("".join(row[:length]).split()) or "a"
            for row, length in zip(letters, lengths, strict=True)
        ]
        return [(text, text[::-1]) for text in texts]


PAIR_TASKS: dict[str, PairTask] = {task.name: task for task in (Dates(), Numbers(), Mirror())}


@dataclass(frozen=True)
class Pairs:
    """The user's pairs. A ValueError if a text is empty, or there are fewer than two different
    sources.
    """

    name: str  #: what they are called
    pairs: tuple[SourceAndAnswer, ...] = field(repr=False)  #: (source, answer), in their order

    def __post_init__(self) -> None:
        if not all(source and answer for source, answer in self.pairs):
            raise ValueError(f"{self.name} has a pair with an empty text")
        if len({source for source, _ in self.pairs}) < 2:
            raise ValueError(
                f"{self.name} needs at least 2 different sources: one to train on and one to hold "
                "out"
            )

    @cached_property
    def canonical(self) -> str:
        """The pairs in one fixed form: JSON in ASCII, which `from_canonical` reads."""
        return json.dumps(self.pairs)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the canonical form."""
        return sha256(self.canonical.encode()).hexdigest()

    @classmethod
    def from_canonical(cls, name: str, text: str) -> "Pairs":
        """The pairs whose canonical form this is; a ValueError if `canonical` could not have
        written it.
        """
        try:
            pairs = tuple((source, answer) for source, answer in json.loads(text))
        except (TypeError, ValueError, RecursionError):
            raise ValueError(f"“{name}” does not hold pairs of texts") from None
        if not all(isinstance(text, str) for pair in pairs for text in pair):
            raise ValueError(f"“{name}” does not hold pairs of texts")
        return cls(name, pairs)

    def split(
        self, fraction: float = 0.9, seed: int = 0
    ) -> tuple[list[SourceAndAnswer], list[SourceAndAnswer]]:
        """Pairs to train on and pairs held out, drawn by `seed`, both in their order.

        About a `fraction` of the sources is trained on; at least one source is in each part. All
        pairs of one source are in the same part.
        """
        check_fraction(fraction)
        sources = list(dict.fromkeys(source for source, _ in self.pairs))
        n_training = min(max(round(fraction * len(sources)), 1), len(sources) - 1)
        chosen = {sources[i] for i in default_rng(seed).permutation(len(sources))[:n_training]}
        training = [pair for pair in self.pairs if pair[0] in chosen]
        return training, [pair for pair in self.pairs if pair[0] not in chosen]


def read_pairs(path: str | os.PathLike[str]) -> Pairs:
    """A file in UTF-8 with a source and its answer in each line, in two columns.

    The separator is the one that makes two columns of every line: a tab, where quotation marks have
    no meaning, or a comma or a semicolon, as in CSV. A first line `source,target` and blank lines
    are left out. An OSError if the file is missing or not readable; a ValueError if it holds no
    such pairs. Each message names the file, the line and what to do.
    """
    corpus = read_corpus(path)
    return _pairs(corpus.text, corpus.name, str(path))


def pairs_of(data: bytes, name: str) -> Pairs:
    """The content of a file called `name`, read as `read_pairs` reads it."""
    return _pairs(corpus_of(data, name).text, name, f"“{name}”")


def _pairs(content: str, name: str, file: str) -> Pairs:
    # The rows, divided by the separator that makes two columns of every one.
    separators = "".join(
        separator for separator in SEPARATORS if separator in content or separator == ","
    )
    tried = readings(content, file, _pair, separators=separators, quoted=",;")
    fitting = [separator for separator, reading in tried.items() if reading.problem is None]
    if not fitting:
        # The user means the separator by which most rows can be read; if several are equal, the
        # tab.
        meant = max(
            tried,
            key=lambda separator: (
                len(tried[separator].rows),
                separator in content,
                separator == "\t",
            ),
        )
        problem = tried[meant].problem
        assert problem is not None
        raise problem
    if fitting == [",", ";"] and tried[","].rows:
        raise ValueError(
            f"{file}, line 1: a comma and a semicolon both split every line in two: begin with "
            "the line source,target or "
            "source;target to say which"
        )
    pairs = tried["\t" if "\t" in fitting else fitting[0]].rows
    names = tuple(name.lower() for name in pairs[0]) if pairs else ()
    if names == ("source", "target"):
        separator = "\t" if "\t" in fitting else fitting[0]
        _, rows = below_header(table_rows(content, separator, file, separator in ",;"), file, names)
        pairs = [_pair(cells, f"{file}, line {line}") for line, cells in rows]
    if not pairs:
        raise ValueError(f"{file} holds no pairs: write a source and its answer in each line")
    return Pairs(name, tuple(pairs))


def _pair(cells: list[str], place: str) -> SourceAndAnswer:
    if len(cells) == 1:
        raise ValueError(
            f"{place}: one column; write a source and its answer, with a tab or a comma between "
            "them"
        )
    if len(cells) != 2:
        raise ValueError(
            f"{place}: {len(cells)} columns; there must be two, a source and its answer (put a "
            "text with commas in quotes)"
        )
    if not all(cells):
        empty = "answer" if cells[0] else "source"
        raise ValueError(f"{place}: the {empty} is empty: fill it in, or take the line out")
    return cells[0], cells[1]
