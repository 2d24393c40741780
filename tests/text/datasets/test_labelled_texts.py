"""Texts with labels: what a table or a folder may hold, and a grammar that counting words cannot
solve.
"""

import csv
import hashlib
import io
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.text import (
    LabelledTexts,
    label_order,
    labelled_of,
    opinions,
    read_labelled,
    starred_opinions,
    texts_of,
    words_of,
)

# Cells as any program may write them; line ends inside are kept as \n.
cell = st.text(st.characters(codec="utf-8", exclude_characters="\0\r")).map(str.strip).filter(bool)
tables = st.lists(st.tuples(cell, cell), min_size=2, max_size=12).filter(
    lambda rows: len({label for _, label in rows}) > 1
)


def table(
    rows: list[tuple[str, ...]], delimiter: str = ",", header: tuple[str, ...] = ("text", "label")
) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    return file.getvalue().encode()


@given(tables, st.sampled_from(",;\t"), st.booleans(), st.booleans())
def test_a_table_is_read_as_it_was_written(
    rows: list[tuple[str, str]], delimiter: str, swapped: bool, mark: bool
) -> None:
    written = [("x", label, text) if swapped else (text, label, "x") for text, label in rows]
    header = ("more", " LABEL", "Text ") if swapped else ("text", "label", "more")
    data = table(written, delimiter, header)
    read = labelled_of(b"\xef\xbb\xbf" + data if mark else data, "mine.csv")
    assert read.name == "mine"
    assert [
        (text, read.names[label]) for text, label in zip(read.texts, read.labels, strict=True)
    ] == rows
    assert texts_of(data, "mine.csv") == [text for text, _ in rows]


def test_a_quotation_may_hold_line_ends_separators_and_quotation_marks() -> None:
    data = b'text,label\r\n"two\r\nlines, and ""more""",good\r\nplain,bad\r\n\r\n'
    read = labelled_of(data, "x.csv")
    assert read.texts == ('two\nlines, and "more"', "plain")
    assert read.names == ("bad", "good")


@pytest.mark.parametrize("blank", [b"\n", b"\r\n \r\n\t\n"])
def test_blank_lines_before_the_first_count_for_nothing_but_their_number(blank: bytes) -> None:
    data = blank + b'"text";label\nfine;good\n\n"it\nis";bad\n'
    assert labelled_of(data, "x.csv").texts == ("fine", "it\nis")
    with pytest.raises(
        ValueError, match=f"an empty text or label in line {blank.count(bytes([10])) + 6}:"
    ):
        labelled_of(data + b";bad\n", "x.csv")


def test_names_are_in_order_and_numbers_by_their_size() -> None:
    rows = [("a", "10"), ("b", "9"), ("c", "good"), ("d", "1"), ("e", "bad")]
    read = labelled_of(table(rows), "x.csv")
    assert read.names == ("1", "9", "10", "bad", "good")
    assert [read.names[label] for label in read.labels] == [label for _, label in rows]


def test_a_folder_holds_a_file_of_lines_for_each_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "reviews"
    folder.mkdir()
    (folder / "positive.txt").write_bytes("a fine film\r\n\r\n  une très bonne fin \r\n".encode())
    (folder / "negative.txt").write_text("dull\x85indeed, \x0b“it's” not\n", encoding="utf-8")
    (folder / "README.md").write_text("not a label")
    (folder / ".hidden.txt").write_text("nor this")
    read = read_labelled(folder)
    assert (read.name, read.names) == ("reviews", ("negative", "positive"))
    assert [
        (text, read.names[label]) for text, label in zip(read.texts, read.labels, strict=True)
    ] == [
        ("dull\x85indeed, \x0b“it's” not", "negative"),
        ("a fine film", "positive"),
        ("une très bonne fin", "positive"),
    ]
    monkeypatch.chdir(folder)
    assert read_labelled(".").name == "reviews"


