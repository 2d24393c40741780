"""Long computations: found again by what they compute, stopped when asked or left, a few at a time,
and bounded in number.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from threading import Event

import pytest

from gptviz.machine import job, progress
from gptviz.machine.job import Job, Slots, StoppedError
from tests.waiting import PATIENCE, wait_until


def ended(one: Job[object]) -> Job[object]:
    assert one.wait(PATIENCE)
    return one


def nothing() -> None:
    """A computation that is done at once."""


def test_a_computation_is_found_by_its_key_with_its_value() -> None:
    def compute() -> int:
        progress.report(1, 2, "half")
        return 5

    begun = job.begin(("a", 1), "Adding", compute)
    assert ended(begun).state == "done"
    assert job.find_job(("a", 1)) is begun
    assert (begun.value, begun.result()) == (5, 5)
    assert begun.progress == (0.5, 1, 2, "half", "")
    assert job.begin(("a", 1), "Adding", compute) is begun
    assert job.find_job(("a", 2)) is None
    job.forget(("a", 1))
    assert job.find_job(("a", 1)) is None


def test_it_stops_where_it_reports_and_keeps_what_is_ready() -> None:
    at_work = Event()
    go_on = Event()

    def compute() -> list[int]:
        with progress.part(0, 2):
            progress.show_so_far("that of a part is shown to nobody")
        progress.show_so_far([1])
        at_work.set()
        assert go_on.wait(PATIENCE)
        progress.report(1, 2)
        return [1, 2]

    begun = job.begin("stopped", "Counting", compute)
    assert at_work.wait(PATIENCE)
    assert begun.stage == (True, 1)
    begun.stop()
    assert begun.is_stopping
    go_on.set()
    assert ended(begun).state == "stopped"
    assert begun.value == [1]
    with pytest.raises(StoppedError):
        begun.result()
    again = job.begin("stopped", "Counting", compute)
    assert again is not begun
    assert ended(again).value == [1, 2]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(job, "_clock_time", made)
    return made


def held(name: str, go_on: Event) -> Job[str]:
    """A computation that goes on until it is asked to stop, or may end."""

    def compute() -> str:
        while not go_on.wait(0.01):
            progress.report(1, 2)
        return "ended"

    return job.begin(name, name.title(), compute)


def go(ones: list[Job[str]]) -> None:
    wait_until(lambda: all(one.state == "going on" for one in ones))


def test_as_many_go_on_as_there_are_places_and_one_that_waits_can_be_stopped(clock: Clock) -> None:
    go_on = Event()
    first = [held(f"place {i}", go_on) for i in range(job.SLOTS.number)]
    go(first)
    waiting = job.begin("one too many", "Second", lambda: "ran")
    clock.now = job.FORGOTTEN - 1
    assert waiting.state == "waiting"
    waiting.stop()
    assert ended(waiting).state == "stopped"
    assert waiting.value is None
    assert all(one.state == "going on" and not one.is_stopping for one in first)
    go_on.set()
    assert [ended(one).state for one in first] == ["done"] * job.SLOTS.number


def test_one_that_no_page_looks_at_gives_its_place_to_one_that_waits_and_the_others_go_on(
    clock: Clock,
) -> None:
    go_on = Event()
    seen, *others = [held(f"looked at {i}", go_on) for i in range(job.SLOTS.number)]
    go([seen, *others])
    clock.now = job.FORGOTTEN
    assert job.find_job("looked at 0") is seen  # a page asks for it
    waiting = job.begin("wants a place", "Next", lambda: "ran")
    assert ended(waiting).value == "ran"
    assert [ended(one).state for one in others].count("stopped") == 1
    assert seen.state == "going on"
    go_on.set()
    assert ended(seen).value == "ended"


def test_one_that_waits_and_is_forgotten_is_given_up(clock: Clock) -> None:
    go_on = Event()
    first = [held(f"keeps its place {i}", go_on) for i in range(job.SLOTS.number)]
    go(first)
    left = [job.begin(f"left {i}", "Left", nothing) for i in range(20)]
    clock.now = job.FORGOTTEN
    for one in first:
        one.look()
    assert {one.state for one in left} == {"stopped"}
    assert all(one.state == "going on" for one in first)
    go_on.set()
    assert [ended(one).state for one in first] == ["done"] * job.SLOTS.number


def test_one_that_is_forgotten_goes_on_while_nobody_waits_for_its_place(clock: Clock) -> None:
    go_on = Event()
    alone = held("alone", go_on)
    clock.now = 10 * job.FORGOTTEN
    assert alone.is_forgotten
    other = job.begin("beside it", "Beside it", nothing)
    assert ended(other).state == "done"
    assert alone.state == "going on"
    go_on.set()
    assert ended(alone).state == "done"


def test_one_without_a_place_begins_at_once_and_ends_by_itself_when_nobody_wants_it_any_more(
    clock: Clock,
) -> None:
    go_on = Event()
    first = [held(f"has a place {i}", go_on) for i in range(job.SLOTS.number)]

    def compute() -> None:
        while True:
            progress.report(1, 2)
            go_on.wait(0.01)

    waited_for = job.begin("waited for", "Waited for", compute, slots=None, patience=5)
    go([*first, waited_for])  # type: ignore[list-item]
    clock.now = 4
    # which counts as a look
    assert job.begin("waited for", "Waited for", compute, slots=None, patience=5) is waited_for
    clock.now = 8
    assert not waited_for.is_forgotten
    clock.now = 9
    wait_until(lambda: waited_for.state == "stopped")
    assert all(one.state == "going on" for one in first)
    go_on.set()
    assert [ended(one).state for one in first] == ["done"] * job.SLOTS.number


def test_a_value_that_nobody_came_back_for_is_given_up(clock: Clock) -> None:
    assert ended(job.begin("left", "Left", nothing, slots=None, patience=5)).state == "done"
    clock.now = 5
    job.begin("another", "Another", nothing)
    assert job.find_job("left") is None


def test_in_a_single_place_they_go_on_in_the_order_in_which_they_were_begun() -> None:
    slot = Slots(1)
    go_on = Event()
    order = list[int]()

    def compute(number: int) -> int:
        assert go_on.wait(PATIENCE)
        order.append(number)
        return number

    first = Job("0", lambda: compute(0), slots=slot)
    # Each needs what the one before it gives: out of order, they would wait for ever.
    after = [Job("1", lambda: compute(first.result() + 1), slots=slot)]
    for _ in range(8):
        after.append(Job("next", lambda before=after[-1]: compute(before.result() + 1), slots=slot))  # type: ignore[misc]
    assert [one.state for one in after] == ["waiting"] * 9
    go_on.set()
    assert after[-1].result() == 9
    assert order == list(range(10))


@pytest.mark.parametrize(
    ("error", "said"),
    [(ValueError("too long"), "too long"), (MemoryError(), "There is not enough memory for it.")],
)
def test_what_fails_says_why_and_raises_it_for_whoever_asks_for_its_value(
    error: Exception, said: str
) -> None:
    def compute() -> None:
        raise error

    begun = ended(job.begin(("fails", said), "Failing", compute))
    assert (begun.state, begun.problem) == ("failed", said)
    with pytest.raises(type(error)):
        begun.result()
    assert job.begin(("fails", said), "Failing", nothing) is not begun


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_of_gptviz_is_written_to_the_terminal_and_the_page_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[type[BaseException]] = []
    monkeypatch.setattr("threading.excepthook", lambda args: seen.append(args.exc_type))

    def compute() -> None:
        raise KeyError("blocks.0")

    begun = ended(job.begin("errs", "Failing", compute))
    assert (
        begun.problem
        == "It ended by an error of gptviz: see what the server wrote to its terminal."
    )
    wait_until(lambda: seen == [KeyError])


class Large:
    """Something large that a computation holds."""


@pytest.mark.parametrize("error", [None, MemoryError()])
def test_what_a_computation_held_is_not_kept_after_its_end(error: Exception | None) -> None:
    held_there: list[weakref.ref[Large]] = []

    def compute() -> None:
        large = Large()
        held_there.append(weakref.ref(large))
        if error is not None:
            raise error

    begun = ended(job.begin(("holds", error), "Holding", compute))
    assert begun.state == ("done" if error is None else "failed")
    gc.collect()
    assert [one() for one in held_there] == [None]


def test_of_those_that_have_ended_the_last_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MOST_KEPT", 2)
    for number in range(4):
        ended(job.begin(("kept", number), "Counting", nothing))
    job.begin("one more", "Counting", nothing)
    assert [job.find_job(("kept", number)) is not None for number in range(4)] == [
        False,
        False,
        True,
        True,
    ]


def test_computations_are_stopped_before_python_ends() -> None:
    program = """
import atexit, time
jobs = []
atexit.register(lambda: print(*(job.state for job in jobs)))  # what is registered first is called last

from gptviz.machine import progress
from gptviz.machine.job import Job

def compute():
    while True:
        time.sleep(0.01)
        progress.report(1, 2)

jobs += [Job("one", compute), Job("other", compute)]
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert ended.stdout.split() == ["stopped", "stopped"]
