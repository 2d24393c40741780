"""Checking lessons: every page is opened, and every answer, value in a text and claim is
computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gptviz.machine.location import page_names
from gptviz.runs import checkpoints
from gptviz.settings.known_names import name_known

from .answering import answer_to
from .expression import ExpressionError, compared_values, compute_expression
from .lesson import Lesson, LessonStep, PageState, Question
from .library import Library
from .pictures import NEEDED, left_behind

PATIENCE = 120  # seconds, for a page to open

Opened = Callable[[PageState], list[str]]


@dataclass(frozen=True)
class Problem:
    """Something in a lesson that does not work."""

    lesson: str  #: its name, or that of a file that is no lesson
    step: int | None  #: counted from 1, or None if it is about the whole file
    problem: str  #: the fault, in a sentence
    line: int | None = None  #: the line of the file, from 1, or None if the problem names it

    @property
    def in_words(self) -> str:
        """The problem with its place."""
        if self.line is None:
            return self.problem
        return (
            f"{self.lesson}.md, line "
            f"{self.line}{'' if self.step is None else f', step {self.step}'}: {self.problem}"
        )


Found = Iterator[tuple[int, str]]


def problems(
    library: Library,
    functions: Callable[[Lesson], Mapping[str, Callable[..., Any]]],
    opened: Opened | None = None,
) -> Iterator[Problem]:
    """The problems in the lessons of a library. `functions` gives those of a lesson's expressions;
    `opened` opens a page and returns its faults, by default `faults_of_page`.
    """
    for file, why in library.faults.items():
        yield Problem(file, None, why)
    for lesson in library.lessons.values():
        try:
            checkpoints.find(lesson.model)
        except checkpoints.CheckpointError as error:
            yield Problem(lesson.name, None, str(error), lesson.lines.get("model", 1))
            continue  # each of its steps would report the same
        own = functions(lesson)
        for number, step in enumerate(lesson.steps, 1):
            for line, problem in _of_step(lesson, step, own, opened or faults_of_page):
                yield Problem(lesson.name, number, problem, line)


def _of_step(
    lesson: Lesson, step: LessonStep, functions: Mapping[str, Callable[..., Any]], opened: Opened
) -> Found:
    if step.page is not None:
        page = step.page
        for problem in opened(with_model(page, lesson)):
            # The line of the setting that the problem names; if it names none, the line that opens
            # the page.
            named = (
                at
                for name, at in page.lines.items()
                if re.search(rf"\b{re.escape(name)} = | no '{re.escape(name)}'", problem)
            )
            yield next(named, page.lines.get("open", 1)), problem
    for line, expression in step.values:
        try:
            compute_expression(expression, functions)
        except ExpressionError as error:
            yield line, f"a value in its text cannot be computed: {error}"
    for line, picture in left_behind(step):
        yield line, f"the picture {picture!r:.80} does not go with the lesson: it must be {NEEDED}"
    for claim in step.claims:
        try:
            value = compute_expression(claim.expression, functions)
            if value is False:
                sides = " and ".join(
                    f"{side!r:.80}" for side in compared_values(claim.expression, functions)
                )
            else:
                sides = ""
        except ExpressionError as error:
            yield claim.line, f"a claim cannot be computed: {error}"
            continue
        if value is not True:
            compares = f"; it compares {sides}" if sides else ""
            yield (
                claim.line,
                f"the claim {claim.expression!r:.120} is {value!r:.80}, not True{compares}",
            )
    for question in step.questions:
        for problem in _of_question(lesson, step, question, functions, opened):
            yield question.lines.get("answer", step.line), problem


def _of_question(
    lesson: Lesson,
    step: LessonStep,
    question: Question,
    functions: Mapping[str, Callable[..., Any]],
    opened: Opened,
) -> Iterator[str]:
    try:
        answer = answer_to(question, functions)
    except ExpressionError as error:
        yield f"{question.ask!r:.60}: {error}"
        return
    if question.kind == "state":
        if step.page is None:
            yield (
                f"{question.ask!r:.60}: a step whose question is answered on the page needs a "
                "block 'page'"
            )
            return
        page = with_model(step.page, lesson)
        if question.answer_in(page.query) == answer.value:
            yield f"{question.ask!r:.60}: the step opens its page with the answer chosen already"
        yield from opened(
            PageState(page.page, {**page.query, **question.in_address(str(answer.value))})
        )


def with_model(page: PageState, lesson: Lesson) -> PageState:
    """The page with the lesson's model, unless the step names another one."""
    return PageState(page.page, {"model": lesson.model, **page.query}, page.look_at)


def faults_of_page(page: PageState) -> list[str]:
    """The faults of a page in this state: there is no such page, it fails, or it rejects a part of
    its address.
    """
    from gptviz.streamlit_internals import run_page

    if page.page not in page_names():
        return [f"there is no page {page.page!r:.40}{name_known(page.page, page_names())}"]
    try:
        ran = run_page(page.page, page.query, PATIENCE)
    except RuntimeError as error:
        return [f"the page {page.page} does not open: {error}"]
    failed = [f"the page {page.page} fails: {message}" for message in ran.failed]
    return [
        *failed,
        *ran.rejected.values(),
        *(f"the page {page.page} says: {error}" for error in ran.errors),
    ]
