"""The lessons there are: those that come with gptviz, in their order, and those in the user's own folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
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
    """The lessons in these folders or files, by default the shipped ones and the user's own.

    Of two with one name the later one counts. In a folder they stand in the order of their files' names; a name such as
    `03-attention.md` begins with its number.
    """
    lessons: dict[str, Lesson] = {}
    refused: dict[str, str] = {}
    for folder in folders or (SHIPPED, own_folder()):
        for path in [folder] if folder.is_file() else sorted(folder.glob("*.md"))[:MOST_LESSONS]:
            found = _read(path, _written(path))
            if isinstance(found, str):
                refused[path.name] = found
            else:
                lessons[path.stem] = found
    return Library(lessons, refused)


def _written(path: Path) -> tuple[int, int] | None:
    """When a file was written and how many bytes it has; None where that cannot be told."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


# To read YAML takes longer than to show a page. `written` is another value for another content of the file.
@lru_cache(maxsize=2 * MOST_LESSONS)
def _read(path: Path, written: tuple[int, int] | None) -> Lesson | str:
    """The lesson in a file, or why it is none."""
    try:
        return read_lesson(path)
    except LessonError as error:
        return str(error)
