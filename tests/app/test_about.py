"""`about.md` of each page: how its views are computed, and what they cannot show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gptviz.ui.menu import PAGES
from gptviz.ui.page import Page
from gptviz.ui.shell.around.search import entries
from tests.app.opening import opened, says

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "gptviz/ui/pages").rglob("about.md"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_a_view_has_two_sections_and_all_that_is_written_is_read(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    about = PAGES[file.parent.name].about
    assert re.findall(r"^# (.+)", text, re.MULTILINE) == list(about)
    written = [part.strip() for part in re.split(r"^#.*", text, flags=re.MULTILINE) if part.strip()]
    assert written == [section for view in about.values() for section in view]


def test_only_pages_that_show_no_numbers_have_none() -> None:
    assert {page.name for page in PAGES.values() if not page.about} == {"home", "lessons"}


@pytest.mark.parametrize(
    "page", [PAGES["gradients"], PAGES["positions"]], ids=lambda page: page.name
)
def test_a_page_and_the_search_say_what_is_written(page: Page) -> None:
    said = says(opened(page.path))
    found = next(
        entry.more for entry in entries() if entry.kind == "Page" and entry.name == page.title
    )
    for section in page.about[page.title]:
        assert section.replace("\\", "") in said
        assert section in found
