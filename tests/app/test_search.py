"""What the search finds: all that has a name, from its own record; tests/browser/test_search.py has
how it is found.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from gptviz.commands import COMMANDS
from gptviz.lessons.library import library
from gptviz.runs import checkpoints
from gptviz.ui.menu import PAGES
from gptviz.ui.shell.around.search import Entry, entries
from gptviz.ui.widgets.words import MEANINGS
from tests.app.opening import opened
from tests.browser.machinery import HOSTILE
from tests.tiny import TinyModel


def named(kind: str) -> dict[str, Entry]:
    """The entries of a kind by their names."""
    return {entry.name: entry for entry in entries() if entry.kind == kind}


def query(entry: Entry) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(entry.address).query).items()}


def test_all_that_has_a_name_can_be_found_by_it(home: Path) -> None:
    lessons = library().lessons.values()
    assert {page.title for page in PAGES.values()} <= named("Page").keys()
    assert named("Lesson").keys() == {one.title for one in lessons} | {
        step.title for one in lessons for step in one.steps
    }
    assert named("Word").keys() == MEANINGS.keys()
    assert named("Model").keys() == checkpoints.folders().keys()
    assert named("Command").keys() == {f"python -m gptviz {command.name}" for command in COMMANDS}


def test_each_address_opens_the_thing(home: Path) -> None:
    assert {urlsplit(entry.address).path for entry in entries() if entry.kind != "Command"} <= {
        f"./{'' if name == 'home' else name}" for name in PAGES
    }
    for word, entry in named("Word").items():
        assert word in PAGES[entry.address.removeprefix("./") or "home"].words
    for name, entry in named("Model").items():
        assert query(entry) == {"model": name}
    for name, entry in named("Lesson").items():
        lesson = library().lessons[query(entry)["lesson"]]
        number = int(query(entry)["lesson_step"])
        assert name in (lesson.title, lesson.steps[number - 1].title)


def test_a_head_that_a_lesson_shows_has_an_address_with_its_model_its_block_and_its_number(
    home: Path,
) -> None:
    heads = named("Head")
    asked = query(heads["induction, block 1, head 2"])
    assert (asked["model"], asked["block"], asked["head"]) == ("induction", "1", "2")
    for entry in heads.values():
        config = checkpoints.read_config(checkpoints.find(query(entry)["model"]))
        assert int(query(entry)["block"]) < config.n_layer
        assert int(query(entry)["head"]) < config.n_head


def test_induction_leads_to_heads_on_that_model_to_a_lesson_and_to_the_word(home: Path) -> None:
    found = {
        (one.kind, one.name)
        for one in entries()
        if "induction" in " ".join([one.name, one.about, one.more])
    }
    assert {
        ("Page", "Heads on induction"),
        ("Lesson", "A head that finds what came before"),
        ("Word", "induction head"),
        ("Model", "induction"),
        ("Head", "induction, block 1, head 2"),
        ("Command", "python -m gptviz heads"),
    } <= found


def test_a_lesson_is_found_by_the_number_that_it_has_on_its_page_before_all_steps_with_that_number(
    home: Path,
) -> None:
    for number, lesson in enumerate(library().lessons.values(), 1):
        asked = "lesson", f"{number}"
        found = [
            one
            for one in entries()
            if all(word in f"{one.name} {one.about}".lower() for word in asked)
        ]
        assert found[0].name == lesson.title


def test_a_model_with_a_hostile_name_and_one_with_a_damaged_card_are_found_and_break_no_page(
    tiny_model: TinyModel,
) -> None:
    folder = tiny_model()
    shutil.copytree(folder, folder.with_name(HOSTILE[0]))
    (folder / "card.json").write_text("{")
    models = named("Model")
    assert HOSTILE[0] in models
    assert models["tiny"].about == "Its files cannot be read."
    assert len(opened("pages/lens.py", model="tiny").error) == 1
