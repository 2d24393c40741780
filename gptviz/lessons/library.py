"""The lessons there are: those that come with gptviz, in their order, and those in the user's own folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gptviz.files import home

from .lesson import Lesson, LessonError, read_lesson

SHIPPED = Path(__file__).resolve().parent / "shipped"
FOLDER_SETTING = "GPTVIZ_LESSONS"
MOST_LESSONS = 200


@dataclass(frozen=True)
class Library:
    """Lessons in their order, and what could not be read.

    Attributes:
        lessons: by name.
        refused: for each file that is no lesson, why.
    """

    lessons: dict[str, Lesson]
    refused: dict[str, str]


def own_folder() -> Path:
    """The folder with the user's own lessons: `GPTVIZ_LESSONS`, else `lessons` in `GPTVIZ_HOME`."""
    return Path(os.environ.get(FOLDER_SETTING) or home() / "lessons").expanduser()


def library(*folders: Path) -> Library:
    """The lessons in these folders, by default the shipped ones and the user's own. Of two with one name the later one counts.

    In a folder they stand in the order of their files' names; a name such as `03-attention.md` begins with its number.
    """
    lessons: dict[str, Lesson] = {}
    refused: dict[str, str] = {}
    for folder in folders or (SHIPPED, own_folder()):
        for path in sorted(folder.glob("*.md"))[:MOST_LESSONS]:
            try:
                lessons[path.stem] = read_lesson(path)
            except LessonError as error:
                refused[path.name] = str(error)
    return Library(lessons, refused)
