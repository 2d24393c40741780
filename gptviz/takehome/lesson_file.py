"""A lesson as one page: its steps below each other, each with the page that it opens next to its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gptviz.lessons.answering import Answer, Functions, answer_to, filled
from gptviz.lessons.checking import with_model
from gptviz.lessons.lesson import Lesson, LessonStep, PageState, Question
from gptviz.lessons.real_model import stands_in

from .page import AskedQuestion, Heading, MarkdownText, PageContent, PagePiece, PieceGroup, PlainText, read_page

Reader = Callable[[str, Mapping[str, str]], PageContent]


def lesson_content(lesson: Lesson, functions: Functions, read: Reader = read_page) -> PageContent:
    """The lesson with every page that it opens, every value in its texts, and its questions, which are answered in the file.

    Args:
        functions: those of its expressions, by name (`gptviz.lessons.quantities`).
        read: reads a page by its name and the query of its address.

    Raises:
        PageError: a page of it cannot be opened.
        ExpressionError: a value or an answer cannot be computed.
    """
    sources = [PlainText(f"Based on: {'; '.join(lesson.based_on)}")] if lesson.based_on else []
    about = [PlainText(stands_in(lesson))] if lesson.any_decoder else []
    pieces: list[PagePiece] = [Heading(lesson.title, 1, plain=True), PlainText(lesson.about), *sources, *about]
    for number, step in enumerate(lesson.steps, 1):
        pieces += [Heading(f"{number} {step.title}", 2, plain=True), _step(lesson, step, functions, read)]
    source = f"The lesson “{lesson.title}” about the model {lesson.model}."
    return PageContent(lesson.name, {"model": lesson.model}, tuple(pieces), source)


def _step(lesson: Lesson, step: LessonStep, functions: Functions, read: Reader) -> PieceGroup:
    page = None if step.page is None else with_model(step.page, lesson)
    words = PieceGroup(tuple(_words(step, page, functions)))
    return words if page is None else PieceGroup((words, read(page.page, page.query)), "beside")


def _words(step: LessonStep, page: PageState | None, functions: Functions) -> Iterator[PagePiece]:
    if step.text:
        yield MarkdownText(filled(step.text, functions))
    if page is not None and page.look_at:
        yield PlainText(f"Look here: {page.look_at}")
    yield from (_question(question, functions) for question in step.questions)


def _question(question: Question, functions: Functions) -> AskedQuestion:
    answer = answer_to(question, functions)
    hint, reveal = filled(question.hint, functions), filled(question.reveal, functions)
    ask, words = filled(question.ask, functions), _in_words(answer)
    return AskedQuestion(ask, question.kind, question.options, answer.value, question.within, words, hint, reveal)


def _in_words(answer: Answer) -> str:
    within = answer.question.within
    return f"{answer.in_words} (an answer within {within:g} counts as right)" if within else answer.in_words
