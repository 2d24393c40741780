"""The command `lessons`: check that lessons work, or write one as a file to take home."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from gptviz.settings.fields import described

from .common import UsageError, require_place, write_whole
from .options import command
from .printing import CommandOutput, show

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel
    from gptviz.lessons.lesson import Lesson
    from gptviz.takehome.page import PageContent

MOST_MODELS = 4  # open at once


@command(190, on_device=False)
def lessons(
    action: Literal["check", "export"],
    what: Annotated[str, described("DIR|NAME")] | None = None,
    /,
    *,
    out: Path | None = None,
    options: Namespace,
) -> CommandOutput | None:
    """Check lessons: open every page of theirs, and compute every answer and every claim. Or write
    a lesson as one HTML file.

    Args:
        action: check: open every page, compute answers and claims; export: write a lesson, with its
            pages and answers, as one file.
        what: check: a folder with lessons, or one file; default: those that ship, and your own.
            export: the name of a lesson.
        out: export: the file to write; default: here, by the lesson's name.
    """
    if action == "check":
        _check(what, as_json=options.json)
        return None
    if what is None:
        raise UsageError(
            "name the lesson to export, for example: lessons export 01-tokens --out lesson.html"
        )
    return export(what, out)


@lru_cache(maxsize=MOST_MODELS)
def _open_model(name: str, step: int | None) -> LanguageModel:
    import gptviz

    return gptviz.load(name, "cpu", step)


def export(name: str, out: Path | None, *, for_course: bool = False) -> CommandOutput:
    """Write the lesson called `name` as one HTML file or, `for_course` sites, as a package of SCORM
    1.2, by default here, by its name; what the command prints of it.

    Raises:
        UsageError: there is no such lesson, or it is in a file that is no lesson.
        ValueError: a page of it cannot be opened, or a value cannot be computed.
    """
    from gptviz.languages import wanted
    from gptviz.lessons.library import library
    from gptviz.settings.known_names import name_known
    from gptviz.takehome.course import scorm_package
    from gptviz.takehome.page_file import as_html

    known = library().in_language(wanted())
    if why := known.faults.get(f"{name}.md"):
        raise UsageError(why)
    if (lesson := known.lessons.get(name)) is None:
        raise UsageError(f"there is no lesson {name!r:.40}{name_known(name, known.lessons)}")
    out = out or Path(f"{name}{'-scorm.zip' if for_course else '.html'}")
    require_place(out)
    content = content_of(lesson)
    html = as_html(content)
    written = scorm_package(content, html) if for_course else html
    return write_whole(out, written, f"The lesson {name}", {"lesson": name})


def content_of(lesson: Lesson) -> PageContent:
    """What a lesson shows as a file: see `lesson_content`."""
    from gptviz.lessons.quantities import Quantities
    from gptviz.lessons.real_model import about_what_is_open
    from gptviz.takehome.lesson_file import lesson_content

    lesson = about_what_is_open(lesson)
    return lesson_content(lesson, Quantities(_open_model, lesson.model).functions)


def _check(what: str | None, *, as_json: bool) -> None:
    from gptviz.lessons.checking import problems
    from gptviz.lessons.library import library
    from gptviz.lessons.quantities import Quantities
    from gptviz.lessons.real_model import about_what_is_open

    folder = None if what is None else Path(what)
    if folder is not None and not folder.exists():
        raise UsageError(
            f"there is no folder {folder}: name one with lessons, which are files whose names end "
            "in .md"
        )
    lessons = library() if folder is None else library(folder)
    if not lessons.lessons and not lessons.faults:
        raise UsageError(
            f"there are no lessons in {folder}: a lesson is a file whose name ends in .md"
        )
    lessons = replace(
        lessons,
        lessons={name: about_what_is_open(lesson) for name, lesson in lessons.lessons.items()},
    )
    for lesson in lessons.lessons.values():
        if lesson.any_decoder:
            about = (
                "no decoder of another program is open here: skipped with such a model, checked "
                f"with {lesson.model}"
            )
            print(f"{lesson.name}: {about}", file=sys.stderr)
    failed = list(problems(lessons, lambda lesson: Quantities(_open_model, lesson.model).functions))
    steps = [step for lesson in lessons.lessons.values() for step in lesson.steps]
    counts = {
        "lessons": len(lessons.lessons),
        "steps": len(steps),
        "questions": sum(len(step.questions) for step in steps),
        "claims": sum(len(step.claims) for step in steps),
    }
    last = ", ".join(
        f"{number} {name}" for name, number in (counts | {"problems": len(failed)}).items()
    )
    content = counts | {"failed": failed}
    show(
        CommandOutput(content, [*(problem.in_words for problem in failed), last]),
        as_json=as_json,
    )
    if failed:
        sys.exit(1)
