"""The command `gallery`: lessons and pages as files that any web server or a folder can show."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gptviz.settings.fields import described

from .common import UsageError
from .lessons import content_of
from .options import Name, command
from .printing import CommandOutput, Lines

if TYPE_CHECKING:
    from gptviz.takehome.gallery import Exhibit
    from gptviz.takehome.live.page import LivePage

Folder = Annotated[Path, described("DIR")]
# A page is shown about one of these too: words are easy to read, and characters are of a real text.
ALSO_ABOUT = ("sentences", "shakespeare")
# The first prompt of models of texts.
BEGINNING = "O Romeo, Romeo! wherefore art thou "


@command(195, on_device=False)
def gallery(
    names: Sequence[Name] = (),
    /,
    *,
    out: Folder,
    only: Sequence[Name] = (),
    without_thumbnails: bool = False,
) -> CommandOutput:
    """Write all lessons and the best views of every page into a folder, which a browser shows
    without gptviz.

    Args:
        names: models of your own: the page “Try it” alone, about these; default: the gallery of all
            lessons and pages.
        out: the folder to write: a new one, or one with a gallery.
        only: only this lesson or page, as in 01-tokens or attention; may be given several times;
            default: all.
        without_thumbnails: write no small pictures; they are taken by a Chromium or Chrome of this
            machine, if there is one.
    """
    from gptviz.machine.memory import in_bytes
    from gptviz.settings.known_names import name_known
    from gptviz.takehome.gallery import browser, write_gallery
    from gptviz.takehome.live.page import NAME

    if names and only:
        raise UsageError("--only chooses from the whole gallery: leave it out, or the names")
    every = [] if names else [*_lessons(), *_pages()]
    known = list(dict.fromkeys((NAME, *(exhibit.of for exhibit in every))))
    for name in only:
        if name not in known:
            raise UsageError(
                f"there is no lesson and no page {name!r:.40}{name_known(name, known)}"
            )
    exhibits = [exhibit for exhibit in every if not only or exhibit.of in only]
    live: LivePage | None = None
    if names:
        live = _own(list(dict.fromkeys(names)))
    elif not only or NAME in only:
        live = _live()
    pictures = not without_thumbnails
    listed = len(exhibits) + (live is not None)
    for number, exhibit in enumerate(write_gallery(out, exhibits, live=live, thumbnails=pictures)):
        pictured = number + 1 - len(exhibits)
        if pictured <= 0:
            place = f"{number + 1} of {len(exhibits)}"
        else:
            place = f"small picture {pictured} of {listed}"
        print(f"{place}: {exhibit.title}", file=sys.stderr, flush=True)
    files = [
        f"{name}.html"
        for name in (*([NAME] if live else []), *(exhibit.name for exhibit in exhibits))
    ]
    written = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    lines: Lines = [
        f"The gallery is in {out / 'index.html'}: {len(files)} file{'s' * (len(files) != 1)} "
        f"beside it "
        f"({in_bytes(written)})"
    ]
    if pictures and browser() is None:
        lines.append("There are no small pictures: no Chromium or Chrome was found on this machine")
    return CommandOutput({"path": str(out.absolute()), "files": files, "bytes": written}, lines)


def _lessons() -> Iterator[Exhibit]:
    from gptviz.lessons.library import SHIPPED, library
    from gptviz.takehome.gallery import Exhibit

    for number, (name, lesson) in enumerate(library(SHIPPED).lessons.items(), 1):
        title = f"{number}. {lesson.title}"
        yield Exhibit(
            f"lesson-{name}",
            name,
            "Lessons",
            title,
            lesson.about,
            lambda one=lesson: content_of(one),  # type: ignore[misc]
        )


def _pages() -> Iterator[Exhibit]:
    """Each page as its picture shows it, in its other states, and about another model."""
    from gptviz.takehome.gallery import Exhibit
    from gptviz.takehome.live.page import VIEWS
    from gptviz.takehome.page import read_page
    from gptviz.ui.menu import PAGES

    for page in PAGES.values():
        if page.group == "Your models":
            continue  # about the models and runs of this machine
        first = {"model": page.opens_on} if page.opens_on else {}
        queries = [first | dict(page.pictured), *(first | dict(state) for state in page.states)]
        # “Try it” shows those about any model
        if page.has_model and "decoder" in page.kinds and page.name not in VIEWS:
            queries.append({"model": next(name for name in ALSO_ABOUT if name != page.opens_on)})
        for number, query in enumerate(queries):
            if number == 0:
                name = page.name
            else:
                name = f"{page.name}-{number + 1}"
            if number == 0:
                title = page.title
            else:
                title = f"{page.title}: {', '.join(query.values())}"
            yield Exhibit(
                name,
                page.name,
                page.group,
                title,
                page.sentence,
                lambda of=page.name, at=query: read_page(of, at),  # type: ignore[misc]
            )


def _live() -> LivePage:
    """The page “Try it”, about the decoders that ship: it opens on the small one whose words are
    easy to read.
    """
    from gptviz.runs import checkpoints

    shipped = [
        of
        for of in checkpoints.BUNDLED.iterdir()
        if (of / "config.json").is_file() and checkpoints.read_kind(of) == "decoder"
    ]
    folders = {folder.name: folder for folder in sorted(shipped)}
    names = [*ALSO_ABOUT, *(name for name in folders if name not in ALSO_ABOUT)]
    return _page({name: _prompt(folders[name]) for name in names}, ALSO_ABOUT[-1])


def _own(names: list[str]) -> LivePage:
    """The page “Try it” about these models; a UsageError names one that a browser cannot compute,
    and what it lacks.
    """
    from gptviz.runs import checkpoints

    page = _page({name: _prompt(checkpoints.find(name)) for name in names}, names[0])
    for name, lacking in page.missing_features.items():
        raise UsageError(f"{name} cannot be on the page “Try it”, which has no {lacking}")
    return page


def _page(prompts: dict[str, str], usual: str) -> LivePage:
    """The page “Try it” about models with these first prompts."""
    from gptviz.takehome.live.page import VIEWS, LivePage
    from gptviz.ui.menu import PAGES

    titles, captions = (
        {name: getattr(PAGES[name], words) for name in VIEWS} for words in ("title", "caption")
    )
    return LivePage(prompts, titles, captions, usual=usual)


def _prompt(folder: Path) -> str:
    """A first prompt for a model: an example of its task, or, for a model of texts, the beginning
    of one.
    """
    from gptviz.data.registry import source_from
    from gptviz.runs import checkpoints

    source = checkpoints.read_card(folder).source
    return (source_from(dict(source)).example if source and "task" in source else None) or BEGINNING
