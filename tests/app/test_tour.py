"""The tour of a page: every page has one, and the keys that it names exist in the scripts of the view."""

from __future__ import annotations

import json

import pytest

from gptviz.ui.shell.pages import PAGES
from gptviz.ui.shell.tour import TOURS, Keys
from tests.app.opening import ROOT, opened


def test_every_page_has_a_tour_of_a_few_lines() -> None:
    assert set(TOURS) == set(PAGES)
    assert all(3 <= len(lines) <= 7 for lines in TOURS.values())


KEYS = {(path, line) for path, lines in TOURS.items() for line in lines if isinstance(line, Keys)}


@pytest.mark.parametrize("line", sorted({line for _, line in KEYS}, key=repr), ids=lambda line: f"{line.view} {line.keys}")
def test_the_scripts_of_the_view_know_the_keys(line: Keys) -> None:
    scripts = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "gptviz/components" / line.view).glob("*.js"))
    for key in line.keys:
        assert json.dumps(key) in scripts or f"{key}:" in scripts, key


def test_the_tour_stands_on_the_page() -> None:
    at = opened("pages/lens.py", model="ladder-2")
    assert not at.exception
    assert any("a row for each layer" in text.value and "**↑**" in text.value for text in at.markdown)
