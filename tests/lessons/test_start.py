"""What the address of a server opens: a lesson or the link to a page, none of whose pages is left
out.
"""

from __future__ import annotations

import pytest

from gptviz.lessons.lesson import PageState
from gptviz.lessons.library import SHIPPED, library
from gptviz.lessons.start import check_start, read_start

LESSONS = library(SHIPPED).lessons
LESSON = "03-attention-is-an-average"


@pytest.mark.parametrize(
    ("start", "page", "query"),
    [
        ("attention", "attention", {}),
        ("/attention?block=1&head=2", "attention", {"block": "1", "head": "2"}),
        (
            "http://localhost:8501/next_token?prompt=a+b%26c&x=",
            "next_token",
            {"prompt": "a b&c", "x": ""},
        ),
        ("https://example.org/course/gptviz/lens/?model=bpe", "lens", {"model": "bpe"}),
        ("http://localhost:8501/", "home", {}),
        ("http://localhost:8501?model=bpe", "home", {"model": "bpe"}),
    ],
)
def test_a_link_is_read_as_a_browser_reads_it(start: str, page: str, query: dict[str, str]) -> None:
    assert read_start(start, LESSONS) == PageState(page, query)


def test_a_lesson_is_named_by_its_file() -> None:
    opens = read_start(LESSON, LESSONS)
    first = LESSONS[LESSON].steps[0].page
    assert first is not None
    assert opens.page == first.page
    assert opens.query == {"model": "shakespeare", **first.query, "lesson": LESSON}


@pytest.mark.parametrize(
    ("start", "only", "why"),
    [
        ("03-attention-is-an-averag", None, f"did you mean '{LESSON}'"),
        ("http://localhost/no_page", None, "no lesson and no link to a page"),
        (LESSON, {"lessons"}, "which opens attention, next_token, and GPTVIZ_ONLY leaves that out"),
        ("lens", {"lessons", "tokens"}, "GPTVIZ_ONLY leaves that out: name it too"),
    ],
)
def test_what_cannot_be_opened_is_refused_with_the_reason(
    start: str, only: set[str] | None, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        check_start(start, only, LESSONS)


def test_a_start_whose_pages_are_open_is_none_to_refuse() -> None:
    check_start(LESSON, {"attention", "next_token"}, LESSONS)
    check_start(LESSON, None, LESSONS)
