"""The site of `make site`: it is built strictly, documents every command, option, word and public
name, and asks nobody else.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gptviz
from gptviz.__main__ import parser
from gptviz.ui.menu import PAGES
from gptviz.ui.widgets.words import MEANINGS

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    # strict: a warning is an error
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(build, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def text_of(page: Path) -> str:
    """What a reader of a page reads."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))).split())


def test_every_command_and_every_option_is_there(site: Path) -> None:
    said = text_of(site / "command-options.html")
    (commands,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    for command in commands.choices.values():
        shown = [one for one in command._actions if one.help and one.help is not argparse.SUPPRESS]
        assert shown
        assert all(option in said for one in shown for option in one.option_strings)


def test_every_word_and_every_public_name_is_there(site: Path) -> None:
    words = text_of(site / "words.html")
    library = (site / "reference.html").read_text(encoding="utf-8")
    assert all(" ".join(one.split()) in words for each in MEANINGS.items() for one in each)
    public = [
        getattr(gptviz.LanguageModel, name)
        for name in dir(gptviz.LanguageModel)
        if not name.startswith("_")
    ]
    assert len(public) > 20
    for each in (
        gptviz.LanguageModel,
        gptviz.load,
        *(getattr(value, "fget", value) for value in public),
    ):
        assert f'id="{each.__module__}.{each.__qualname__}"' in library
    assert 'id="gptviz.takehome.show.show"' in library


def test_what_pages_say_of_how_they_compute_is_there_with_its_equations_drawn(site: Path) -> None:
    page = site / "how-it-is-computed.html"
    said = text_of(page)
    explained = [about for page in PAGES.values() for about in page.about.values()]
    assert len(explained) > 25
    plain = [re.split(r"[*`$\n]", about.limits)[0].strip() for about in explained]
    assert [text for text in plain if text not in said] == []
    assert "$" not in said
    assert page.read_text(encoding="utf-8").count("<math") == sum(
        about.how.replace("$$", "$").count("$") // 2 for about in explained
    )


def test_nothing_is_asked_of_other_places(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        parts = re.findall(r"<(?:script|img|iframe|link)\b[^>]*>", page.read_text(encoding="utf-8"))
        assert parts
        assert not [
            part for part in parts if re.search(r"""(?:src|href)=["']?(?:\w+:)?//""", part)
        ], page
