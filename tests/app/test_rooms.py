"""A room: what the address of a server opens, and which pages a class may open; what is left out is
refused in the address too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.lessons import votes
from gptviz.machine import hosting
from gptviz.machine.hosting import variable
from gptviz.ui.menu import PAGES, pages_here
from gptviz.ui.page import Page
from gptviz.ui.shell.around import present, room, search
from gptviz.ui.shell.around.lesson import lessons
from tests.app.opening import ROOT, opened, says
from tests.waiting import PATIENCE

OPEN = ("lessons", "attention", "next_token")


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets this thread work for "a guest" of a class that may open few pages, or for "the
    owner".
    """
    monkeypatch.setenv(variable("lan"), "1")
    monkeypatch.setenv(variable("only"), ", ".join(OPEN))
    votes.forget()
    return lambda who: monkeypatch.setattr(hosting, "_is_guest", lambda: who == "a guest")


def arrived(path: str = "app.py", **query: str) -> AppTest:
    """The page that a browser gets which opens an address."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    if path != "app.py":
        at.switch_page(path)
    for key, value in query.items():
        at.query_params[key] = value
    return at.run()


def title(at: AppTest) -> str:
    """The title of the page."""
    return str(at.title[0].value)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_that_is_left_out_is_refused_in_the_address(
    page: Page, visits: Callable[[str], None]
) -> None:
    if page.name in OPEN:
        return
    visits("a guest")
    at = opened(page.path, model="bpe", prompt="To be")
    assert title(at) == "This page is not open here"
    assert f"“{page.title}” is left out" in says(at)
    assert len(at.get("plotly_chart")) == 0
    assert not at.text_area, "nothing of the page is there to be set"


def test_what_is_open_opens_and_leads_to_nothing_that_is_left_out(
    visits: Callable[[str], None],
) -> None:
    visits("a guest")
    assert set(pages_here()) == set(OPEN)
    for name in OPEN:
        at = opened(PAGES[name].path)
        assert title(at) != "This page is not open here"
        links = {one.proto.page for one in at.get("page_link")}
        assert links <= {"", *OPEN}, links
    found = list(search.entries())
    assert {one.name.partition(" on ")[0] for one in found if one.kind == "Page"} == {
        PAGES[name].title for name in OPEN
    }
    named = {one.address.removeprefix("./").partition("?")[0] for one in found}
    assert named <= {"", *OPEN}
    assert not [one for one in found if one.kind == "Model"], "Home would open it"
    assert lessons().lessons
    assert all(lesson.pages <= set(OPEN) for lesson in lessons().lessons.values())
    third = opened("pages/attention.py", lesson="03-attention-is-an-average")
    assert "3 Attention is an average" in "".join(one.label for one in third.expander), (
        "with its number in the whole list"
    )
    at = opened("pages/attention.py", lesson="01-tokens")
    assert (
        "There is no lesson “01-tokens” here: it leads to pages that this server leaves out"
        in says(at)
    )


def test_the_owner_opens_all(visits: Callable[[str], None]) -> None:
    visits("the owner")
    assert pages_here() == PAGES
    assert title(opened("pages/patching.py")) == PAGES["patching"].question
    environment = hosting.environment()
    assert not environment[variable("only")], "and so does what works for the owner elsewhere"
    visits("a guest")
    assert hosting.environment()[variable("only")]


def test_without_a_class_what_is_left_out_is_left_out_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable("only"), "attention")
    assert title(opened("pages/lens.py")) == "This page is not open here"


@pytest.mark.parametrize(
    ("start", "question", "says_too"),
    [
        ("20-you-are-the-model", "What does the model read instead of letters?", "You guess"),
        ("http://localhost:8501/attention?model=induction", PAGES["attention"].question, ""),
        ("next_token", PAGES["next_token"].question, ""),
    ],
)
def test_the_address_alone_opens_what_the_server_starts_with(
    monkeypatch: pytest.MonkeyPatch, start: str, question: str, says_too: str
) -> None:
    monkeypatch.setenv(variable("start"), start)
    at = arrived()
    assert not at.exception
    assert title(at) == question
    assert says_too in says(at)
    if "induction" in start:
        assert at.query_params["model"] == "induction"
    # an address that says more opens that, and the way back to Home stays
    assert title(arrived(model="bpe")) == title(opened("app.py"))
    assert title(at.switch_page("app.py").run()) == title(opened("app.py"))


def test_who_teaches_sees_the_address_and_what_the_class_may_open(
    visits: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    monkeypatch.setattr(present, "link_to", asked.append)
    visits("a guest")
    opened("pages/attention.py")
    assert not asked
    visits("the owner")
    at = opened("pages/attention.py")
    assert asked == ["./"]
    titles = ", ".join(page.title for page in PAGES.values() if page.name in OPEN)
    assert f"It opens Home. The class may open {titles}; on this machine" in says(at)
    assert {one.label for one in at.get("download_button")} >= {"By question"}
    assert "By browser" not in "".join(one.label for one in at.get("download_button"))


def rows(table: bytes) -> list[list[str]]:
    """The cells of a file of CSV."""
    return list(csv.reader(io.StringIO(table.decode("utf-8-sig"))))


def test_the_answers_of_the_hour_are_tables() -> None:
    votes.forget()
    first = votes.Question("01-tokens", "1.1", "How many, and why?")
    second = votes.Question("next_token", "", "bpe: To be")
    for browser, answer in (("a", "3"), ("b", "3"), ("c", '=HYPERLINK("x")')):
        votes.count(first, browser, answer)
    votes.count(second, "b", "␣be")
    header, *counted = rows(room.counts_as_csv())
    assert header == ["where", "number", "question", "choice", "count"]
    assert counted == [
        ["01-tokens", "1.1", "How many, and why?", "3", "2"],
        ["01-tokens", "1.1", "How many, and why?", '\'=HYPERLINK("x")', "1"],
        ["next_token", "", "bpe: To be", "␣be", "1"],
    ]
    header, *browsers = rows(room.browsers_as_csv())
    assert header == ["name", "01-tokens 1.1 How many, and why?", "next_token bpe: To be"]
    assert sorted(row[1:] for row in browsers) == sorted(
        [["3", ""], ["3", "␣be"], ['\'=HYPERLINK("x")', ""]]
    )
    assert {row[0] for row in browsers} == {votes.pseudonym(browser) for browser in "abc"}
    votes.forget()
    assert rows(room.counts_as_csv()) == [["where", "number", "question", "choice", "count"]]
    assert rows(room.browsers_as_csv()) == [["name"]]
