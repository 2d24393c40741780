"""All lessons: those that come with gptviz, in their order, and those in the user's own folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gptviz.machine.files import home, kept_until_written

from .lesson import FIRST_STEPS, Lesson, LessonError, read_lesson, shown_name
from .pictures import with_pictures
from .translation import catalogues, translated_lesson

SHIPPED = Path(__file__).resolve().parent / "shipped"
FOLDER_SETTING = "GPTVIZ_LESSONS"
MOST_LESSONS = 200
PERIOD = 45  # minutes of a lesson at school


@dataclass(frozen=True)
class Library:
    """Lessons in their order, and files that could not be read."""

    lessons: dict[str, Lesson]  #: by name
    faults: dict[str, str]  #: for each file that is no lesson, the reason

    def in_language(self, languages: Sequence[str]) -> Library:
        """The same lessons, each in the first of these languages that it is translated into;
        English, in which all are written, ends the search.
        """
        lessons = {
            name: next(
                (
                    one
                    for language in languages
                    if (one := {**lesson.translations, lesson.language: lesson}.get(language))
                ),
                lesson,
            )
            for name, lesson in self.lessons.items()
        }
        return replace(self, lessons=lessons)

    @property
    def path(self) -> tuple[Lesson, ...]:
        """A way through the first steps, in their order, that takes `PERIOD` minutes at most."""
        path: list[Lesson] = []
        for lesson in self.lessons.values():
            if (
                lesson.level == FIRST_STEPS
                and sum(taken.minutes for taken in path) + lesson.minutes <= PERIOD
            ):
                path.append(lesson)
        return tuple(path)


def own_folder() -> Path:
    """The folder with the user's own lessons: `GPTVIZ_LESSONS`, else `lessons` in `GPTVIZ_HOME`."""
    return Path(os.environ.get(FOLDER_SETTING) or home() / "lessons").expanduser()


def library(*folders: Path) -> Library:
    """The lessons in these folders or files, by default the shipped ones and the user's own.

    If two have the same name, the later one counts. The lessons of a folder are in the order of
    their files' names; a name such as `03-attention.md` begins with its number.
    """
    lessons: dict[str, Lesson] = {}
    faults: dict[str, str] = {}
    for folder in folders or (SHIPPED, own_folder()):
        for path in [folder] if folder.is_file() else sorted(folder.glob("*.md"))[:MOST_LESSONS]:
            lesson = _read_lesson(path)
            if isinstance(lesson, str):
                faults[shown_name(path)] = lesson
            else:
                lessons[path.stem] = lesson
    return Library(lessons, faults)


# Reading YAML takes longer than showing a page.
@kept_until_written("", most=2 * MOST_LESSONS)
def _read_lesson(path: Path) -> Lesson | str:
    """The lesson in a file, or the reason why it is not one."""
    try:
        lesson = read_lesson(path)
        translations = {
            language: with_pictures(translated_lesson(lesson, language, translate), path.parent)
            for language, translate in catalogues(path)
        }
        return replace(with_pictures(lesson, path.parent), translations=translations)
    except LessonError as error:
        return str(error)
