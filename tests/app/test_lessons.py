"""Lessons as a reader meets them, without a browser: the text beside the page, questions, and the
way from step to step.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlparse

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.ui.menu import PAGES
from gptviz.ui.shell.around import take_home
from gptviz.ui.shell.around.lesson import HINTED, RIGHT, WRONG, OpenLesson, lessons, told_key
from tests.app.opening import opened
from tests.tiny import TinyModel

pytestmark = pytest.mark.usefixtures("fresh_caches")

LESSON = """---
title: A lesson of a teacher
about: A sentence.
model: ladder-2
---

## First
It has {{ parameters() }} numbers.

```page
open: positions
model: ladder-2
look_at: Look here.
```

```question
ask: How many numbers?
kind: number
answer: parameters()
within: 10
unit: numbers
hint: More than {{ 10 * 10 }}.
claim: parameters() > 100
reveal: "Exactly {{ parameters() }}."
```

```question
ask: Which letter is likeliest?
kind: token
answer: likeliest("a")
```

## Second
```page
open: attention
block: 0
```

```question
ask: Which is it?
kind: choice
options: ["0", "1"]
answer: "0 + 1"
```

```question
ask: Choose block 0.
kind: state
state: block
answer: "0"
```
"""


@pytest.fixture(autouse=True)
def _own(home: Path) -> None:
    (home / "lessons").mkdir()
    (home / "lessons" / "teacher.md").write_text(LESSON, encoding="utf-8")


def says(at: AppTest) -> str:
    elements = [
        *at.sidebar.markdown,
        *at.sidebar.info,
        *at.sidebar.success,
        *at.sidebar.warning,
        *at.sidebar.caption,
    ]
    return "\n".join(
        [*(sheet.label for sheet in at.sidebar.expander), *(element.value for element in elements)]
    )


def check(at: AppTest, number: int) -> AppTest:
    return [button for button in at.sidebar.button if button.label == "Check"][number].click().run()


def links(at: AppTest) -> dict[str, str]:
    html = " ".join(element.value for element in at.sidebar.get("html"))
    return {
        label: address
        for address, label in re.findall(r'href="([^"]*)">([^<]*)</a>', html.replace("&amp;", "&"))
    }


def test_the_step_that_the_address_names_stands_beside_its_page() -> None:
    at = opened("pages/positions.py", model="ladder-2", lesson="teacher", lesson_step="1")
    said = says(at)
    n_parameter = sum(parameter.numel() for parameter in gptviz.load("ladder-2").model.parameters())
    assert "A lesson of a teacher" in said
    assert f"It has {n_parameter} numbers" in said
    assert "Look here" in said
    assert "Exactly" not in said  # before the reader has answered


def test_an_answer_is_judged_by_the_model_and_stands_in_the_address() -> None:
    at = opened("pages/positions.py", model="ladder-2", lesson="teacher", lesson_step="1")
    lm = gptviz.load("ladder-2")
    n_parameter = sum(parameter.numel() for parameter in lm.model.parameters())
    check(at, 0)
    assert "a guess is fine" in says(at)
    at.sidebar.number_input[0].set_value(n_parameter + 11)
    check(at, 0)
    assert "Not yet. More than 100. Try once more." in says(at)
    assert "Not quite" not in says(at), "the answer is not shown before the second try"
    assert at.query_params["lesson_done"] == "1.1h"
    assert any("0 of 4 answered" in element.proto.text for element in at.sidebar.get("progress"))
    assert re.search(r"Not quite: it is \S+ numbers", says(check(at, 0)))
    assert "Not yet" not in says(at)
    assert at.query_params["lesson_done"] == "1.1w"
    at.sidebar.number_input[0].set_value(n_parameter - 10)
    assert re.search(
        rf"That is right: it is \S+ numbers\. Exactly {n_parameter}", says(check(at, 0))
    )
    best = lm.tokenizer.label(int(lm.trace("a", ["logits"])["logits"][0, -1].argmax()))
    at.sidebar.text_input[0].set_value(best)
    check(at, 1)
    assert at.query_params["lesson_done"] == "1.1r-1.2r"
    again = opened("pages/positions.py", lesson="teacher", lesson_step="1", lesson_done="1.1r-1.2w")
    assert "That is right" in says(again)
    assert "Not quite" in says(again)
    tried = opened("pages/positions.py", lesson="teacher", lesson_step="1", lesson_done="1.1h")
    assert "Not yet. More than 100." in says(tried)
    tried.sidebar.number_input[0].set_value(n_parameter)
    assert "That is right" in says(check(tried, 0))
    assert tried.query_params["lesson_done"] == "1.1r"


def test_next_leads_to_the_page_of_the_next_step_with_all_that_was_answered() -> None:
    at = opened(
        "pages/positions.py",
        model="ladder-2",
        lesson="teacher",
        lesson_step="1",
        lesson_done="1.1r",
    )
    address = urlparse(links(at)["Next"])
    assert address.path == "./attention"
    asked = {name: values[0] for name, values in parse_qs(address.query).items()}
    assert asked == {
        "model": "ladder-2",
        "block": "0",
        "lesson": "teacher",
        "lesson_step": "2",
        "lesson_done": "1.1r",
    }
    then = opened("pages/attention.py", **asked)
    assert "Second" in says(then)
    assert "Back" in links(then)
    then.sidebar.radio[0].set_value("1")
    assert "That is right" in says(check(then, 0))


@pytest.mark.parametrize(
    ("block", "said"),
    [("0", "Choose it on the page first"), ("1", "Not quite: it is “2”"), ("2", "That is right")],
)
def test_a_question_about_the_page_is_answered_by_its_address(
    home: Path, block: str, said: str
) -> None:
    """But not by what the step itself opened."""
    asked = LESSON.replace("Choose block 0.", "Choose block 2.").replace(
        'state: block\nanswer: "0"', "state: block\nanswer: 1 + 1"
    )
    (home / "lessons" / "teacher.md").write_text(asked, encoding="utf-8")
    at = opened("pages/positions.py", model="ladder-8", lesson="teacher", lesson_step="2")
    at.session_state[told_key("teacher 1 1")] = {"block": block}  # as the button sends it, once
    assert said in says(at.run())
    assert "Choose it on the page first" not in says(at.run())


def test_every_link_of_the_menu_carries_the_lesson_until_it_is_left() -> None:
    at = opened("pages/positions.py", model="ladder-2", lesson="teacher", lesson_step="2")
    menu = {
        link.proto.label: parse_qs(link.proto.query_string) for link in at.sidebar.get("page_link")
    }
    assert menu["Embeddings"]["lesson"] == ["teacher"]
    next(button for button in at.sidebar.button if button.label == "Leave the lesson").click().run()
    assert "A lesson of a teacher" not in says(at)
    assert "lesson" not in at.query_params
    assert all("lesson=" not in link.proto.query_string for link in at.sidebar.get("page_link"))


def test_the_page_lists_lessons_in_their_order_and_names_files_that_are_none(home: Path) -> None:
    (home / "lessons" / "broken.md").write_text("nothing")
    at = opened("pages/lessons.py")
    listed = [
        re.sub("<[^>]*>", " ", element.value)
        for element in at.main.get("html")
        if "lesson-about" in element.value
    ]
    assert len(listed) == len(lessons().lessons)
    assert "A lesson of a teacher" in listed[-1]
    assert any("broken" in element.value for element in at.error)
    assert not any("Based on" in caption.value for caption in at.main.caption), (
        "the lesson itself says it at its end"
    )


def test_minutes_level_and_a_picture_are_on_each_card_and_a_period_is_named_at_the_top() -> None:
    at = opened("pages/lessons.py")
    found = lessons()
    pictures = [
        element.value for element in at.main.markdown if element.value.startswith(":material/")
    ]
    assert pictures[0] == PAGES["tokens"].icon
    assert pictures[-1] == PAGES["positions"].icon
    cards = [
        caption.value
        for caption in at.main.caption
        if " minutes, " in caption.value and " step" in caption.value
    ]
    assert cards[0].startswith("First steps, 10 minutes, ")
    assert cards[-1].startswith("5 minutes, 2 steps"), "a lesson may say no level"
    (path,) = [element.value for element in at.main.get("html") if "lesson-path" in element.value]
    assert re.findall(r"lesson=([\w-]+)&", path) == [lesson.name for lesson in found.path]
    assert f"in all {sum(lesson.minutes for lesson in found.path)} minutes" in path


def test_a_lesson_is_done_at_its_end_when_all_its_questions_are_answered() -> None:
    lesson = lessons().lessons["teacher"]
    every = {(0, 0): RIGHT, (0, 1): WRONG, (1, 0): RIGHT, (1, 1): RIGHT}
    assert OpenLesson(lesson, 1, every).is_done
    assert not OpenLesson(lesson, 0, every).is_done
    assert not OpenLesson(lesson, 1, every | {(0, 1): HINTED}).is_done
    assert not OpenLesson(lesson, 1, {}).is_done
    some = OpenLesson(lesson, 1, {(0, 0): WRONG})
    assert some.address.startswith("./attention?"), "the page that was opened last"
    assert "lesson_done=1.1w" in some.address


def test_a_lesson_is_written_as_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **how: object) -> SimpleNamespace:
        commands.append(command)
        Path(command[-1]).write_bytes(b"the file")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(take_home.subprocess, "run", run)
    assert take_home.written_file("lesson:teacher", {}, "html") == b"the file"
    assert commands[0][1:5] == ["-m", "gptviz", "export", "lesson:teacher"]
    at = opened("pages/lessons.py", lesson="teacher")
    offered = [one.proto.label for one in at.main.get("download_button")]
    assert offered.count("As one file") == len(lessons().lessons) + 1  # and the page itself
    assert "As one file" in [one.proto.label for one in at.sidebar.get("download_button")]


def test_titles_are_no_markup(home: Path) -> None:
    hostile = LESSON.replace("A lesson of a teacher", "<img src=x onerror=alert(1)>").replace(
        "## First", '## <a href="x">[y](z)'
    )
    (home / "lessons" / "hostile.md").write_text(hostile)
    at = opened("pages/lessons.py")
    assert not any("<img" in element.value for element in at.main.get("html"))
    beside = opened("pages/positions.py", lesson="hostile")
    assert not any("<img" in element.value for element in beside.sidebar.get("html"))
    assert r"\[y\]" in says(beside)


def test_what_was_answered_is_counted_beside_the_page_and_in_the_list() -> None:
    at = opened(
        "pages/positions.py",
        model="ladder-2",
        lesson="teacher",
        lesson_step="1",
        lesson_done="1.1r-1.2w",
    )
    number = list(lessons().lessons).index("teacher") + 1
    assert f"**{number} A lesson of a teacher**" in says(at)
    assert any(
        "Step 1 of 2 · 2 of 4 answered" in element.proto.text
        for element in at.sidebar.get("progress")
    )
    at.switch_page("pages/lessons.py").run()
    assert any(
        "**2 of 4 answered**, 1 of them right" in caption.value for caption in at.main.caption
    )


def test_home_leads_to_the_first_lesson_until_one_is_open() -> None:
    def begins(at: AppTest) -> list[str]:
        return [element.value for element in at.main.get("html") if "Start here" in element.value]

    (said,) = begins(opened("app.py", model="ladder-2"))
    assert "Lesson 1: What is a token?" in said
    assert "lesson=01-tokens&amp;lesson_step=1" in said
    assert not begins(opened("app.py", model="ladder-2", lesson="teacher"))


def test_a_lesson_about_any_decoder_takes_the_one_that_was_opened_last(
    tiny_model: TinyModel,
) -> None:
    assert lessons().lessons["13-a-real-model"].model == "bpe"
    asked = {"lesson": "13-a-real-model", "lesson_step": "2", "lesson_done": "1.1r"}
    offered = urlparse(links(opened("pages/costs.py", model="bpe", **asked))["Open a model first"])
    assert offered.path == "./open_model"
    assert {name: values[0] for name, values in parse_qs(offered.query).items()} == asked
    # enough tokens for one that reads pieces of words
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 1_100)))
    tiny_model("theirs", text=text, card={"imported_from": "somebody/theirs"})
    tiny_model("small", card={"imported_from": "somebody/small"})
    st.cache_resource.clear()  # else the lessons of these five seconds are kept
    assert lessons().lessons["13-a-real-model"].model == "theirs"
    assert "Open a model first" not in links(opened("pages/costs.py", model="theirs", **asked))
    assert lessons().lessons["02-a-bigram"].model == "ladder-0"


def test_the_answer_to_a_choice_is_said_as_its_option_is_written() -> None:
    about = {"lesson": "19-tokens-as-vectors", "lesson_step": "1"}
    assert "Not quite: it is “with itself”" in says(
        opened("pages/embeddings.py", **about, lesson_done="1.2w")
    )
