"""Long computations: found again by what they compute, stopped when asked or left, a few at a time, and bounded in number."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.ui.widgets import work
from gptviz.ui.widgets.markdown import escaped
from gptviz.ui.widgets.work import Work
from tests.waiting import PATIENCE, wait_until


def ended(one: Work) -> Work:
    one.join()
    return one


def test_a_computation_is_found_by_its_key_with_its_results() -> None:
    def compute(one: Work) -> None:
        one.report(1, 2, "half")
        one.results["sum"] = 5

    begun = work.begin(("a", 1), "Adding", compute)
    assert ended(begun).state == "done"
    assert work.found(("a", 1)) is begun
    assert (begun.results, begun.done, begun.of, begun.doing) == ({"sum": 5}, 1, 2, "half")
    assert work.begin(("a", 1), "Adding", compute) is begun
    assert work.found(("a", 2)) is None


def test_it_stops_where_it_reports_and_keeps_what_is_ready() -> None:
    at_work, go_on = Event(), Event()

    def compute(one: Work) -> None:
        one.results["first"] = 1
        at_work.set()
        assert go_on.wait(PATIENCE)
        one.report(1, 2)
        one.results["second"] = 2

    begun = work.begin("stopped", "Counting", compute)
    assert at_work.wait(PATIENCE)
    begun.stop()
    assert begun.is_stopping
    go_on.set()
    assert ended(begun).state == "stopped"
    assert begun.results == {"first": 1}
    again = work.begin("stopped", "Counting", compute)
    assert again is not begun
    assert ended(again).results == {"first": 1, "second": 2}


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(work, "_now", made)
    return made


def held(name: str, go_on: Event) -> Work:
    """A computation that goes on until it is asked to stop, or may end."""

    def compute(one: Work) -> None:
        while not go_on.wait(0.01):
            one.report(1, 2)
        one.results["ended"] = True

    return work.begin(name, name.title(), compute)


def go(ones: list[Work]) -> None:
    wait_until(lambda: all(one.state == "going on" for one in ones))


def test_as_many_go_on_as_there_are_places_and_one_that_waits_can_be_stopped(clock: Clock) -> None:
    go_on = Event()
    first = [held(f"place {i}", go_on) for i in range(work.AT_ONCE)]
    go(first)
    waiting = work.begin("one too many", "Second", lambda one: one.results.update(ran=True))
    assert work._said(waiting) == "Second: waits for another computation to end"
    clock.now = work.FORGOTTEN - 1
    waiting.stop()
    assert ended(waiting).state == "stopped"
    assert not waiting.results
    assert all(one.state == "going on" and not one.is_stopping for one in first)
    go_on.set()
    assert [ended(one).state for one in first] == ["done"] * work.AT_ONCE


def test_one_that_no_page_looks_at_gives_its_place_to_one_that_waits_and_the_others_go_on(clock: Clock) -> None:
    go_on = Event()
    seen, *others = [held(f"looked at {i}", go_on) for i in range(work.AT_ONCE)]
    go([seen, *others])
    clock.now = work.FORGOTTEN
    assert work.found("looked at 0") is seen  # a page asks for it
    waiting = work.begin("wants a place", "Next", lambda one: one.results.update(ran=True))
    assert ended(waiting).results == {"ran": True}
    assert [one.state for one in others].count("stopped") == 1
    assert seen.state == "going on"
    go_on.set()
    assert ended(seen).results == {"ended": True}


def test_one_that_waits_and_is_forgotten_is_given_up(clock: Clock) -> None:
    go_on = Event()
    first = [held(f"keeps its place {i}", go_on) for i in range(work.AT_ONCE)]
    go(first)
    left = [work.begin(f"left {i}", "Left", lambda one: one.results.update(ran=True)) for i in range(20)]
    clock.now = work.FORGOTTEN
    for one in first:
        one.looked_at()
    assert {ended(one).state for one in left} == {"stopped"}
    assert all(one.state == "going on" for one in first)
    go_on.set()
    assert [ended(one).state for one in first] == ["done"] * work.AT_ONCE


def test_one_that_is_forgotten_goes_on_while_nobody_waits_for_its_place(clock: Clock) -> None:
    go_on = Event()
    alone = held("alone", go_on)
    clock.now = 10 * work.FORGOTTEN
    assert alone.is_forgotten
    other = work.begin("beside it", "Beside it", lambda one: None)
    assert ended(other).state == "done"
    go_on.set()
    assert ended(alone).state == "done"


@pytest.mark.parametrize(
    ("error", "said"), [(ValueError("too long"), "too long"), (MemoryError(), "There is not enough memory for it.")]
)
def test_what_fails_says_why(error: Exception, said: str) -> None:
    def compute(one: Work) -> None:
        raise error

    begun = ended(work.begin(("fails", said), "Failing", compute))
    assert (begun.state, begun.problem) == ("failed", said)


def test_of_those_that_have_ended_the_last_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MOST_KEPT", 2)
    for number in range(4):
        ended(work.begin(("kept", number), "Counting", lambda one: None))
    work.begin("one more", "Counting", lambda one: None)
    assert [work.found(("kept", number)) is not None for number in range(4)] == [False, False, True, True]


def test_a_page_says_how_far_it_is_stops_it_and_says_how_it_ended() -> None:
    at_work, go_on = Event(), Event()

    def compute(one: Work) -> None:
        one.report(3, 12, "the head <b>")
        at_work.set()
        while not go_on.wait(0.01):
            one.report(3, 12)

    begun = work.begin("shown", "Counting *heads*", compute)
    assert at_work.wait(PATIENCE)

    def page() -> None:
        from gptviz.ui.widgets import work

        one: Any = work.found("shown")
        work.follow(one, "heads")

    at = AppTest.from_function(page, default_timeout=PATIENCE).run()
    assert not at.exception
    (bar,) = at.get("progress")
    assert bar.proto.value == 25
    assert bar.proto.text == escaped("Counting *heads*: 3 of 12 (the head <b>)")
    at.button(key="stop heads").click().run()
    assert ended(begun).state == "stopped"
    at.run()
    assert not at.get("progress")
    assert "stopped" in at.caption[0].value
