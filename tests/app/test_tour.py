"""What every page explains of itself: a tour, with keys that exist in the scripts of the view, and
its words.
"""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from gptviz.components import kit
from gptviz.ui.menu import PAGES
from gptviz.ui.page import MODEL_ON_TOP, Keys, Page
from gptviz.ui.shell.around import tour
from gptviz.ui.widgets.words import MEANINGS
from tests.app.opening import ROOT, opened


def test_every_page_has_a_tour_of_a_few_lines() -> None:
    assert [page.name for page in PAGES.values() if not 3 <= len(page.tour) <= 7] == []


@cache
def texts_in(place: Path) -> set[str]:
    """Every text in the code of a file, or of all files of a folder."""
    files = [place] if place.suffix else [*place.rglob("*.py")]
    nodes = [
        node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    ]
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@cache
def texts_in_scripts() -> set[str]:
    scripts = [
        file.read_text(encoding="utf-8") for file in (ROOT / "gptviz/components").rglob("*.js")
    ]
    return {text for script in scripts for text in re.findall(r'"([^"\n]*)"', script)}


def texts(page: Page) -> set[str]:
    """Every text in the code of a page, of its own and of what all pages share, and in the scripts
    of the views.
    """
    own = (page.path, f"gptviz/ui/records/{page.name}.py", f"gptviz/ui/pages/{page.name}")
    places = (
        *own,
        "gptviz/ui/views",
        "gptviz/ui/shell",
        "gptviz/ui/widgets",
        "gptviz/settings/kinds.py",  # the names of settings that controls share with the library
    )
    return texts_in_scripts().union(*(texts_in(ROOT / place) for place in places))


def bold(page: Page) -> set[str]:
    """The words that the tour of a page writes in bold."""
    return {
        name
        for line in page.tour
        if isinstance(line, str)
        for name in re.findall(r"\*\*(.+?)\*\*", line)
    }


def test_a_part_that_a_tour_names_in_bold_is_called_so_on_its_page() -> None:
    unknown = {page.name: bold(page) - texts(page) for page in PAGES.values()}
    assert {name: parts for name, parts in unknown.items() if parts} == {}


def test_most_tours_name_parts_of_their_page() -> None:
    shared = set.intersection(*(bold(page) for page in PAGES.values() if MODEL_ON_TOP in page.tour))
    assert sum(bool(bold(page) - shared) for page in PAGES.values()) > len(PAGES) / 2


KEYS = {
    line for page in PAGES.values() for line in (*page.tour, tour.SEARCH) if isinstance(line, Keys)
}


@pytest.mark.parametrize(
    "line", sorted(KEYS, key=repr), ids=lambda line: f"{line.view} {line.keys}"
)
def test_the_scripts_of_the_view_know_the_keys(line: Keys) -> None:
    script = kit.script(kit.FOLDER.parent / line.view)
    for key in line.keys:
        assert json.dumps(key) in script or f"{key}:" in script, key


def test_keys_are_written_as_on_a_keyboard() -> None:
    keys = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", " ", "Enter")
    assert (
        tour._line(Keys("", keys, "walk"))
        == "Keys **↑** **↓** **←** **→** **Space** **Enter**: walk."
    )


def test_every_page_has_words_that_are_explained_and_no_explanation_is_left_over() -> None:
    assert {word for page in PAGES.values() for word in page.words} == set(MEANINGS)
    for page in PAGES.values():
        assert page.words, page.name
        assert len(page.words) == len(set(page.words)), page.name


def test_tour_and_words_stand_on_the_page() -> None:
    at = opened("pages/lens.py", model="ladder-2")
    assert any(
        "a row for each layer" in text.value and "**↑**" in text.value for text in at.markdown
    )
    assert any("Key **/**" in text.value for text in at.markdown), "of the search"
    word, meaning = next((word, MEANINGS[word]) for word in PAGES["lens"].words)
    assert any(f"**{word}**: {meaning}" in text.value for text in at.markdown)
