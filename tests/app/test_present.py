"""In front of a class: the address keeps it, and the QR code is that of the link."""

from __future__ import annotations

from types import SimpleNamespace
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.components import kit
from gptviz.lessons.library import library
from gptviz.ui.shell.around import present
from gptviz.ui.shell.subject import on_screen
from tests.app.opening import opened, press

pytestmark = pytest.mark.usefixtures("fresh_caches")


def menu(at: AppTest) -> list[str]:
    return (
        [one.proto.label for one in at.sidebar.get("expander")]
        if at.sidebar.get("expander")
        else []
    )


def look(at: AppTest) -> str:
    """The style sheet of the page."""
    (sheet,) = [one.value for one in at.get("html") if one.value.startswith("<style>")]
    return sheet.removeprefix("<style>").removesuffix("</style>")


def test_it_is_turned_on_kept_in_links_and_left() -> None:
    at = opened("pages/positions.py", model="ladder-2")
    assert "present" not in at.query_params
    assert look(at) == kit.page_style()
    press(at, "Larger type, no menu")
    assert at.query_params["present"] == "1"
    assert look(at) == kit.page_style(presenting=True)
    assert at.sidebar.expander[0].label == "All pages"
    assert all("present=1" in link.proto.query_string for link in at.sidebar.get("page_link"))
    press(at, "Leave the presentation")
    assert "present" not in at.query_params
    assert look(at) == kit.page_style()
    assert "All pages" not in [one.label for one in at.sidebar.expander]


@pytest.mark.parametrize(
    ("word", "value"), [("yes", "1"), ("TRUE", "1"), ("view only", "view"), ("perhaps", None)]
)
def test_a_word_that_a_person_tries_presents_too(word: str, value: str | None) -> None:
    at = opened("pages/next_token.py", present=word)
    queries = [link.proto.query_string for link in at.sidebar.get("page_link")]
    found = {dict(parse_qsl(query)).get("present") for query in queries}
    assert found == {value}


def test_the_view_alone_is_kept_in_links_and_a_step_of_a_lesson_then_only_asks() -> None:
    at = opened("pages/next_token.py", lesson="01-tokens", present="view")
    assert look(at) == kit.page_style(lesson=True, presenting=True, view_only=True)
    assert all("present=view" in link.proto.query_string for link in at.sidebar.get("page_link"))
    step = library().lessons["01-tokens"].steps[0]
    said = " ".join(one.value for one in at.sidebar.markdown)
    assert step.questions
    assert step.questions[0].ask[:30] in said
    assert step.text[:30] not in said
    press(at, "Show the controls")
    assert at.query_params["present"] == "1"
    assert step.text[:30] in " ".join(one.value for one in at.sidebar.markdown)
    assert look(at) == kit.page_style(lesson=True, presenting=True)


def test_steps_of_a_lesson_stay_in_front_of_the_class() -> None:
    at = opened("pages/next_token.py", lesson="01-tokens", present="1")
    (ways,) = [one.value for one in at.sidebar.get("html") if "lesson-ways" in one.value]
    assert "&amp;present=1" in ways
    assert look(at) == kit.page_style(lesson=True, presenting=True)
    assert 'rel="next"' in ways


@pytest.mark.parametrize(
    ("base", "query", "link"),
    [
        (
            "http://class.example/attention",
            "model=bpe&present=1&prompt=a%26b&runs=a&runs=b.",
            "http://class.example/attention?model=bpe&prompt=a%26b&runs=a&runs=b%2E",
        ),
        ("http://class.example/?old=1", "", "http://class.example/"),
        ("", "model=bpe", None),
    ],
)
def test_the_code_is_that_of_the_link_without_the_speakers_view(
    monkeypatch: pytest.MonkeyPatch, base: str, query: str, link: str | None
) -> None:
    monkeypatch.setattr(on_screen, "query", lambda: query)
    monkeypatch.setattr(present.st, "context", SimpleNamespace(url=base))
    assert present._address() == link


def test_the_link_stands_in_a_block_with_a_button_that_copies_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(on_screen, "query", lambda: "model=bpe")
    monkeypatch.setattr(
        present.st, "context", SimpleNamespace(url="http://class.example/attention")
    )
    at = AppTest.from_string("from gptviz.ui.shell.around import present\npresent.link()").run()
    assert [one.value for one in at.code] == ["http://class.example/attention?model=bpe"]


def test_what_the_browser_said_holds_until_streamlit_knows_of_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = SimpleNamespace(page="attention", query="model=bpe")
    monkeypatch.setattr(on_screen, "page_and_query", lambda: (here.page, here.query))
    monkeypatch.setattr(on_screen.st, "session_state", {})
    assert on_screen.query() == "model=bpe"
    on_screen._hear("model=bpe&head=2")
    assert on_screen.query() == "model=bpe&head=2"
    here.query = "model=bpe&prompt=a"
    assert on_screen.query() == "model=bpe&prompt=a"
    here.page = "positions"
    here.query = "model=bpe"
    assert on_screen.query() == "model=bpe"
