"""Pairs: their answers are what a reader written for the purpose makes of the sources, and files
are read to the letter.
"""

import csv
import io
from datetime import date, timedelta
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng

from gptviz.text import PAIR_TASKS, Pairs, PairTask, pairs_of, read_pairs
from gptviz.text.datasets.pairs import HELD_OUT, Dates, cardinal, spoken_year

each_task = pytest.mark.parametrize("task", PAIR_TASKS.values(), ids=list(PAIR_TASKS))
UNITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = (
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
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
WORTH = {"zero": 0, "oh": 0}
WORTH |= {word: value for value, word in enumerate((*UNITS, *TEENS), 1)}
WORTH |= {word: 10 * value for value, word in enumerate(TENS, 2)}
ORDINAL = {
    "first": "one",
    "second": "two",
    "third": "three",
    "fifth": "five",
    "eighth": "eight",
    "ninth": "nine",
} | {
    "twelfth": "twelve",
    "twentieth": "twenty",
    "thirtieth": "thirty",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def value_of(words: list[str]) -> int:
    """The number that words say, read from left to right: "hundred" multiplies what came before it,
    "thousand" all of it.
    """
    total = group = 0
    for word in words:
        if word == "thousand":
            total = 1000 * group
            group = 0
        elif word == "hundred":
            group *= 100
        elif word != "and":
            group += WORTH[word]
    return total + group


def year_of(words: list[str]) -> int:
    """The year that words say: of two numbers side by side, the first counts centuries."""
    if "hundred" in words or "thousand" in words:
        return value_of(words)
    cut = 2 if words[0] == "twenty" and words[1] in UNITS else 1
    return 100 * value_of(words[:cut]) + value_of(words[cut:])


def day_of(word: str) -> int | None:
    """The day that "3", "3rd" or "twenty-third" is, or None if it is no day."""
    if word[0].isdigit():
        return (
            int(word.rstrip("stndrh"))
            if len(word) < 4 + (not word.isdigit()) and len(word.rstrip("stndrh")) < 3
            else None
        )
    last = word.split("-")[-1]
    stem = ORDINAL.get(last, last.removesuffix("th"))
    return (
        value_of([*word.split("-")[:-1], stem]) if last in ORDINAL or last.endswith("th") else None
    )


def iso(text: str) -> str:
    """The date that a text says, found word by word."""
    words = [word for word in text.lower().replace(",", "").split() if word not in ("the", "of")]
    (month,) = (MONTHS.index(word[:3]) + 1 for word in words if word[:3] in MONTHS)
    (day,) = (day for word in words if word[:3] not in MONTHS and (day := day_of(word)) is not None)
    rest = [word for word in words if word[:3] not in MONTHS and day_of(word) is None]
    year = int(rest[0]) if rest[0].isdigit() else year_of(" ".join(rest).replace("-", " ").split())
    return f"{year}-{month:02}-{day:02}"


def test_every_way_to_write_every_date_says_that_date() -> None:
    dates = Dates()
    for n in range(0, (date(2100, 1, 1) - date(1000, 1, 1)).days, 97):
        when = date(1000, 1, 1) + timedelta(n)
        for form in Dates.FORMS:
            assert iso(dates.as_text(when, form)) == when.isoformat()


@pytest.mark.parametrize(
    ("when", "form", "text"),
    [
        ("1977-03-03", 0, "the third of march 1977"),
        ("2012-12-12", 3, "the 12th of december 2012"),
        ("1805-08-21", 10, "the twenty-first of august eighteen oh five"),
        ("1900-01-31", 9, "january thirty-first, nineteen hundred"),
        ("2004-02-29", 9, "february twenty-ninth, two thousand and four"),
        ("1066-10-14", 9, "october fourteenth, ten sixty-six"),
        ("2001-09-02", 8, "sep 2, 2001"),
    ],
)
def test_dates_are_written_as_people_write_them(when: str, form: int, text: str) -> None:
    assert Dates().as_text(date.fromisoformat(when), Dates.FORMS[form]) == text


def test_capitals_and_commas_come_and_go() -> None:
    when = date(1977, 3, 3)
    form = "{month} the {ordinal}, {year}"
    assert Dates().as_text(when, form, capitals=True) == "March the third, 1977"
    assert Dates().as_text(when, form, capitals=True, commas=False) == "March the third 1977"
    drawn = "".join(source for source, _ in Dates().draw(200, default_rng(0)))
    assert {"M", "m", ",", "3", "t"} <= set(drawn)


def test_numbers_and_years_in_words_say_what_they_are() -> None:
    for number in [*range(2_000), *range(2_000, 1_000_000, 997)]:
        for joint in (" and ", " "):
            assert value_of(cardinal(number, joint).replace("-", " ").split()) == number
    assert cardinal(77_777) == "seventy-seven thousand seven hundred and seventy-seven"
    assert cardinal(1_042) == "one thousand and forty-two"
    assert [
        year_of(spoken_year(year).replace("-", " ").split()) for year in range(1000, 2100)
    ] == list(range(1000, 2100))


def test_every_answer_drawn_follows_from_its_source() -> None:
    rng = default_rng(1)
    assert all(iso(source) == answer for source, answer in PAIR_TASKS["dates"].draw(2_000, rng))
    numbers = PAIR_TASKS["numbers"].draw(2_000, rng)
    assert all(
        value_of(source.replace("-", " ").split()) == int(answer) for source, answer in numbers
    )
    assert {len(answer) for _, answer in numbers} == {1, 2, 3, 4, 5}
    mirrored = PAIR_TASKS["mirror"].draw(2_000, rng)
    assert all(
        [*source] == [*reversed(answer)] and source == source.strip() for source, answer in mirrored
    )


@each_task
def test_training_never_draws_what_is_held_out_in_whatever_way_it_is_written(
    task: PairTask,
) -> None:
    held_out = task.held_out()
    assert held_out == task.held_out()
    answers = {answer for _, answer in held_out}
    assert len(held_out) == len(answers) == HELD_OUT
    drawn = {answer for _, answer in task.pairs(20_000, default_rng(2))}
    assert not answers & drawn
    assert all(task.holds_out(answer) for answer in answers)
    assert not any(map(task.holds_out, drawn))
    every = [
        task.holds_out(answer) for _, answer in task.draw(20_000, default_rng(3)) if len(answer) > 3
    ]
    assert sum(every) / len(every) == pytest.approx(0.1, abs=0.02)
    assert not any(task.holds_out(str(number)) for number in range(1_000))


@each_task
def test_one_seed_draws_the_same_pairs_and_another_other_ones(task: PairTask) -> None:
    one, again, other = (task.pairs(70, default_rng(seed)) for seed in (4, 4, 5))
    assert one == again
    assert one != other
    assert len(one) == 70
    assert task.pairs(0, default_rng(0)) == []


@each_task
def test_the_vocabulary_has_every_character_that_is_written_and_no_other(task: PairTask) -> None:
    drawn = task.draw(30_000, default_rng(6))
    characters = {character for pair in drawn for text in pair for character in text}
    assert set(task.characters) == characters
    assert task.tokenizer.vocab_size == len(characters) + 3
    assert not task.tokenizer.encode(task.example_prompt()).unknown


@each_task
def test_no_text_is_longer_than_the_task_says_and_one_is_as_long(task: PairTask) -> None:
    drawn = task.draw(20_000, default_rng(7))
    assert max(len(text) for pair in drawn for text in pair) <= task.longest
    if task.name == "dates":
        year = max(range(1000, 2100), key=lambda year: len(spoken_year(year)))
        days = (date(year, 1, 1) + timedelta(n) for n in range(365))
        longest = max(
            len(task.as_text(when, form))  # type: ignore[attr-defined]
            for when, form in product(days, Dates.FORMS[-2:])
        )
    elif task.name == "numbers":
        longest = max(len(cardinal(number)) for number in range(100_000))
    else:
        longest = max(len(source) for source, _ in drawn)
    assert longest == task.longest
    lengths = {len(answer) for _, answer in drawn}
    assert (task.answer_length is None) == (len(lengths) > 1)
    assert task.answer_length in {None, *lengths}


ROWS = (("one", "1"), ("two, or more", "2"), ('say "hi"', "3\n3"), ("é 日", "ü"), ("a;b", "c\td"))


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("header", [None, ("source", "target"), ("Source", "Target ")])
def test_a_table_written_by_pythons_own_writer_is_read_back(
    delimiter: str, line_end: str, header: tuple[str, str] | None, tmp_path: Path
) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=line_end)
    writer.writerows([*([header] if header else []), *ROWS, ("", "")])
    data = file.getvalue().encode("utf-8-sig")
    assert pairs_of(data, "mine.csv").pairs == ROWS
    (tmp_path / "mine.csv").write_bytes(data)
    assert read_pairs(tmp_path / "mine.csv") == pairs_of(data, "mine.csv")
    assert read_pairs(tmp_path / "mine.csv").name == "mine.csv"


def test_tabs_separate_texts_that_are_taken_as_they_are() -> None:
    assert pairs_of(b'"Hi," he said\tone, two\n\n  b "c\t d;e \n', "x").pairs == (
        ('"Hi," he said', "one, two"),
        ('b "c', "d;e"),
    )


IN_LETTERS = (("the third of march, 1977", "1977-03-03"), ("may 1978", "1978-05-01"))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"the third of march, 1977;1977-03-03\nmay 1978;1978-05-01\n", IN_LETTERS),
        (
            b"source;target\nthe third of march, 1977;1977-03-03\n may 1978 ;1978-05-01\n",
            IN_LETTERS,
        ),
        (b'\n \n"the third of march, 1977",1977-03-03\n\nmay 1978,1978-05-01\n', IN_LETTERS),
        (b"the third of march, 1977\t1977-03-03\nmay 1978\t1978-05-01\n", IN_LETTERS),
        (b"source,target\na;b,c;d\ne;f,g;h\n", (("a;b", "c;d"), ("e;f", "g;h"))),
        (b"source;target\na,b;c\nd,e;f\n", (("a,b", "c"), ("d,e", "f"))),
        (b'"a\tb",c\n"d\ne",f\n', (("a\tb", "c"), ("d\ne", "f"))),
    ],
)
def test_what_makes_two_columns_of_every_line_separates_them(
    data: bytes, expected: tuple[tuple[str, str], ...]
) -> None:
    assert pairs_of(data, "x").pairs == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "holds no pairs"),
        (b"one\ntwo\n", "line 1: one column; write a source and its answer, with a tab or a comma"),
        (b"a,b\nc\n", "line 2: one column; write a source and its answer, with a tab or a comma"),
        (b"\n\na,b\n\nc\n", "line 5: one column"),
        (b"a;b;c\n", "line 1: 3 columns; there must be two"),
        (
            b"one, two;12\nthree, four;34\n",
            "line 1: a comma and a semicolon both split every line in two: begin with the line",
        ),
        (b"a,b\nc,d,e\n", "line 2: 3 columns; there must be two"),
        (b"a,b\n,d\n", "line 2: the source is empty"),
        (b"a,b\nc, \n", "line 2: the answer is empty"),
        (b'a,b\n"c,d\ne,f\n', "unexpected end of data: close every quotation mark"),
        (b"source,target\n", "holds no pairs"),
        (b"a,b\n", "at least 2 different sources"),
        (b"a,b\na,c\n", "at least 2 different sources"),
        ("é,b\n".encode("latin-1"), "is not UTF-8"),
        ("a,b\n".encode("utf-16"), "is not UTF-8"),
        (
            b"a," + b"b" * 200_000 + b"\n",
            "line 1: a text is longer than 131,072 characters: shorten it",
        ),
        (
            b"a\tb\nc\t" + b"b" * 200_000 + b"\n",
            "line 2: a text is longer than 131,072 characters: shorten it",
        ),
    ],
)
def test_a_file_that_holds_no_pairs_is_refused_with_what_to_do(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        pairs_of(data, "mine.csv")
    assert "mine.csv" in str(raised.value)
    assert len(str(raised.value)) < 300


some_pairs = st.lists(
    st.tuples(st.text("abc", min_size=1, max_size=2), st.text("xyz", min_size=1, max_size=2)),
    min_size=2,
)


@given(some_pairs, st.floats(0.01, 0.99), st.integers(0, 9))
def test_a_split_shares_the_sources_out_and_no_source_is_on_both_sides(
    rows: list[tuple[str, str]], fraction: float, seed: int
) -> None:
    n_sources = len({source for source, _ in rows})
    if n_sources < 2:
        with pytest.raises(ValueError, match="at least 2"):
            Pairs("mine", tuple(rows))
        return
    pairs = Pairs("mine", tuple(rows))
    training, held_out = pairs.split(fraction, seed)
    assert (training, held_out) == pairs.split(fraction, seed)
    assert sorted(training + held_out) == sorted(rows)
    known = {source for source, _ in training}
    unknown = {source for source, _ in held_out}
    assert known
    assert unknown
    assert not known & unknown
    assert abs(len(known) - fraction * n_sources) <= 1


def test_another_seed_holds_others_out_and_a_share_must_leave_something() -> None:
    pairs = Pairs("mine", tuple((str(i), "x") for i in range(50)))
    assert pairs.split(seed=0) != pairs.split(seed=1)
    assert [len(side) for side in pairs.split(0.9)] == [45, 5]
    for fraction in (0, 1, -1, float("nan")):
        with pytest.raises(ValueError, match="must lie between 0 and 1"):
            pairs.split(fraction)


def test_the_canonical_form_is_opened_again_and_known_by_its_hash() -> None:
    pairs = Pairs("mine", ROWS)
    assert Pairs.from_canonical("mine", pairs.canonical) == pairs
    assert Pairs.from_canonical("yours", pairs.canonical).sha256 == pairs.sha256
    assert Pairs("mine", ROWS[::-1]).sha256 != pairs.sha256
    for strange in (
        "",
        "{}",
        "[1]",
        '[["a"]]',
        '[["a", 1], ["b", 2]]',
        "[" * 100_000,
        '[["a", ""], ["b", "c"]]',
        "null",
    ):
        with pytest.raises(ValueError, match="mine"):
            Pairs.from_canonical("mine", strange)
