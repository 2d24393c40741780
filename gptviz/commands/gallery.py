"""The command `gallery`: lessons and pages as files that any web server or a folder can show."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .common import Command, UsageError, print_json
from .lessons import content_of

if TYPE_CHECKING:
    from gptviz.takehome.gallery import Exhibit

# A page is shown about one of these too: words are easy to read, and characters are of a real text.
ALSO_ABOUT = ("sentences", "shakespeare")


def _options(this: argparse.ArgumentParser) -> None:
    this.add_argument(
        "--out", type=Path, metavar="DIR", required=True, help="the folder to write: a new one, or one with a gallery"
    )
    only = "only this lesson or page, as in 01-tokens or attention; may be given several times; default: all"
    this.add_argument("--only", action="append", metavar="NAME", default=[], help=only)
    about = "write no small pictures; they are taken by a Chromium or Chrome of this machine, if there is one"
    this.add_argument("--without-thumbnails", action="store_true", help=about)


def run(options: argparse.Namespace) -> None:
    """The command `gallery --out DIR [--only NAME]… [--without-thumbnails] [--json]`."""
    from gptviz.machine.memory import in_bytes
    from gptviz.settings.known_names import instead
    from gptviz.takehome.gallery import browser, write_gallery

    every = [*_lessons(), *_pages()]
    known = list(dict.fromkeys(one.of for one in every))
    for name in options.only:
        if name not in known:
            raise UsageError(f"there is no lesson and no page {name!r:.40}{instead(name, known)}")
    exhibits = [one for one in every if not options.only or one.of in options.only]
    pictures = not options.without_thumbnails
    for number, exhibit in enumerate(write_gallery(options.out, exhibits, thumbnails=pictures)):
        what = "" if number < len(exhibits) else "small picture "
        said = f"{what}{number % len(exhibits) + 1} of {len(exhibits)}: {exhibit.title}"
        print(said, file=sys.stderr, flush=True)
    written = sum(file.stat().st_size for file in options.out.rglob("*") if file.is_file())
    if options.json:
        print_json({"path": str(options.out.absolute()), "files": [f"{one.name}.html" for one in exhibits], "bytes": written})
        return
    print(f"The gallery is in {options.out / 'index.html'}: {len(exhibits)} files beside it ({in_bytes(written)})")
    if pictures and browser() is None:
        print("There are no small pictures: no Chromium or Chrome was found on this machine")


def _lessons() -> Iterator[Exhibit]:
    from gptviz.lessons.library import SHIPPED, library
    from gptviz.takehome.gallery import Exhibit

    for number, (name, lesson) in enumerate(library(SHIPPED).lessons.items(), 1):
        title = f"{number}. {lesson.title}"
        yield Exhibit(f"lesson-{name}", name, "Lessons", title, lesson.about, lambda one=lesson: content_of(one))  # type: ignore[misc]


def _pages() -> Iterator[Exhibit]:
    """Each page as its picture shows it, in its other states, and about another model."""
    from gptviz.takehome.gallery import Exhibit
    from gptviz.takehome.page import read_page
    from gptviz.ui.menu import PAGES

    for page in PAGES.values():
        if page.group == "Your models":
            continue  # about the models and runs of this machine
        first = {"model": page.opens_on} if page.opens_on else {}
        queries = [first | dict(page.pictured), *(first | dict(state) for state in page.states)]
        if page.has_model and "decoder" in page.kinds:
            queries.append({"model": next(one for one in ALSO_ABOUT if one != page.opens_on)})
        for number, query in enumerate(queries):
            name = page.name if number == 0 else f"{page.name}-{number + 1}"
            title = page.title if number == 0 else f"{page.title}: {', '.join(query.values())}"
            yield Exhibit(name, page.name, page.group, title, page.sentence, lambda of=page.name, at=query: read_page(of, at))  # type: ignore[misc]


COMMAND = Command(
    "gallery",
    "Write all lessons and the best views of every page into a folder, which a browser shows without gptviz.",
    run,
    _options,
    place=195,
    on_device=False,
)
