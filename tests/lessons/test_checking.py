"""Checking: a lesson that works has no problem, and each way in which one may not work is found and
placed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import gptviz
from gptviz.__main__ import main
from gptviz.lessons.checking import faults_of_page, problems
from gptviz.lessons.lesson import Lesson, PageState
from gptviz.lessons.library import library, own_folder
from gptviz.lessons.quantities import Quantities
from tests.command_line import answered, error

FRONT = "---\ntitle: A title\nabout: A sentence.\nmodel: ladder-2\n---\n"


def lesson(
    page: str = "",
    answer: str = "parameters()",
    text: str = "",
    kind: str = "number",
    more: str = "",
) -> str:
    shown = f"```page\n{page}\n```\n" if page else ""
    return (
        f"{FRONT}## One\n{text}\n\n{shown}\n```question\nask: How many?\nkind: {kind}\nanswer: "
        f"{answer}\n{more}\n```\n"
    )


def functions(one: Lesson) -> dict[str, Callable[..., object]]:
    return Quantities(lambda name, step: gptviz.load(name, "cpu", step), one.model).functions


def test_a_claim_that_is_not_true_is_found_with_its_line_and_its_value(tmp_path: Path):
    share = gptviz.load("ladder-2", "cpu").trace("a", ["logits"])["logits"][0, -1].softmax(-1)
    shown = lesson(
        page="open: attention\nclaim:\n  - 1 < 2 < parameters()\n  - vocabulary() == 1",
        more="claim: parameters()",
    )
    odd = lesson(
        page="open: attention\nclaim: probability('a', 'b') > 2", more="claim: vocabulry()"
    )
    for number, content in enumerate((shown, odd)):
        (tmp_path / f"{number}.md").write_text(content, encoding="utf-8")

    said = [problem.in_words for problem in problems(library(tmp_path), functions, lambda page: [])]
    n_token = len(share)
    likely = share[gptviz.load("ladder-2").tokenizer.id_of("b")].item()
    assert (
        said[0] == "0.md, line 13, step 1: the claim 'vocabulary() == 1' is False, not True; it "
        f"compares {n_token} and 1"
    )
    assert re.fullmatch(
        r"0\.md, line 20, step 1: the claim 'parameters\(\)' is \d+, not True", said[1]
    )
    compared = re.fullmatch(
        r"1\.md, line 11, step 1: the claim .* is False, not True; it compares (\S+) and 2", said[2]
    )
    assert compared
    assert float(compared[1]) == pytest.approx(likely, rel=1e-4)
    (unknown,) = said[3:]
    assert unknown.startswith(
        "1.md, line 18, step 1: a claim cannot be computed: there is no function 'vocabulry': did "
        "you mean"
    )


LADDER = {"model": "ladder-2"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            lesson(
                page="open: attention\nblock: 0", kind="state", answer="0 + 1", more="state: block"
            ),
            [LADDER | {"block": "0"}, LADDER | {"block": "1"}],
        ),
        (lesson(page="open: attention\nmodel: ladder-3"), [{"model": "ladder-3"}]),
        (
            lesson(
                page="open: attention\nblock: 0",
                kind="state",
                answer='"1.2"',
                more="state: block, head",
            ),
            [LADDER | {"block": "0"}, LADDER | {"block": "1", "head": "2"}],
        ),
    ],
)
def test_pages_are_opened_with_the_model_of_the_step_and_the_answer(
    tmp_path: Path, content: str, expected: list[dict[str, str]]
):
    opened: list[PageState] = []
    (tmp_path / "own.md").write_text(content, encoding="utf-8")
    assert not list(problems(library(tmp_path), functions, lambda page: opened.append(page) or []))
    assert [(page.page, dict(page.query)) for page in opened] == [
        ("attention", query) for query in expected
    ]


def test_a_page_that_is_missing_or_cannot_show_what_is_asked_is_a_problem():
    assert faults_of_page(PageState("../app", {}))[0].startswith("there is no page '../app'")
    assert (
        "there is no page 'atention': did you mean 'attention'?"
        in faults_of_page(PageState("atention", {}))[0]
    )
    assert not faults_of_page(PageState("positions", {"model": "ladder-2"}))
    (said,) = faults_of_page(PageState("next_token", {"model": "ladder-2", "position": "99999"}))
    assert "position" in said


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (lesson(page="open: atention"), 10, "did you mean 'attention'?"),
        (lesson(page="open: attention\nblock: 99"), 11, "no block = '99'; it takes"),
        (lesson(page="open: attention\nprompt: a\nblok: 1"), 12, "did you mean 'block'?"),
        (lesson(answer="parametres()"), 13, "did you mean 'parameters'?"),
        (lesson(answer="__import__('os')"), 13, "there is no function '__import__'"),
        (lesson(answer="open('/etc/passwd')"), 13, "there is no function 'open'"),
        (lesson(answer="().__class__"), 13, "not possible in an expression"),
        (lesson(answer="Mary"), 13, "a text must stand in quotes"),
        (
            lesson(answer="\"'c'\"", kind="choice", more="options: [a, b]"),
            13,
            "none of the options: a, b",
        ),
        (lesson(text="One.\n\n{{ loss('') }}"), 9, "a value in its text"),
        (lesson(answer="probability('a', 'zz')"), 13, "no token 'zz'"),
        (lesson(kind="state", answer="1", more="state: block"), 13, "needs a block 'page'"),
        (
            lesson(page="open: attention\nblock: 0", kind="state", answer="0", more="state: block"),
            17,
            "answer chosen already",
        ),
        ("no lesson", 1, "between two lines"),
        (lesson().replace("ladder-2", "lader-2"), 4, "did you mean 'ladder-2'?"),
    ],
)
def test_what_does_not_work_is_named_with_its_file_its_line_and_what_there_is(
    tmp_path: Path, content: str, line: int, said: str
):
    (tmp_path / "own.md").write_text(content, encoding="utf-8")

    (problem,) = problems(library(tmp_path / "own.md"), functions)
    assert problem.in_words.startswith(f"own.md, line {line}")
    assert said in problem.in_words


def test_a_folder_without_lessons_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture):
    assert "whose name ends in .md" in error(capsys, "lessons", "check", tmp_path)


def test_the_command_counts_and_fails_where_something_does_not_work(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    (tmp_path / "one.md").write_text(lesson(), encoding="utf-8")
    assert answered(capsys, "lessons", "check", tmp_path) == {
        "lessons": 1,
        "steps": 1,
        "questions": 1,
        "claims": 0,
        "failed": [],
    }
    claims = "claim: [1 < 2, parameters() < 2]"
    (tmp_path / "one.md").write_text(lesson(more=claims), encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["lessons", "check", str(tmp_path), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert (said["claims"], len(said["failed"])) == (2, 1)
    (tmp_path / "one.md").write_text(lesson(answer="unheard()"), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["lessons", "check", str(tmp_path), "--json"])
    assert ended.value.code == 1
    (problem,) = json.loads(capsys.readouterr().out)["failed"]
    assert (problem["lesson"], problem["step"], problem["line"]) == ("one", 1, 13)
    assert main(["lessons", "check", str(tmp_path / "missing")]) == 2
    assert own_folder() == home / "lessons"


def test_a_lesson_about_any_decoder_is_checked_with_its_own_where_no_other_is_open(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    (tmp_path / "one.md").write_text(
        lesson().replace("model: ladder-2", "model: ladder-2\nany_decoder: yes"), encoding="utf-8"
    )
    assert main(["lessons", "check", str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["failed"] == []
    assert (
        "one: no decoder of another program is open here: skipped with such a model, checked with "
        "ladder-2" in said.err
    )
