"""Long computations on a page, which follows them or waits for them: how far they are, Stop, and
how they ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import StopException
from streamlit.testing.v1 import AppTest

from gptviz.machine import job, progress
from gptviz.ui.widgets import escape_markdown, jobs
from tests.app.opening import button, press
from tests.waiting import PATIENCE, wait_until


class Sum:
    """A long computation, the sum of the numbers up to one: half of it is done when it waits for
    `go_on`.
    """

    def __init__(self) -> None:
        self.go_on = Event()
        self.is_half_done = Event()
        self.begun = 0
        self.ended = 0

    def up_to(self, number: int) -> int:
        self.begun += 1
        try:
            progress.report(1, 2, "half")
            self.is_half_done.set()
            while not self.go_on.wait(0.01):
                progress.report(1, 2, "half")
            if number < 0:
                raise ValueError(f"{number} is below 0")
            progress.report(2, 2, "half")
            return sum(range(number + 1))
        finally:
            self.ended += 1


SUM = Sum()


@jobs.resource("Adding up", max_entries=4)
def total(number: int) -> int:
    return SUM.up_to(number)


@st.cache_data(max_entries=4, show_spinner=False)
def doubled(number: int) -> int:
    return 2 * total(number)


def page() -> None:
    import streamlit as st

    from tests.app.test_jobs import doubled, total

    number = st.number_input("Number", value=3)
    try:
        st.text(f"the sum is {total(int(number))}, twice {doubled(int(number))}")
    except ValueError as error:
        st.error(str(error))


def page_of_doubles() -> None:
    import streamlit as st

    from tests.app.test_jobs import doubled

    st.text(f"twice the sum is {doubled(3)}")


@pytest.fixture(autouse=True)
def held(monkeypatch: pytest.MonkeyPatch, fresh_caches: None) -> Iterator[list[str]]:
    """The texts of the bar; each run of a page ends when the bar is shown a second time, as
    Streamlit does after a click.

    No clock decides what a page sees: the sum half done, or its end if it may go on.
    """
    said: list[str] = []
    show = DeltaGenerator.progress
    wait = job.Job.wait

    def in_step(self: job.Job[Any], seconds: float | None = None) -> bool:
        if self.title == "Adding up":
            assert SUM.is_half_done.wait(PATIENCE)
            seconds = PATIENCE if SUM.go_on.is_set() else 0
        return wait(self, seconds)

    def clicked(self: DeltaGenerator, share: float, text: str, **rest: Any) -> DeltaGenerator:
        said.append(f"{share:.0%} {text}".replace("\\", ""))
        if len(said) % 2 == 0 and not SUM.go_on.is_set():
            raise StopException
        return show(self, share, text, **rest)

    monkeypatch.setattr(DeltaGenerator, "progress", clicked)
    monkeypatch.setattr(job.Job, "wait", in_step)
    monkeypatch.setattr(job, "_clock_time", lambda: 0.0)
    SUM.__init__()  # type: ignore[misc]
    yield said
    SUM.go_on.set()
    wait_until(lambda: SUM.ended == SUM.begun)


def opened() -> AppTest:
    return AppTest.from_function(page, default_timeout=PATIENCE).run()


def test_a_click_elsewhere_and_a_reload_find_the_same_computation_again(held: list[str]) -> None:
    at = opened()
    assert held[-1] == "50% Adding up: half 1 of 2"
    assert not at.text
    at.run()
    opened()
    assert SUM.begun == 1
    SUM.go_on.set()
    assert opened().text[0].value == "the sum is 6, twice 12"
    assert SUM.begun == 1


def test_what_was_shown_of_a_computation_is_not_shown_again_with_its_value(
    held: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show = DeltaGenerator.progress

    def released(self: DeltaGenerator, *args: Any) -> DeltaGenerator:
        SUM.go_on.set()
        return show(self, *args)

    monkeypatch.setattr(DeltaGenerator, "progress", released)
    at = AppTest.from_function(page_of_doubles, default_timeout=PATIENCE)
    at.run()
    at.run()
    assert at.text[0].value == "twice the sum is 12"
    assert len(at.main.children) == 1
    assert held == ["50% Adding up: half 1 of 2"]


def test_stop_ends_it_keeps_nothing_and_the_next_beginning_gives_the_value() -> None:
    at = opened()
    press(at, "Stop")
    wait_until(lambda: SUM.ended == 1)
    assert at.info[0].value == "Adding up: stopped."
    assert not at.text
    at.run()
    assert SUM.begun == 1
    SUM.go_on.set()
    press(at, "Begin again")
    assert at.text[0].value == "the sum is 6, twice 12"
    assert SUM.begun == 2
    assert not at.button


def test_another_session_goes_on_where_one_has_stopped() -> None:
    button(opened(), "Stop").click().run()
    SUM.go_on.set()
    assert opened().text[0].value == "the sum is 6, twice 12"


def test_something_else_is_computed_as_soon_as_the_page_asks_for_it() -> None:
    at = opened()
    press(at, "Stop")
    SUM.go_on.set()
    at.number_input[0].set_value(4).run()
    assert at.text[0].value == "the sum is 10, twice 20"


def test_one_that_no_page_waits_for_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    opened()
    monkeypatch.setattr(job, "_clock_time", lambda: float("inf"))
    wait_until(lambda: SUM.ended == 1)
    monkeypatch.undo()
    SUM.go_on.set()
    assert opened().text[0].value == "the sum is 6, twice 12"
    assert SUM.begun == 2


def test_an_error_of_the_function_is_the_page_s() -> None:
    SUM.go_on.set()
    at = opened()
    at.number_input[0].set_value(-2).run()
    assert at.error[0].value == "-2 is below 0"
    at.number_input[0].set_value(2).run()
    assert at.text[0].value == "the sum is 3, twice 6"


def test_without_a_page_it_is_an_ordinary_cached_function() -> None:
    SUM.go_on.set()
    assert (total(3), total(3), SUM.begun) == (6, 6, 1)


def test_a_page_that_follows_a_computation_says_how_far_it_is_stops_it_and_says_how_it_ended() -> (
    None
):
    SUM.go_on.set()  # for the bar to be shown
    at_work = Event()
    go_on = Event()

    def compute() -> None:
        with progress.part(3, 12, doing="the head <b>"):
            at_work.set()
            while not go_on.wait(0.01):
                progress.report(0, 1, "block")

    begun = job.begin("shown", "Counting *heads*", compute)
    assert at_work.wait(PATIENCE)

    def page() -> None:
        from gptviz.machine import job
        from gptviz.ui.widgets import jobs

        one: Any = job.find_job("shown")
        jobs.follow(one, "heads")

    at = AppTest.from_function(page, default_timeout=PATIENCE).run()
    (bar,) = at.get("progress")
    assert bar.proto.value == 25
    assert bar.proto.text == escape_markdown("Counting *heads*: 3 of 12 (the head <b>)")
    at.button(key="stop heads").click().run()
    assert begun.wait(PATIENCE)
    assert begun.state == "stopped"
    at.run()
    assert not at.get("progress")
    assert "stopped" in at.caption[0].value


def test_a_computation_that_waits_for_a_place_says_so() -> None:
    go_on = Event()

    def compute() -> None:
        while not go_on.wait(0.01):
            progress.report(0, 1)

    first = [job.begin(("has a place", i), "First", compute) for i in range(job.SLOTS.number)]
    waiting = job.begin("waits", "Second", compute)
    assert jobs.words(waiting) == escape_markdown("Second: waits for another computation to end")
    for one in (waiting, *first):
        one.stop()
    assert all(one.wait(PATIENCE) for one in (waiting, *first))