def test_a_file_is_read_as_its_bytes_are(tmp_path: Path) -> None:
    data = table([("fine", "good"), ("dull", "bad")])
    (tmp_path / "mine.csv").write_bytes(data)
    assert read_labelled(tmp_path / "mine.csv") == labelled_of(data, "mine.csv")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "“x.csv” is empty"),
        (b"text,label\n", "no rows below its first line"),
        (b"text,label\n\n,\n", "no rows below its first line"),
        (
            b"review,stars\nfine,5\n",
            "no column 'text' and 'label' in its first line, which names 'review', 'stars'",
        ),
        (
            b"text;stars\nfine;5\n",
            "no column 'label' in its first line, which names 'text', 'stars'",
        ),
        (b"fine\ndull\n", "no column 'text' and 'label' in its first line, which names 'fine'"),
        (
            b"text,label\nfine,good\ndull,good\n",
            "every text has the label 'good': there must be at least two",
        ),
        (
            table([(f"t{i}", f"l{i}") for i in range(1_000)]),
            "1,000 different labels, and at most 50 .* is the column label",
        ),
        (
            b'text,label\n"never closed,good\ndull,bad\n',
            "line 3: unexpected end of data: close every quotation mark",
        ),
        (
            b'text,label\n"a" b,good\n',
            "line 2: ',' expected after '\"': close every quotation mark, double those within",
        ),
        (
            b"text,label\nfine,good\n,bad\ndull\n",
            "an empty text or label in line 3, 4: fill it, or take the line out",
        ),
        (b"text,label\n" + b"fine,\n" * 9, "in line 2, 3, 4, 5, 6 and 4 more"),
        (
            b'text,label\n"' + b"a" * 200_000 + b'",good\n',
            "line 2: a text is longer than 131,072 characters: shorten it",
        ),
        (b"x" * 200_000, "line 1: a text is longer than 131,072 characters: shorten it"),
        (b'"text,label\nfine,good\n', "line 2: unexpected end of data: close every quotation mark"),
        (b"\n \n", "“x.csv” is blank: begin it with a line that names the columns text and label"),
        ("text,label\nfine,good\n".encode("utf-16"), "is not UTF-8 .*save it as UTF-8"),
        ("text,label\nbelle œuvre,good\n".encode("cp1252"), "is not UTF-8"),
        (b"\x89PNG\r\n\x1a\n\0", "is not UTF-8"),
        (b"PK\x03\x04\0\0", "is not text"),
    ],
)
def test_a_table_that_cannot_be_learned_from_says_why(
    data: bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        labelled_of(data, "x.csv")
    assert len(str(raised.value)) < 400
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(ValueError, match="x.csv"):
        read_labelled(tmp_path / "x.csv")


def test_texts_alone_need_no_labels() -> None:
    assert texts_of(b'id,text\n1,"one, two"\n2,three\n', "x.csv") == ["one, two", "three"]


@given(tables)
def test_the_hash_is_that_of_the_canonical_form_which_can_be_read_again(
    rows: list[tuple[str, str]],
) -> None:
    read = labelled_of(table(rows), "x.csv")
    assert read.sha256 == hashlib.sha256(read.canonical.encode()).hexdigest()
    again = LabelledTexts.from_canonical("x", read.canonical)
    assert again == read
    assert again.sha256 == read.sha256
    other = LabelledTexts("x", (*read.texts[1:], read.texts[0] + "!"), read.labels, read.names)
    assert other.sha256 != read.sha256


def test_some_rows_keep_the_names_and_labels_can_be_numbered_as_a_model_does() -> None:
    read = LabelledTexts("x", ("p", "n", "p2"), (1, 0, 1), ("negative", "positive"))
    assert read.select_rows([2, 1]) == LabelledTexts(
        "x", ("p2", "n"), (1, 0), ("negative", "positive")
    )
    other = read.renumber_labels(["positive", "neutral", "negative"])
    assert [other.names[label] for label in other.labels] == [
        read.names[label] for label in read.labels
    ]
    assert read.renumber_labels(read.names) is read


def test_opinions_are_the_same_every_time_and_half_of_them_are_positive() -> None:
    assert opinions(200, 3) == opinions(200, 3)
    assert opinions(200, 3).texts != opinions(200, 4).texts
    made = opinions()
    assert (len(made), made.names) == (4_000, ("negative", "positive"))
    assert sum(made.labels) == 2_000
    assert len(set(made.texts)) > 3_900
    assert all(words_of(text) == text.split() for text in made.texts)


DENIALS = (" not ", " never ", " hardly ", " anything but ", " far from ")
GOOD = {
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
}


def denials(text: str) -> list[bool]:
    """For each clause, whether it denies."""
    return [any(denial in clause for denial in DENIALS) for clause in text.split(" and ")]


def exchanged(text: str) -> str:
    """An opinion with the two words it judges by exchanged."""
    one, other = (clause.rsplit(" ", 1) for clause in text.split(" and "))
    return f"{one[0]} {other[1]} and {other[0]} {one[1]}"


def test_the_label_is_what_is_said_of_each_thing_a_denial_turning_it_round() -> None:
    made = opinions(400)
    for text, label in zip(made.texts, made.labels, strict=True):
        words = [clause.rsplit(" ", 1)[1] for clause in text.split(" and ")]
        said = [(word in GOOD) != denied for word, denied in zip(words, denials(text), strict=True)]
        assert said == [bool(label)] * 2
    assert [sum(denials(text)) for text in made.texts].count(1) == 200


def test_with_a_denial_the_same_words_say_the_opposite_so_that_counting_them_tells_nothing() -> (
    None
):
    many = opinions(20_000)
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for text, label in zip(many.texts, many.labels, strict=True):
        if any(denials(text)):
            assert Counter(words_of(exchanged(text))) == Counter(words_of(text))
            counts[label].update(words_of(text))
    # An opinion and its opposite are equally likely: no word leans to a label by more than chance
    # does.
    for word in counts[0] | counts[1]:
        assert (
            abs(counts[0][word] - counts[1][word]) < 5 * (counts[0][word] + counts[1][word]) ** 0.5
        )


def test_opinions_with_stars_are_the_same_every_time_and_equally_many_of_each() -> None:
    made = starred_opinions(500, 3)
    assert made == starred_opinions(500, 3)
    assert made.texts != starred_opinions(500, 4).texts
    assert [made.labels.count(label) for label in range(5)] == [100] * 5
    assert label_order(made.names) == (0, 1, 2, 3, 4)


def test_stars_are_the_mean_of_what_both_clauses_say_and_at_most_one_off() -> None:
    strong = {"truly", "utterly", "wonderfully"}
    off = []
    for text, label in zip(
        *(lambda made: (made.texts, made.labels))(starred_opinions(1_000)), strict=True
    ):
        said = []
        for clause in text.split(" and "):
            words = clause.split()
            strength = 2 if strong & set(words) else 1
            said.append(3 + strength * (1 if words[-1] in GOOD else -1))
        off.append(abs(sum(said) / 2 - (label + 1)))
    assert max(off) <= 0.5
    assert 0 < sum(off) < 0.1 * len(off)


def test_a_separator_at_the_end_of_a_line_adds_nothing() -> None:
    found = labelled_of(b'text,label\ngood,pos,\n"bad, really",neg,,\n', "a.csv")
    assert (found.texts, found.names) == (("good", "bad, really"), ("neg", "pos"))


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (("1", "2", "3", "4", "5"), (0, 1, 2, 3, 4)),
        (("10 stars", "2 stars", "9.5 stars"), (1, 2, 0)),
        (("0", "1", "-1", "−2"), (3, 2, 0, 1)),
        (("1 star", "2 stars", "3"), (0, 1, 2)),
        (("negative", "neutral", "positive"), None),
        (("1", "2", "many"), None),
        (("1 good", "1 bad", "2"), None),  # which of the first two is lower?
        (("1", "1.0", "2"), None),
        (("1", "2"), None),  # every mistake is one off
        (("3rd", "2nd", "1st"), None),  # names, not amounts
        (("1.2.3", "1.2.4", "2"), None),
    ],
)
def test_labels_that_begin_with_different_numbers_have_their_order(
    names: tuple[str, ...], order: tuple[int, ...] | None
) -> None:
    assert label_order(names) == order
