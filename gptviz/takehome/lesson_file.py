"""A lesson as one page: its steps below each other, each with the page that it opens next to its
text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from textwrap import indent

from gptviz.languages import translate
from gptviz.lessons.answering import Functions, answer_to, fill_text
from gptviz.lessons.checking import with_model
from gptviz.lessons.guessing import written_text
from gptviz.lessons.lesson import Lesson, LessonStep
from gptviz.lessons.real_model import stands_in
from gptviz.lessons.translation import LATE

from .page import (
    AskedQuestion,
    Heading,
    MarkdownText,
    PageContent,
    PagePiece,
    PieceGroup,
    PlainText,
    read_page,
)

Reader = Callable[[str, Mapping[str, str]], PageContent]


def lesson_content(lesson: Lesson, functions: Functions, read: Reader = read_page) -> PageContent:
    """The lesson with every page that it opens (`read` reads them), every value in its texts by the
    `functions` of its expressions, and its questions, which are answered in the file. A PageError
    if a page of it cannot be opened, an ExpressionError if a value or an answer cannot be computed.
    """
    say = partial(translate, into=lesson.language)
    if lesson.based_on:
        based = say("Based on:")
        sources = [PlainText(f"{based} {'; '.join(lesson.based_on)}")]
    else:
        sources = []
    about = [PlainText(stands_in(lesson))] if lesson.any_decoder else []
    if lesson.missing:
        about.append(PlainText(say(LATE)))
    pieces: list[PagePiece] = [
        Heading(lesson.title, 1, plain=True),
        PlainText(lesson.about),
        *sources,
        *about,
    ]
    for number, step in enumerate(lesson.steps, 1):
        page = None if step.page is None else with_model(step.page, lesson)
        words = PieceGroup(tuple(_words(step, number, functions, say)))
        if page is None:
            beside = words
        else:
            beside = PieceGroup((words, read(page.page, page.query)), "beside")
        pieces += [Heading(f"{number} {step.title}", 2, plain=True), beside]
    source = say("The lesson “{title}” about the model {model}.").format(
        title=lesson.title, model=lesson.model
    )
    return PageContent(
        lesson.name,
        {"model": lesson.model},
        tuple(pieces),
        source,
        lesson=lesson.name,
        language=lesson.language,
    )


def _words(
    step: LessonStep, number: int, functions: Functions, say: Callable[[str], str]
) -> Iterator[PagePiece]:
    """The words of the step of this number, from 1, and its questions."""
    if step.text:
        yield MarkdownText(fill_text(step.text, functions))
    if step.page is not None and step.page.look_at:
        here = say("Look here:")
        yield PlainText(f"{here} {step.page.look_at}")
    for place, question in enumerate(step.questions, 1):
        answer = answer_to(question, functions)
        within = question.within
        ask, hint, reveal = (
            fill_text(text, functions) for text in (question.ask, question.hint, question.reveal)
        )
        if within:
            counts = say("an answer within {within} counts as right").format(within=f"{within:g}")
            words = f"{answer.in_words} ({counts})"
        else:
            words = answer.in_words
        kind = question.kind
        value = answer.value
        if kind == "guess":
            # a file has no class: the token is typed
            kind = "token"
            value = written_text(str(value))
            ask = f"{ask}\n\n{indent(f'{question.prompt}▁', '    ')}"
        yield AskedQuestion(
            f"step-{number}-question-{place}",
            ask,
            kind,
            question.options,
            tuple(question.label(option) for option in question.options),
            value,
            within,
            words,
            hint,
            reveal,
        )
