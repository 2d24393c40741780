"""The tour of a page: every page has one, and the keys that it names exist in the scripts of the view."""

from __future__ import annotations

import ast
import json
import re

import pytest

from gptviz.ui.shell.pages import PAGES
from gptviz.ui.shell.tour import TOURS, Keys
from tests.app.opening import ROOT, opened


def test_every_page_has_a_tour_of_a_few_lines() -> None:
    assert set(TOURS) == set(PAGES)
    assert all(3 <= len(lines) <= 7 for lines in TOURS.values())


def texts(path: str) -> set[str]:
    """Every text in the code of a page: of its own, and of what all pages share."""
    name = path.removeprefix("pages/").removesuffix(".py").replace("app", "home")
    places = [
        path,
        f"gptviz/ui/pages/{name}.py",
        f"gptviz/ui/pages/{name}",
        "gptviz/ui/views",
        "gptviz/ui/shell",
        "gptviz/ui/widgets",
    ]
    files = [file for place in places for file in ([ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py"))]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files if file.exists() and file.name != "tour.py"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    scripts = [file.read_text(encoding="utf-8") for file in (ROOT / "gptviz/components").rglob("*.js")]
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)} | {
        text for script in scripts for text in re.findall(r'"([^"\n]*)"', script)
    }


@pytest.mark.parametrize("path", TOURS)
def test_a_part_that_a_tour_names_in_bold_is_called_so_on_its_page(path: str) -> None:
    named = {name for line in TOURS[path] if isinstance(line, str) for name in re.findall(r"\*\*(.+?)\*\*", line)}
    assert named <= texts(path), named - texts(path)


def test_most_tours_name_parts_of_their_page() -> None:
    own = [path for path, lines in TOURS.items() if any("**" in line for line in lines[1:] if isinstance(line, str))]
    assert len(own) > len(TOURS) / 2


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
