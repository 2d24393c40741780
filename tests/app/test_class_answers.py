"""The answers of a class to a question: pupils answer, who sits at the server shows the result."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.lessons import votes
from gptviz.machine import hosting
from gptviz.ui.shell.around import class_answers, lesson, present
from tests.app.opening import opened, press, says

# A step with one question and its options.
STEP = {"lesson": "03-attention-is-an-average", "lesson_step": "1"}


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], AppTest]:
    """A fresh session of a browser of the class, or of who sits at the server."""
    monkeypatch.setenv(hosting.variable("lan"), "1")
    votes.forget()

    def visit(browser: str | None) -> AppTest:
        monkeypatch.setattr(hosting, "_is_guest", lambda: browser is not None)
        monkeypatch.setattr(lesson, "browser", lambda: browser)
        monkeypatch.setattr(class_answers, "browser", lambda: browser)
        return opened("app.py", **STEP)

    return visit


def answer(at: AppTest, option: int) -> AppTest:
    """The page after the first question was answered so."""
    choice = at.radio[0]
    choice.set_value(choice.options[option])
    return press(at, "Check")


def test_each_browser_has_one_voice_and_who_sits_at_the_server_shows_the_result(
    visit: Callable[[str | None], AppTest],
) -> None:
    assert class_answers.RULE in says(visit("a"))
    for browser, option in (("a", 0), ("a", 1), ("b", 0)):
        answer(visit(browser), option)
    teacher = answer(visit(None), 0)
    said = says(teacher)
    assert "In all 2" in said
    assert "Yours is not counted" in said
    assert "Answers of the class**: " not in said, "nobody sees it before it is shown"
    teacher = press(teacher, "Show the result")
    (drawn,) = [
        each.proto.body
        for each in teacher.get("html")
        if each.proto.body.startswith('<ul class="class-answers">')
    ]
    options = [option.strip() for option in teacher.radio[0].options]
    counts = re.findall(r"<li><b>(.*?)</b>.*?<small>(\d+)</small>", drawn)
    assert counts == [(option, "1" if i < 2 else "0") for i, option in enumerate(options)]
    assert "the result is shown already" in says(answer(visit("b"), 1)).lower()
    assert "In all 2" in says(visit(None))
    assert "In all 0" in says(press(visit(None), "Ask again"))


def test_without_a_class_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    votes.forget()
    at = answer(opened("app.py", **STEP), 0)
    assert class_answers.RULE not in says(at)
    assert not votes._ballots


def test_who_sits_at_the_server_teaches_a_lesson_from_its_card(
    visit: Callable[[str | None], AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    monkeypatch.setattr(present, "link_to", asked.append)
    visit("a")
    opened("pages/lessons.py")
    assert not asked, "a guest has no such button"
    visit(None)
    opened("pages/lessons.py")
    taught = [address for address in asked if "lesson=" in address]
    assert len(taught) == len(lesson.lessons().lessons)
    assert taught[0].startswith("./tokens?")
    assert "lesson=01-tokens" in taught[0]


def test_a_relative_address_is_shown_as_a_class_can_open_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = list[str | None]()
    monkeypatch.setattr(present, "_show_link", shown.append)
    monkeypatch.setattr(present, "_base", lambda: "http://class.example/lessons?model=bpe")
    present.link_to("tokens?lesson=01-tokens")
    monkeypatch.setattr(present, "_base", lambda: None)
    present.link_to("tokens?lesson=01-tokens")
    assert shown == ["http://class.example/tokens?lesson=01-tokens", None]
