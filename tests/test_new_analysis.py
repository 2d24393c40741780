"""From an idea to library, command, page and tests: at most 6 places, and no list that is kept by
hand.

An analysis is added to a copy of the project, by new files and the line that makes it a method: for
each token of a text, how often it stood there before.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 600
# What is added, by its place. All that lies in the room of a page is one place, and so is what lies
# in that of language models.
METHODS = "gptviz/language_model/language_model.py"
ROOM = "gptviz/ui/pages/repeats"
ADDED = {
    "gptviz/language_model/seen_before.py": '''
"""How often each token of a text stood there before."""

import numpy as np

from gptviz.labelled_array import Axis, LabelledArray

from .core import LoadedModel


def seen_before(lm: LoadedModel, prompt: str) -> LabelledArray:
    """How often each token of `prompt` stood there before: [token]."""
    ids = lm.inputs(prompt)[0].tolist()
    before = np.array([ids[:place].count(token) for place, token in enumerate(ids)])
    return LabelledArray(before, (Axis("token", tuple(map(lm.tokenizer.label, ids))),), "times")
''',
    "tests/test_seen_before.py": '''
"""How often each token stood there before."""

import gptviz
from tests.tiny import TinyModel


def test_the_third_of_three_equal_tokens_stood_there_twice(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="abc ")
    assert gptviz.load("mine").seen_before("abaa").values.tolist() == [0, 0, 1, 2]
''',
    "gptviz/ui/records/repeats.py": '''
"""The page Repeats."""

from gptviz.ui.page import DETAILS_BELOW, MODEL_ON_TOP, Page

PAGE = Page(
    name="repeats",
    title="Repeats",
    icon=":material/repeat:",
    group="Take it apart",
    place=45,
    question="Which tokens come back?",
    caption="A bar for each token of the text: how often the same token stood there before.",
    sentence="How often each token of a text stood there before.",
    step="Some heads look for what stood there before: see what there is to find.",
    words=("token", "prompt"),
    analysis="seen_before",
    tour=(MODEL_ON_TOP, "The bars: a token that comes back has a high one.", DETAILS_BELOW),
)
''',
    f"{ROOM}/bars.py": '''
"""The tokens of a text, and how often each stood there before."""

from gptviz.figures.kit.labelled import picture
from gptviz.language_model.seen_before import seen_before
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask
from gptviz.labelled_array import LabelledArray
from gptviz.ui.widgets import Try
from gptviz.ui.widgets.figure import show_figure, theme


def bars(subject: Subject) -> AskedAnalysis[LabelledArray]:
    """What was counted, as bars."""
    asked = ask(subject, seen_before, "Counting")
    show_figure(picture(asked.value, theme()), key="repeats", alt="How often each token stood there before.")
    return asked


def tries() -> list[Try]:
    """A text of a single token."""
    return [Try("The same again", "Every token but the first stood there before.", {"prompt": "aaaa"})]
''',
    f"{ROOM}/about.md": """
# Repeats

## How it is computed

For each token, the equal ones before it are counted.

## What it cannot tell you

