"""The lessons that ship: every page of every step opens, every answer and value in a text is
computed, every claim is true.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

import gptviz
from gptviz.lessons.answering import answer_to
from gptviz.lessons.checking import problems
from gptviz.lessons.lesson import EXPRESSION, LEVELS, parse_lesson
from gptviz.lessons.library import PERIOD, SHIPPED, Library, library
from gptviz.lessons.quantities import Quantities
from gptviz.ui.pages.lessons.cards import EXAMPLE

LESSONS = library(SHIPPED)
ROOT = Path(__file__).resolve().parents[2]
UI = ROOT / "gptviz" / "ui"
VIEWS = ROOT / "gptviz" / "components"
DOCUMENT = ROOT / "docs" / "lessons.md"


@lru_cache(maxsize=4)
def opened(name: str, step: int | None) -> gptviz.LanguageModel:
    return gptviz.load(name, "cpu", step)


def functions(lesson):
    return Quantities(opened, lesson.model).functions


def test_all_can_be_read_and_stand_in_an_order() -> None:
    assert not LESSONS.faults
    assert [name[:2] for name in LESSONS.lessons] == [
        f"{number:02}" for number in range(1, len(LESSONS.lessons) + 1)
    ]


@pytest.mark.parametrize("name", LESSONS.lessons)
def test_a_lesson_asks_says_what_it_is_based_on_and_takes_minutes(name: str) -> None:
    lesson = LESSONS.lessons[name]
    assert sum(len(step.questions) for step in lesson.steps) >= 2
    assert any(step.page is not None for step in lesson.steps)
    assert lesson.based_on
    assert 3 <= lesson.minutes <= 15
    assert lesson.level in LEVELS


def test_the_path_fills_a_period_at_school_in_the_order_of_the_list() -> None:
    path = LESSONS.path
    names = list(LESSONS.lessons)
    assert (
        PERIOD - min(lesson.minutes for lesson in path)
        < sum(lesson.minutes for lesson in path)
        <= PERIOD
    )
    assert [names.index(lesson.name) for lesson in path] == sorted(
        names.index(lesson.name) for lesson in path
    )
    assert path[0].name == names[0]


@pytest.mark.parametrize("name", LESSONS.lessons)
def test_what_is_said_after_an_answer_does_not_say_it_again(name: str) -> None:
    for question in (
        question for step in LESSONS.lessons[name].steps for question in step.questions
    ):
        answer = question.answer.removeprefix("100 * ")
        again = re.compile(rf"(?:(?:percent|rounded|quoted)\()?{re.escape(answer)}(?:, \d+)?\)?")
        assert not [
            said[1]
            for said in EXPRESSION.finditer(question.reveal)
            if again.fullmatch(said[1].strip())
        ]


@pytest.mark.parametrize("name", LESSONS.lessons)
def test_every_answer_and_value_is_computed_and_every_claim_is_true(name: str) -> None:
    one = Library({name: LESSONS.lessons[name]}, {})
    assert not [problem.problem for problem in problems(one, functions, lambda page: [])]


def test_they_make_many_claims_and_every_question_has_a_hint() -> None:
    steps = [step for lesson in LESSONS.lessons.values() for step in lesson.steps]
    assert sum(len(step.claims) for step in steps) >= 25
    assert all(any(step.claims for step in lesson.steps) for lesson in LESSONS.lessons.values())
    assert all(question.hint for step in steps for question in step.questions)


def test_what_a_class_sees_of_a_step_names_no_control() -> None:
    """With “View only” a step has its questions, or without any its text: what it says of a control
    stands in `look_at`.
    """
    written = {
        one.value
        for file in UI.rglob("*.py")
        for one in ast.walk(ast.parse(file.read_text("utf-8")))
        if type(one) is ast.Constant
    }
    of_views = (
        re.findall(r'"([^"\\n]+)"', file.read_text("utf-8")) for file in VIEWS.rglob("*.js")
    )
    labels = {one for one in written.union(*of_views) if isinstance(one, str) and one[:1].isupper()}
    for name, lesson in LESSONS.lessons.items():
        for step in lesson.steps:
            asked = [
                getattr(one, part) for one in step.questions for part in ("ask", "hint", "reveal")
            ]
            for text in asked or [step.text]:
                assert not labels & set(re.findall("“([^”]+)”", text)), (name, text)
                assert not re.search(
                    r"\b(slider|button|dial|menu|type (it|that|them))\b", text, re.IGNORECASE
                ), (name, text)


def test_the_example_of_a_lesson_of_ones_own_is_one_and_the_documents_have_it_whole() -> None:
    lesson = parse_lesson(EXAMPLE, "example")
    assert not [
        problem.problem for problem in problems(Library({"example": lesson}, {}), functions)
    ]
    (shown,) = re.findall(
        r"^````markdown\n(.*?)\n````$",
        DOCUMENT.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert shown == EXAMPLE


@pytest.mark.full
@pytest.mark.parametrize("name", LESSONS.lessons)
def test_every_page_opens_in_the_state_that_the_step_asks_for(name: str) -> None:
    assert not [
        problem.problem
        for problem in problems(Library({name: LESSONS.lessons[name]}, {}), functions)
    ]


def test_the_head_that_is_taken_away_is_the_one_that_adds_most() -> None:
    lesson = LESSONS.lessons["12-taking-a-head-away"]
    (edits,) = (
        step.page.query["edits"]
        for step in lesson.steps
        if step.page is not None and "edits" in step.page.query
    )
    (question,) = (
        question for step in lesson.steps for question in step.questions if question.kind == "state"
    )
    assert answer_to(question, functions(lesson)).value == edits
