"""Texts with one label each: read from a table or a folder, or made by a grammar in which negation
reverses the meaning.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from gptviz.machine.lines import lines_of

from .corpora import corpus_of, read_corpus
from .tables import below_header, readings, table_rows

MOST_LABELS: Final = 50
_MOST_LINES: Final = 5  # that a message names


@dataclass(frozen=True)
class LabelledTexts:
    """Texts, each with a label. A ValueError if the number of names is another, there is not one
    label for every text, or a label has no name.
    """

    name: str  #: what they are called
    texts: tuple[str, ...] = field(repr=False)  #: in their order
    labels: tuple[int, ...] = field(repr=False)  #: of each text, an index into `names`
    names: tuple[str, ...]  #: the names of the labels, 2 to `MOST_LABELS`

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise ValueError(
                f"{self.name}: {len(self.texts):,} texts have {len(self.labels):,} labels"
            )
        if not 2 <= len(self.names) <= MOST_LABELS:
            raise ValueError(
                f"{self.name}: {len(self.names):,} different labels; there must be 2 to "
                f"{MOST_LABELS}"
            )
        if not all(0 <= label < len(self.names) for label in self.labels):
            raise ValueError(f"{self.name}: a label is none of the {len(self.names)} there are")

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def canonical(self) -> str:
        """Names, labels and texts in one fixed form: JSON in ASCII, which `from_canonical`
        reads.
        """
        return json.dumps({"names": self.names, "labels": self.labels, "texts": self.texts})

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the canonical form."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    @classmethod
    def from_canonical(cls, name: str, text: str) -> "LabelledTexts":
        """The texts whose canonical form this is; a ValueError if `canonical` could not have
        written it.
        """
        try:
            fields = json.loads(text)
            texts, labels, names = (tuple(fields[key]) for key in ("texts", "labels", "names"))
        except (KeyError, TypeError, ValueError, RecursionError):
            raise ValueError(f"“{name}” does not hold texts with labels") from None
        if not all(isinstance(text, str) for text in (*texts, *names)) or not all(
            type(label) is int for label in labels
        ):
            raise ValueError(f"“{name}” does not hold texts with labels")
        return cls(name, texts, labels, names)

    def select_rows(self, rows: Iterable[int]) -> "LabelledTexts":
        """The texts of these rows, under the same names."""
        rows = tuple(rows)
        return LabelledTexts(
            self.name,
            tuple(self.texts[i] for i in rows),
            tuple(self.labels[i] for i in rows),
            self.names,
        )

    def renumber_labels(self, names: Sequence[str]) -> "LabelledTexts":
        """The same texts, their labels numbered as in `names`; a ValueError if one is not among
        these.
        """
        if self.names == tuple(names):
            return self
        if strange := [name for name in self.names if name not in names]:
            have = ", ".join(repr(name[:40]) for name in names)
            raise ValueError(
                f"{self.name} has the label {strange[0]!r:.80}; the model knows {have}"
            )
        numbers = [list(names).index(name) for name in self.names]
        return LabelledTexts(
            self.name, self.texts, tuple(numbers[label] for label in self.labels), tuple(names)
        )


def read_labelled(path: str | os.PathLike[str]) -> LabelledTexts:
    """Texts with labels from a CSV file or a folder, in UTF-8; blank lines are ignored.

    The CSV file has the columns text and label, separated by commas, semicolons or tabs. The folder
    has a file of lines for each label: `positive.txt` holds the texts whose label is "positive". An
    OSError if something is missing or may not be read; a ValueError if it holds no such texts. Each
    message names the file and what to do.
    """
    place = Path(path)
    if place.is_dir():
        return _folder(place)
    return _read_labelled(read_corpus(place).text, place.stem, str(place))


def labelled_of(data: bytes, name: str) -> LabelledTexts:
    """The content of a CSV file called `name`, read as `read_labelled` reads it."""
    return _read_labelled(corpus_of(data, name).text, Path(name).stem, f"“{name}”")


def texts_of(data: bytes, name: str) -> list[str]:
    """The column text of a CSV file called `name`, whatever its other columns are; without it a
    ValueError says what to do.
    """
    return [text for (text,) in _rows(corpus_of(data, name).text, f"“{name}”", "text")]


def _folder(folder: Path) -> LabelledTexts:
    """The lines of every .txt file in a folder, labelled by the name of the file."""
    files = sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() == ".txt" and not file.name.startswith(".")
    )
    if len(files) < 2:
        raise ValueError(
            f"{folder} has {len(files)} .txt files: put the texts of each label, one a line, "
            "in a file named after the label, as positive.txt and negative.txt"
        )
    pairs: list[tuple[str, str]] = []
    for file in files:
        lines = lines_of(read_corpus(file).text)
        if not lines:
            raise ValueError(f"{file} has no texts: write one a line, or take the file away")
        pairs += [(line.strip(), file.stem) for line in lines]
    return _with_names(pairs, folder.absolute().name, str(folder))


def _read_labelled(content: str, name: str, file: str) -> LabelledTexts:
    return _with_names(
        [(text, label) for text, label in _rows(content, file, "text", "label")], name, file
    )


def _with_names(pairs: Sequence[tuple[str, str]], name: str, file: str) -> LabelledTexts:
    """Texts with the names of their labels, which are numbered in the order of `_in_order`."""
    distinct = {label for _, label in pairs}
    if len(distinct) < 2:
        raise ValueError(
            f"{file}: every text has the label {next(iter(distinct))!r:.80}: there must be at "
            "least two labels"
        )
    if len(distinct) > MOST_LABELS:
        raise ValueError(
            f"{file} has {len(distinct):,} different labels, and at most {MOST_LABELS} are "
            "allowed: is the column label the one "
            "you mean?"
        )
    names = sorted(distinct, key=_in_order)
    numbers = {label: i for i, label in enumerate(names)}
    return LabelledTexts(
        name,
        tuple(text for text, _ in pairs),
        tuple(numbers[label] for _, label in pairs),
        tuple(names),
    )


def _in_order(label: str) -> tuple[bool, int, str]:
    """The sort key of a label: whole numbers by their size, then all others by the alphabet."""
    is_number = label.isascii() and label.isdigit() and len(label) < 10
    return (not is_number, int(label) if is_number else 0, label)


def _rows(content: str, file: str, *columns: str) -> Iterator[tuple[str, ...]]:
    """The cells of these columns, row by row, without white space around them."""
    separator = _separator(content, file, columns)
    names, rows = below_header(table_rows(content, separator, file), file, columns)
    places = [names.index(column) for column in columns]
    empty: list[int] = []
    n_rows = 0
    for line, row in rows:
        n_rows += 1
        if any(row[len(names) :]):
            raise ValueError(
                f"{file}, line {line}: {len(row)} columns, and the first line names {len(names)}: "
                "put a text that has a "
                f"{separator!r} in it in quotes"
            )
        cells = tuple(row[place] if place < len(row) else "" for place in places)
        if not all(cells):
            empty.append(line)
        yield cells
    if not n_rows:
        raise ValueError(f"{file} has no rows below its first line")
    if empty:
        if len(empty) > _MOST_LINES:
            more = f" and {len(empty) - _MOST_LINES} more"
        else:
            more = ""
        lines = ", ".join(map(str, empty[:_MOST_LINES])) + more
        raise ValueError(
            f"{file} has an empty {' or '.join(columns)} in line {lines}: fill it, or take the "
            "line out"
        )


def _separator(content: str, file: str, columns: Sequence[str]) -> str:
    """The separator with which the first line that is not blank names these columns."""
    headers = readings(content, file, lambda cells, place: [cell.lower() for cell in cells], most=1)
    readable = {
        separator: header for separator, header in headers.items() if header.problem is None
    }
    names_by_separator = {
        separator: header.rows[0] if header.rows else [] for separator, header in readable.items()
    }
    for separator, names in names_by_separator.items():
        if set(columns) <= set(names):
            return separator
    problems = [header.problem for header in headers.values() if header.problem is not None]
    if not names_by_separator:
        raise problems[0]
    names = max(names_by_separator.values(), key=len)
    if not names:
        raise ValueError(
            f"{file} is blank: begin it with a line that names the columns {' and '.join(columns)}"
        )
    have = ", ".join(repr(name[:40]) for name in names[:20])
    missing = " and ".join(repr(column) for column in columns if column not in names)
    raise ValueError(
        f"{file} has no column {missing} in its first line, which names {have}: rename or add it"
    )


_THINGS: Final = (
    *("film", "plot", "acting", "script", "ending", "cast", "music", "dialogue"),
    *("pacing", "story", "direction", "humour", "camera", "villain", "romance", "beginning"),
)
_GOOD: Final = (
    "good",
    "gripping",
    "funny",
    "clever",
    "moving",
    "charming",
    "fresh",
    "brilliant",
    "warm",
    "exciting",
)
_BAD: Final = (
    "bad",
    "dull",
    "boring",
    "clumsy",
    "tedious",
    "stupid",
    "stale",
    "awful",
    "cold",
    "predictable",
)
_DENIALS: Final = ("not", "never", "hardly", "anything but", "far from")
_AFFIRMATIONS: Final = ("really", "always", "simply", "quite", "truly")


def opinions(count: int = 4_000, seed: int = 0) -> LabelledTexts:
    """Short opinions on films, of two clauses that agree. In half of the opinions one clause denies
    the opposite.

    "the plot was never dull and the cast was really funny" is positive. If its two adjectives
    change places, it says the opposite with the same words. So a count of words, with any weights,
    is right on only half of such opinions, and on three quarters of all opinions. The word after
    the denial decides. The same `count` and `seed` give the same texts.
    """
    if count < 2:
        raise ValueError(f"{count} opinions are too few: there must be at least 2")
    rng = np.random.default_rng(seed)
    # equally often positive or not, with a denial or without
    sorts = rng.permutation(np.arange(count) % 4)
    labels = sorts % 2
    texts = tuple(_opinion(sort % 2 == 1, sort >= 2, rng) for sort in sorts.tolist())
    return LabelledTexts("opinions", texts, tuple(labels.tolist()), ("negative", "positive"))


def _opinion(positive: bool, denies: bool, rng: np.random.Generator) -> str:
    """One opinion: two clauses about different things in a random order, one of them with a denial
    if `denies`.
    """
    agreeing, opposite = (_GOOD, _BAD) if positive else (_BAD, _GOOD)
    one, other = (_THINGS[i] for i in rng.choice(len(_THINGS), size=2, replace=False))
    clauses = [
        f"the {one} was {_any_word(_DENIALS, rng)} {_any_word(opposite, rng)}"
        if denies
        else _affirm_thing(one, agreeing, rng),
        _affirm_thing(other, agreeing, rng),
    ]
    return " and ".join(clauses if rng.integers(2) else clauses[::-1])


def _affirm_thing(thing: str, words: Sequence[str], rng: np.random.Generator) -> str:
    return f"the {thing} was {_any_word(_AFFIRMATIONS, rng)} {_any_word(words, rng)}"


# how good something is, by what stands before the adjective, and with which adjectives
_STARS: Final = {
    "1": (("truly", "utterly"), _BAD),
    "2": (("rather", "a little"), _BAD),
    "4": (("rather", "quite"), _GOOD),
    "5": (("truly", "wonderfully"), _GOOD),
}


def starred_opinions(count: int = 4_000, seed: int = 0) -> LabelledTexts:
    """Short opinions on films with one to five stars, equally many of each: a stand-in until there
    are real reviews.

    Each has two clauses. Both say how many stars there are ("the plot was truly dull" is one star),
    except that with three stars one clause praises and the other blames, equally strongly. In a
    tenth of the opinions one clause belongs to a neighbouring number of stars. The same `count` and
    `seed` give the same texts.
    """
    if count < 5:
        raise ValueError(
            f"{count} opinions are too few: there must be one for each number of stars, at least 5"
        )
    rng = np.random.default_rng(seed)
    labels = (rng.permutation(count) % 5).tolist()
    names = ("1", "2", "3", "4", "5")
    return LabelledTexts(
        "stars",
        tuple(_starred_opinion(names[label], rng) for label in labels),
        tuple(labels),
        names,
    )


def _starred_opinion(stars: str, rng: np.random.Generator) -> str:
    """One opinion with this number of stars."""
    neighbours = {"1": "2", "2": "1", "4": "5", "5": "4"}
    if stars == "3":
        kinds = [("1", "5"), ("2", "4")][rng.integers(2)]
    else:
        kinds = (stars, stars)
    if stars != "3" and rng.random() < 0.1:
        kinds = (stars, neighbours[stars])
    one, other = (_THINGS[i] for i in rng.choice(len(_THINGS), size=2, replace=False))
    clauses = [
        f"the {thing} was {_any_word(_STARS[kind][0], rng)} {_any_word(_STARS[kind][1], rng)}"
        for thing, kind in zip((one, other), kinds, strict=True)
    ]
    return " and ".join(clauses if rng.integers(2) else clauses[::-1])


def _any_word(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]


GENERATED: Final = {"opinions": opinions, "stars": starred_opinions}
"""The texts with labels that a grammar makes, by name."""