Whether the model makes any use of them.
""",
    "pages/repeats.py": '''
"""Which tokens come back?"""

from gptviz.ui.records.repeats import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.repeats.bars import bars, tries
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar

subject = subject_bar()
asked = bars(subject)
close(PAGE, tries(), lambda: asked.value, asked.code("result"))
''',
    "tests/app/test_repeats_page.py": '''
"""The page Repeats, and the way to it."""

from gptviz.ui.menu import PAGES
from tests.app.opening import headings, opened
from tests.tiny import TinyModel


def test_the_page_shows_its_figure_its_words_and_its_tour(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="abc ")
    at = opened("pages/repeats.py", model="mine", prompt="abca")
    assert not at.exception
    assert at.title[0].value == PAGES["repeats"].question
    assert len(headings(at)) == 1
    said = " ".join(text.value for text in at.markdown)
    assert "**token**: A piece of text" in said
    assert "a token that comes back has a high one" in said
    assert "the equal ones before it are counted" in said


def test_the_menu_leads_to_it(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="abc ")
    assert "Repeats" in {link.proto.label for link in opened("app.py", model="mine").sidebar.get("page_link")}
''',
}
# The tests over all pages that are run for it too, and those in a browser, which are only looked
# up.
OVER_PAGES = (
    "test_kinds",
    "test_odd_models",
    "test_odd_prompts",
    "test_odd_addresses",
    "test_tries",
)
IN_A_BROWSER = ("test_pages", "test_accessibility")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the analysis in it."""
    copy = tmp_path_factory.mktemp("project")
    for folder in ("gptviz", "pages", "tests", "benchmarks"):
        # with what is compiled: to compile all of it again takes 10 seconds
        shutil.copytree(ROOT / folder, copy / folder)
    for file in ("app.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / file, copy)
    for folder in (".streamlit", "checkpoints"):
        (copy / folder).symlink_to(ROOT / folder)
    methods = copy / METHODS
    text = methods.read_text(encoding="utf-8")
    text = text.replace(
        "from .core import", "from .seen_before import seen_before\nfrom .core import"
    )
    text = text.replace(
        "    # What stands out.\n", "    seen_before = seen_before\n\n    # What stands out.\n"
    )
    methods.write_text(text, encoding="utf-8")
    for path, text in ADDED.items():
        assert not (copy / path).exists()
        (copy / path).parent.mkdir(exist_ok=True)
        (copy / path).write_text(text.lstrip(), encoding="utf-8")
    return copy


@pytest.fixture
def run(project: Path, home: Path) -> Callable[..., str]:
    """What Python prints where it runs in the copy with these arguments."""

    def one(*arguments: str) -> str:
        environment = {**os.environ, "GPTVIZ_HOME": str(home), "PYTHONPATH": str(project)}
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert ended.returncode == 0, ended.stdout[-3_000:] + ended.stderr[-3_000:]
        return ended.stdout

    return one


def test_an_analysis_takes_at_most_six_places() -> None:
    rooms = (ROOM, "gptviz/language_model")
    places = {next((room for room in rooms if path.startswith(room)), path) for path in ADDED}
    assert len(places) <= 6
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "From an idea to a page: at most 6 places" in guide


def test_the_command_line_finds_a_new_command(run: Callable[..., str]) -> None:
    assert "seen_before" in re.findall(r"^    (\w+)", run("-m", "gptviz", "--help"), re.MULTILINE)
    text = "a cab, a cab"
    content = json.loads(
        run("-m", "gptviz", "seen_before", "shakespeare", "--prompt", text, "--json")
    )
    assert content["values"] == [text[:place].count(letter) for place, letter in enumerate(text)]


FILES = [f"tests/app/{name}.py" for name in OVER_PAGES]


# One process for all of it: to import torch, Streamlit and the pages again takes seconds.
LOOK = """
import sys
import pytest
from benchmarks.pages import OPENED
from tests.browser.machinery import PAGES
from tests.browser.screenshots import PAGES as PICTURED

assert all("repeats" in names for names in (OPENED, PAGES, PICTURED))
quietly = ["-q", "-p", "no:cacheprovider"]
files, added = sys.argv[1].split(), sys.argv[2].split()
sys.exit(pytest.main([*quietly, "--collect-only", "-k", "repeats", *files]) or pytest.main([*quietly, *added]))
"""


@pytest.mark.full
def test_a_new_page_is_in_all_lists_of_tests_pictures_and_benchmarks_and_its_own_tests_pass(
    run: Callable[..., str],
) -> None:
    files = [*FILES, *(f"tests/browser/{name}.py" for name in IN_A_BROWSER)]
    said = run(
        "-c", LOOK, " ".join(files), " ".join(path for path in ADDED if path.startswith("tests/"))
    )
    assert {file for file in files if f"{file}:" in said} == set(files)


@pytest.mark.full
def test_a_new_page_passes_the_tests_over_all_pages(run: Callable[..., str]) -> None:
    run(*PYTEST, "-m", "not full", "-k", "repeats", *FILES)
    # It may need more lines than a room has left: its own commit would say why.
    files = ("tests/test_architecture.py", "tests/app/test_tour.py")
    run(*PYTEST, "-k", "not budget", *files)
