"""What the address of a server opens: a lesson, or a page as a link describes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl, urlsplit

from gptviz.machine.hosting import variable
from gptviz.machine.location import page_names
from gptviz.settings.known_names import name_known

from .lesson import Lesson, PageState


def read_start(start: str, lessons: Mapping[str, Lesson]) -> Lesson | PageState:
    """The lesson of this name, or the page that a link opens, such as
    "http://localhost:8501/attention?model=bpe" or "attention". A ValueError if it is neither.
    """
    if start in lessons:
        return lessons[start]
    link = urlsplit(start)
    page = link.path.rstrip("/").rpartition("/")[2] or "home"
    if page not in page_names():
        raise ValueError(
            f"{variable('start')} is {start!r:.80}, which is no lesson and no link to a page"
            f"{name_known(page, [*lessons, *page_names()])}"
        )
    return PageState(page, dict(parse_qsl(link.query, keep_blank_values=True)))


def check_start(
    start: str, allowed_pages: Collection[str] | None, lessons: Mapping[str, Lesson]
) -> None:
    """A ValueError unless there is such a lesson or page, and all its pages are allowed; None
    allows all.
    """
    opens = read_start(start, lessons)
    pages = opens.pages if isinstance(opens, Lesson) else {opens.page}
    if allowed_pages is None:
        return
    if left_out := sorted(pages - set(allowed_pages)):
        raise ValueError(
            f"{variable('start')} is {start!r:.80}, which opens {', '.join(left_out)}, and "
            f"{variable('only')} leaves that out: name it too, as in "
            f"{','.join(sorted(pages | set(allowed_pages)))}"
        )
