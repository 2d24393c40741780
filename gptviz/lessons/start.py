"""What the address of a server opens: a lesson, or a page as a link describes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl, urlsplit

from gptviz.machine.hosting import variable
from gptviz.machine.location import page_names
from gptviz.settings.known_names import name_known

from .checking import with_model
from .lesson import Lesson, PageState

# The key of an address that names the open lesson.
LESSON = "lesson"


def read_start(start: str, lessons: Mapping[str, Lesson]) -> PageState:
    """The page that the lesson of this name begins with, or that a link opens, such as
    "http://localhost:8501/attention?model=bpe" or "attention". A ValueError if it is neither.
    """
    if (lesson := lessons.get(start)) is not None:
        page = with_model(lesson.steps[0].page or PageState("home", {}), lesson)
        return PageState(page.page, {**page.query, LESSON: start})
    link = urlsplit(start)
    name = link.path.rstrip("/").rpartition("/")[2] or "home"
    if name not in page_names():
        raise ValueError(
            f"{variable('start')} is {start!r:.80}, which is no lesson and no link to a page"
            f"{name_known(name, [*lessons, *page_names()])}"
        )
    return PageState(name, dict(parse_qsl(link.query, keep_blank_values=True)))


def check_start(start: str, allowed: Collection[str] | None, lessons: Mapping[str, Lesson]) -> None:
    """A ValueError unless there is such a lesson or page, and all its pages are `allowed`; None
    allows all.
    """
    opens = read_start(start, lessons)
    pages = lessons[start].pages if start in lessons else {opens.page}
    if allowed is not None and (left_out := sorted(pages - set(allowed))):
        raise ValueError(
            f"{variable('start')} is {start!r:.80}, which opens {', '.join(left_out)}, and "
            f"{variable('only')} leaves that out: name it too"
        )
