"""A lesson in another language: the texts of its catalogue of gettext, `NAME.LANGUAGE.mo` beside
it.

Its steps, pages, pictures, questions, claims and answers are those of the lesson. A translation has
the same expressions, links, pictures and code as its text, or it is not taken, so that it can say
nothing else than the model does. What a catalogue lacks stays English, and is counted.
"""

from __future__ import annotations

import gettext
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from struct import error as DamagedError

from gptviz.machine.bounded import read_regular

from .lesson import EXPRESSION, LARGEST_FILE, Lesson, LessonStep, Question

#: what is said of a translation that lacks a text
LATE = "This translation lags behind its lesson: what it lacks is shown in English."
Translate = Callable[[str], str]
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
# What a translation may not change: code, and where links and pictures lead.
_FIXED = re.compile(r"`[^`]+`|(?<=\]\()[^)\s]+")
_LANGUAGE = re.compile(r"[a-z]{2,3}")


def texts_of(lesson: Lesson) -> list[str]:
    """The texts of a lesson that a translation has: title, sentence, and of each step its title,
    its paragraphs and those of its questions, each once and without line breaks.
    """
    found: dict[str, None] = {}

    def note(text: str) -> str:
        found[text] = None
        return text

    _with_texts(lesson, note)
    return list(found)


def catalogues(lesson: Path) -> Iterator[tuple[str, Translate]]:
    """The languages of the catalogues beside the file of a lesson. A damaged one is none."""
    for path in sorted(lesson.parent.glob(f"{lesson.stem}.*.mo")):
        language = path.name.removeprefix(f"{lesson.stem}.").removesuffix(".mo")
        try:
            content = io.BytesIO(read_regular(path, LARGEST_FILE))
            # GNUTranslations reads only one file, and runs nothing of it
            translations = gettext.GNUTranslations(content)
            translations.add_fallback(_Nothing())
        except (OSError, ValueError, LookupError, DamagedError):
            continue
        if _LANGUAGE.fullmatch(language):
            yield language, translations.gettext


class _Nothing(gettext.NullTranslations):
    """What a catalogue lacks is empty."""

    def gettext(self, message: str) -> str:
        """No text."""
        return ""


def translated_lesson(lesson: Lesson, language: str, translate: Translate) -> Lesson:
    """The lesson in another language, with the number of texts that its catalogue lacks."""
    missing = set[str]()

    def checked(text: str) -> str:
        translated = translate(text)
        if not translated or why_not(text, translated):
            missing.add(text)
            return text
        return translated

    shown = _with_texts(lesson, checked)
    return replace(shown, language=language, missing=len(missing))


def why_not(text: str, translated: str) -> str | None:
    """The reason why a translation is not taken, or None: it must have the same expressions, code,
    links and pictures as the text.
    """
    for what, pattern in (("expressions", EXPRESSION), ("code, links and pictures", _FIXED)):
        here, there = (Counter(pattern.findall(one)) for one in (text, translated))
        if here != there:
            changed = ", ".join(map(str, (here - there) or (there - here)))
            return f"its {what} are not those of the text: {changed:.120}"
    return None


def _with_texts(lesson: Lesson, translate: Translate) -> Lesson:
    """The lesson with each of its texts as `translate` gives it."""
    return replace(
        lesson,
        title=translate(lesson.title),
        about=translate(lesson.about),
        steps=tuple(_step(step, translate) for step in lesson.steps),
    )


def _step(step: LessonStep, translate: Translate) -> LessonStep:
    page = step.page
    return replace(
        step,
        title=translate(step.title),
        text=_paragraphs(step.text, translate),
        page=None if page is None else replace(page, look_at=_one(page.look_at, translate)),
        questions=tuple(_question(question, translate) for question in step.questions),
    )


def _question(question: Question, translate: Translate) -> Question:
    return replace(
        question,
        ask=_paragraphs(question.ask, translate),
        # an option without letters, such as a number, is the same in all languages
        shown=tuple(_one(option, translate) for option in question.options),
        unit=_one(question.unit, translate),
        hint=_paragraphs(question.hint, translate),
        reveal=_paragraphs(question.reveal, translate),
    )


def _paragraphs(text: str, translate: Translate) -> str:
    return "\n\n".join(_one(one, translate) for one in _PARAGRAPHS.split(text))


def _one(text: str, translate: Translate) -> str:
    """One text: to its catalogue it is one line, so that its lines may be broken anew."""
    line = " ".join(text.split())
    if not any(character.isalpha() for character in line):
        return text
    translated = translate(line)
    return text if translated == line else translated
