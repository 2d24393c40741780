"""Texts, tasks and files that nothing can be learned from are refused, with what is wrong and what
would be possible.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gptviz.text import (
    Corpus,
    LabelledTexts,
    labelled_of,
    opinions,
    read_corpus,
    read_labelled,
    read_pairs,
    starred_opinions,
    task,
    texts_of,
)
from gptviz.text.datasets.prompt_pairs import prompt_rows
from gptviz.text.datasets.unseen import PASSAGES, passage
from tests.systems import named_pipe


def labelled(labels: tuple[int, ...], names: tuple[str, ...]) -> LabelledTexts:
    return LabelledTexts("x", ("one", "two"), labels, names)


TASKS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "no task 'sorting'; there are reversal, addition, copy, induction, modular, sentences",
        "sorting",
        {},
    ),
    ("the task copy has no setting 'delay'; it has vocab, lag, length", "copy", {"delay": 3}),
    ("has no setting 'name'", "copy", {"name": "x"}),
    ("lag of the task copy is 32; it must be from 1 to 31", "copy", {"lag": 32}),
    ("lag of the task copy is 0; it must be from 1 to 31", "copy", {"lag": 0}),
    ("lag of the task copy is 2; it must be 1 here", "copy", {"lag": 2, "length": 2}),
    ("lag of the task copy is 8; it must be from 1 to 7", "copy", {"length": 8}),
    ("vocab of the task reversal is 1; it must be from 2 to 10,000", "reversal", {"vocab": 1}),
    (
        "vocab of the task reversal is 1000000000000; it must be from 2 to 10,000",
        "reversal",
        {"vocab": 10**12},
    ),
    ("length of the task reversal is 1; it must be from 2 to 4,096", "reversal", {"length": 1}),
    ("it must be from 2 to 4,096", "reversal", {"length": 10**12}),
    *(
        (
            f"length of the task reversal is {value!r}; it must be a whole number",
            "reversal",
            {"length": value},
        )
        for value in (16.5, math.nan, "16", True, None)
    ),
    ("digits of the task addition is 10; it must be from 1 to 9", "addition", {"digits": 10}),
    ("digits of the task addition is -1; it must be from 1 to 9", "addition", {"digits": -1}),
    (
        "longest of the task induction is 24; it must be from 25 to 64",
        "induction",
        {"shortest": 25},
    ),
    ("longest of the task induction is 24; it must be from 8 to 19", "induction", {"length": 20}),
    ("longest of the task induction is 24; it must be from 8 to 16", "induction", {"vocab": 16}),
    ("longest of the task induction is 65; it must be from 8 to 64", "induction", {"longest": 65}),
    ("shortest of the task induction is 0; it must be from 1 to 64", "induction", {"shortest": 0}),
    ("nurse of the task jobs is 101; it must be from 0 to 100", "jobs", {"nurse": 101}),
    ("nurse of the task jobs is '90'; it must be a whole number", "jobs", {"nurse": "90"}),
    (
        "others of the task jobs has 'baker'; write each word with its share",
        "jobs",
        {"others": "baker"},
    ),
    ("from 0 to 100", "jobs", {"others": "baker 101"}),
    ("has a share already", "jobs", {"others": "nurse 20"}),
    ("stands twice", "jobs", {"others": "tired 20"}),
    ("one word or one sign", "jobs", {"others": "(( 20"}),
    (
        "21 words with a share; it takes at most 20",
        "jobs",
        {"others": ", ".join(f"w{i} 50" for i in range(17))},
    ),
    ("others of the task jobs is 7; it must be a text", "jobs", {"others": 7}),
    ("write two words with a space between", "jobs", {"pair": "she"}),
    ("stands twice", "jobs", {"pair": "she she"}),
]
BARE = {
    "text,label\ngood,pos\nbad, really,neg\n": 3,
    "label,text\npos,good\n\nneg,bad, really\n": 4,
    "text;label\ngood;pos\nbad; really;neg\n": 3,
    "id,text,label\n1,good,pos\n2,bad,neg\n3,fine, so, far,pos\n": 4,
}
NO_LABELS = (
    "",
    "[]",
    "{}",
    "[" * 100_000,
    '{"names": 1}',
    json.dumps({"names": ["a", "b"], "labels": [True], "texts": ["x"]}),
)
REFUSED: list[tuple[str, Callable[[], object]]] = [
    *(
        (said, lambda name=name, settings=settings: task(name, **settings))
        for said, name, settings in TASKS
    ),
    (r"no task \['copy'\]", lambda: task(["copy"])),  # type: ignore[arg-type]
    ("no task None", lambda: task(None)),  # type: ignore[arg-type]
    *(
        ("between 0 and 1", lambda share=share: Corpus("text", "some text").split(share))
        for share in (0, 1, -0.1, 1.5, math.nan)
    ),
    ("“mine” is empty", lambda: Corpus("mine", "")),
    ("2 texts have 1 labels", lambda: labelled((0,), ("a", "b"))),
    ("none of the 2", lambda: labelled((0, 2), ("a", "b"))),
    ("1 different labels; there must be 2 to 50", lambda: labelled((0, 0), ("a",))),
    ("51 different labels", lambda: labelled((0, 1), tuple(map(str, range(51))))),
    (
        "x has the label 'a'; the model knows '1', '2'",
        lambda: labelled((0, 1), ("a", "b")).renumber_labels(["1", "2"]),
    ),
    *(
        (
            "does not hold texts with labels",
            lambda text=text: LabelledTexts.from_canonical("x", text),
        )
        for text in NO_LABELS
    ),
    *(
        (
            rf"line {line}: \d columns, and the first line names \d: put a text .* in quotes",
            partial(read, text.encode(), "a.csv"),
        )
        for text, line in BARE.items()
        for read in (labelled_of, texts_of)
    ),
    ("no column 'text'", lambda: texts_of(b"id,review\n1,one\n", "x.csv")),
    ("an empty text in line 3", lambda: texts_of(b'text,id\none,1\n" ",2\n', "x.csv")),
    ("1 opinions are too few", lambda: opinions(1)),
    ("4 opinions are too few", lambda: starred_opinions(4)),
    ("pairs.csv holds no prompts", lambda: prompt_rows("", "pairs.csv")),
    ("pairs.csv holds no prompts", lambda: prompt_rows("clean,right\n", "pairs.csv")),
    (
        "pairs.csv, line 1: 5 columns; there are at most 4",
        lambda: prompt_rows("a | b | c | d | e", "pairs.csv"),
    ),
    (
        "line 3: 3 columns; there are at most 2, clean, right .put",
        lambda: prompt_rows("clean,right\na,b\nc,d,e", "pairs.csv"),
    ),
    ("pairs.csv, line 2: the prompt is empty", lambda: prompt_rows("clean,right\n,b", "pairs.csv")),
    ("pairs.csv, line 2: .*quotation mark", lambda: prompt_rows('clean,right\n"a,b', "pairs.csv")),
    *(
        (f"from 0 to {PASSAGES - 1}", lambda number=number: passage(number))
        for number in (-1, PASSAGES)
    ),
]


@pytest.mark.parametrize(("said", "asked"), REFUSED, ids=[said for said, _ in REFUSED])
def test_what_cannot_be_learned_from_is_refused(said: str, asked: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=said):
        asked()


FILES: list[tuple[Callable[[Path], object], dict[str, bytes | None], str]] = [
    (lambda folder: read_corpus(folder / "absent.txt"), {}, r"absent\.txt does not exist"),
    (lambda folder: read_pairs(folder / "none.tsv"), {}, r"none\.tsv does not exist"),
    (lambda folder: read_labelled(folder / "nowhere.csv"), {}, "does not exist"),
    (read_corpus, {}, "is a folder"),
    (lambda folder: read_corpus(folder / "pipe"), {"pipe": None}, "pipe is not an ordinary file"),
    (read_labelled, {}, "0 .txt files: put the texts of each label, one a line"),
    (read_labelled, {"good.txt": b"fine\n"}, "1 .txt files"),
    (read_labelled, {"good.txt": b"fine\n", "bad.md": b"fine\n"}, "1 .txt files"),
    (read_labelled, {"good.txt": b"fine\n", "bad.txt": b"\n \n"}, r"bad\.txt has no texts"),
    (read_labelled, {"good.txt": b"fine\n", "bad.txt": b"\xff\xff"}, r"bad\.txt is not UTF-8"),
]


@pytest.mark.parametrize(("read", "files", "said"), FILES, ids=[said for *_, said in FILES])
def test_files_that_cannot_be_learned_from_are_named(
    read: Callable[[Path], object], files: dict[str, bytes | None], said: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        if content is None:
            named_pipe(tmp_path / name)
        else:
            (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, OSError), match=said):
        read(tmp_path)
