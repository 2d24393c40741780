"""The gallery: lessons and pages as files beside each other, with one list of them, for any web
server or a folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import groupby
from pathlib import Path

from PIL import Image

from gptviz._version import __version__
from gptviz.machine.files import in_place_of

from .live.page import NAME, SCRIPTS, LivePage, write_live
from .page import Figure, PageContent, SavedView
from .page_file import HERE, as_html, fill_template, shared_scripts

# Where the scripts and the small pictures are that the files share.
SHARED = "shared"
THUMBNAILS = "thumbnails"
# Browsers that take a picture of a file from the command line.
BROWSERS = (
    "chromium",
    "chromium-browser",
    "chromium-headless-shell",
    "google-chrome",
    "chrome",
    "msedge",
)
WINDOW = (1280, 800)
THUMBNAIL = (480, 300)
# milliseconds of a page's own time until its picture is taken: what is drawn is drawn after half of
# it
LOOKS = 1_000
AT_ONCE = 2  # browsers that take pictures at the same time
LONGEST = 60  # seconds that a browser may take for a picture
MARK = '<meta name="generator" content="gptviz gallery'


@dataclass(frozen=True)
class Exhibit:
    """A file of the gallery."""

    name: str  #: of its file, without the ending
    of: str  #: the name of the lesson or of the page that it shows
    group: str  #: the heading that it stands under
    title: str  #: of its card
    about: str  #: the sentence on its card
    content: Callable[[], PageContent]  #: reads what it shows


TRY = Exhibit(
    *(NAME, NAME, "With your own prompt", "Try it"),
    "Type a text, and see tokens, guesses and attention of a model; train one, or bring your own: "
    "your browser computes it.",
    lambda: PageContent(NAME, {}, ()),  # it has no fixed content
)


def write_gallery(
    folder: Path,
    exhibits: Sequence[Exhibit],
    *,
    live: LivePage | None = None,
    thumbnails: bool = True,
) -> Iterator[Exhibit]:
    """Write the files of the exhibits, what they share, and `index.html`. Each exhibit is given
    once its file is written; then, if a browser takes small pictures, each once more when its
    picture was taken.

    Args:
        folder: a new or empty one, or one that has a gallery: its files of the same names are
            replaced.
        live: what the page “Try it” shows; None for no such page.
        thumbnails: whether a browser that is found on this machine takes a small picture of each.

    Raises:
        ValueError: the folder has other things in it.
        PageError: a page cannot be opened.
        OSError: a file cannot be written.
    """
    index = folder / "index.html"
    if (
        folder.exists()
        and any(folder.iterdir())
        and not (index.is_file() and MARK in index.read_text("utf-8", "replace"))
    ):
        raise ValueError(f"{folder} has other files in it: name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    needed: list[PageContent] = []
    for exhibit in exhibits:
        content = exhibit.content()
        _write(
            folder / f"{exhibit.name}.html",
            as_html(content, SHARED, None if live is None else live.address),
        )
        # The scripts that a page needs, without its data: those of sixty pages do not fit into
        # memory.
        views = {view.name for view in content.pieces_of(SavedView)}
        figures = (Figure("", ""),) if content.pieces_of(Figure) else ()
        needed.append(
            PageContent(content.name, {}, (*(SavedView(view, b"") for view in views), *figures))
        )
        yield exhibit
    if live is not None:
        needed.append(PageContent(NAME, {}, tuple(SavedView(view, b"") for view in SCRIPTS)))
        write_live(folder, SHARED, live)
    (folder / SHARED).mkdir(exist_ok=True)
    for name, script in shared_scripts(needed).items():
        _write(folder / SHARED / name, script)
    listed = [*([] if live is None else [TRY]), *exhibits]
    shown = set()
    for exhibit, has_picture in _thumbnails(folder, listed) if thumbnails else ():
        shown |= {exhibit.name} if has_picture else set()
        yield exhibit
    sections = []
    for group, some in groupby(listed, lambda exhibit: exhibit.group):
        cards = "\n".join(_card(exhibit, exhibit.name in shown) for exhibit in some)
        sections.append(f"<h2>{escape(group)}</h2>\n<ul>\n{cards}\n</ul>")
    _write(
        index,
        fill_template(
            HERE / "gallery.html", mark=f'{MARK} {__version__}">', sections="\n".join(sections)
        ),
    )


def _write(path: Path, text: str) -> None:
    with in_place_of(path.absolute()) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def browser() -> str | None:
    """A browser of this machine that takes pictures from the command line, or None."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def _thumbnails(folder: Path, exhibits: Sequence[Exhibit]) -> Iterator[tuple[Exhibit, bool]]:
    """Take a small picture of each file; each exhibit with whether it has one."""
    program = browser()
    if program is None:
        return
    (folder / THUMBNAILS).mkdir(exist_ok=True)
    with ThreadPoolExecutor(AT_ONCE) as browsers:
        yield from zip(
            exhibits, browsers.map(partial(_thumbnail, program, folder), exhibits), strict=True
        )


def _thumbnail(program: str, folder: Path, exhibit: Exhibit) -> bool:
    """Take a small picture of a file; whether there is one now. What has no picture is shown
    without one.
    """
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary,
        suppress(OSError, subprocess.SubprocessError),
    ):
        picture = Path(temporary, "picture.png")
        command = [
            *(
                program,
                "--headless",
                "--hide-scrollbars",
                "--disable-gpu",
                f"--user-data-dir={temporary}/profile",
            ),
            # as root it has none
            *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
            *(
                f"--window-size={WINDOW[0]},{WINDOW[1]}",
                f"--virtual-time-budget={LOOKS}",
                f"--screenshot={picture}",
            ),
            (folder / f"{exhibit.name}.html").absolute().as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=LONGEST)
        with Image.open(picture) as taken:
            small = taken.convert("RGB").resize(THUMBNAIL, Image.Resampling.LANCZOS)
        small.save(folder / THUMBNAILS / f"{exhibit.name}.webp", quality=70)
        return True
    return False


def _card(exhibit: Exhibit, has_picture: bool) -> str:
    source = f"{THUMBNAILS}/{exhibit.name}.webp"
    width, height = THUMBNAIL
    if has_picture:
        picture = f'<img src="{source}" alt="" width="{width}" height="{height}" loading="lazy">'
    else:
        picture = ""
    return (
        "<li><a "
        f'href="{exhibit.name}.html">{picture}<b>{escape(exhibit.title)}</b></a><p>{escape(exhibit.about)}</p></li>'
    )
