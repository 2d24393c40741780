"""Checking lessons as a reader would meet them: every page is opened, every answer and every value in a text is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gptviz.location import APP, FOLDER

from .answering import answer_to, filled
from .expression import ExpressionError
from .lesson import Lesson, PageState, Question, Step
from .library import Library

PATIENCE = 120  # seconds, for a page to open

Opened = Callable[[PageState], list[str]]


@dataclass(frozen=True)
class Problem:
    """Something in a lesson that does not work.

    Attributes:
        lesson: its name, or that of a file that is no lesson.
        step: counted from 1; None where it is about the whole file.
        problem: what does not work, in a sentence.
    """

    lesson: str
    step: int | None
    problem: str


def problems(
    library: Library, functions: Callable[[Lesson], Mapping[str, Callable[..., Any]]], opened: Opened | None = None
) -> Iterator[Problem]:
    """What does not work in the lessons of a library.

    Args:
        library: the lessons.
        functions: those of a lesson's expressions.
        opened: opens a page and gives what is wrong with it; default: `open_page`.
    """
    for file, why in library.refused.items():
        yield Problem(file, None, why)
    for lesson in library.lessons.values():
        own = functions(lesson)
        for number, step in enumerate(lesson.steps, 1):
            for problem in _of_step(lesson, step, own, opened or open_page):
                yield Problem(lesson.name, number, problem)


def _of_step(lesson: Lesson, step: Step, functions: Mapping[str, Callable[..., Any]], opened: Opened) -> Iterator[str]:
    if step.page is not None:
        yield from opened(with_model(step.page, lesson))
    for text in step.texts:
        try:
            filled(text, functions)
        except ExpressionError as error:
            yield f"a value in its text cannot be computed: {error}"
    for question in step.questions:
        yield from _of_question(lesson, step, question, functions, opened)


def _of_question(
    lesson: Lesson, step: Step, question: Question, functions: Mapping[str, Callable[..., Any]], opened: Opened
) -> Iterator[str]:
    try:
        answer = answer_to(question, functions)
    except ExpressionError as error:
        yield f"{question.ask!r:.60}: {error}"
        return
    if question.kind == "state":
        if step.page is None:
            yield f"{question.ask!r:.60}: a step whose question is answered on the page needs a block 'page'"
            return
        page = with_model(step.page, lesson)
        if question.said_by(page.query) == answer.value:
            yield f"{question.ask!r:.60}: the step opens its page with the answer chosen already"
        yield from opened(PageState(page.page, {**page.query, **question.in_address(str(answer.value))}))


def with_model(page: PageState, lesson: Lesson) -> PageState:
    """The page with the lesson's model, where the step names no other."""
    return PageState(page.page, {"model": lesson.model, **page.query}, page.look_at)


def open_page(page: PageState) -> list[str]:
    """What is wrong with a page in this state: there is no such page, it fails, or it cannot show what its address asks for."""
    from gptviz.page_run import in_vain, run_page

    path = APP if page.page == "home" else FOLDER / "pages" / f"{page.page}.py"
    if not page.page.isidentifier() or not path.is_file():
        return [f"there is no page {page.page!r:.40}"]
    try:
        at = run_page(page.page, page.query, PATIENCE)
    except RuntimeError as error:
        return [f"the page {page.page} does not open: {error}"]
    failed = [f"the page {page.page} fails: {error.message}" for error in at.exception]
    return failed + in_vain(at, page.page, page.query) + [f"the page {page.page} says: {said.value}" for said in at.error]
