"""The queue in front of the machine: tiny runs, trained by threads that stand in for processes, and
by real ones.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gptviz.data.text import TaskSource
from gptviz.runs import checkpoints
from gptviz.runs import queue as queue_module
from gptviz.runs.log import read_log
from gptviz.runs.queue import Queue, QueueFullError, own_queue
from gptviz.runs.run import RunSpec, prepare, read_run
from gptviz.runs.status import RunError, read_status
from gptviz.text import task
from gptviz.train.recipe import Recipe
from tests.processes import KILL, GuardedProcess, TrainingThread, guarded, running
from tests.tiny import tiny
from tests.waiting import PATIENCE, wait_until

LONG = 1_000_000


def prepared(name: str, steps: int, **settings: Any) -> Path:
    """A run that reverses four symbols."""
    reversal = task("reversal", vocab=11, length=4)
    given = {
        "batch_size": 4,
        "evaluations": 2,
        "compile": "no",
        "precision": "float32",
        "snapshots": 0,
    } | settings
    source = TaskSource(reversal)
    recipe = Recipe(steps=steps, **given)
    return prepare(
        RunSpec(
            name=name, config=tiny(), tokenizer=reversal.tokenizer, source=source, recipe=recipe
        )
    )


def until(condition: Callable[[], object]) -> None:
    wait_until(condition, every=0.01)


def state(name: str) -> str:
    return read_status(checkpoints.find(name)).state


def trained(name: str) -> bool:
    """Whether the run is being trained and has taken a step that is on the disk."""
    return state(name) == "running" and any(line.kind == "step" for line in read_log(log(name)))


def log(name: str) -> Path:
    return checkpoints.find(name) / "log.jsonl"


class Launches:
    """Starts the queue's processes, and notes the name of each run with the names of those that
    train at that moment.

    Attributes:
        last: the process started last.
    """

    def __init__(self, launch: Callable[..., Any] = TrainingThread) -> None:
        self.launch = launch
        self.made: list[tuple[str, list[str]]] = []
        self.last: Any = None

    def __call__(self, command: list[str], **options: Any) -> Any:
        training = [
            folder.name
            for folder in checkpoints.folders().values()
            if read_status(folder).state == "running"
        ]
        self.made.append((command[command.index("--resume") + 1], training))
        self.last = self.launch(command, **options)
        return self.last


@pytest.fixture(autouse=True)
def _attended_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "POLL", 0.02)


@pytest.fixture
def launches() -> Launches:
    return Launches()


@pytest.fixture
def queue(home: Path, launches: Launches) -> Iterator[Queue]:
    """A queue whose runs are trained by threads of this process."""
    made = Queue(home / "checkpoints", waiting=3, launch=launches)
    yield made
    made.close()


@pytest.fixture
def process_queue(home: Path) -> Iterator[Queue]:
    """A queue whose runs are trained by processes of their own."""
    made = Queue(home / "checkpoints", waiting=3, launch=GuardedProcess)
    yield made
    made.close()


def test_a_process_trains_a_run_from_beginning_to_end(process_queue: Queue) -> None:
    folder = prepared("alone", steps=5)
    assert process_queue.submit("alone", device="cpu") == 0
    assert process_queue._processes["alone"].pid not in (0, os.getpid())
    until(lambda: state("alone") == "finished")
    until(lambda: not process_queue._processes)
    assert process_queue._processes == {}
    assert [line.step for line in read_log(log("alone")) if line.kind == "step"] == [1, 2, 3, 4, 5]
    assert (folder / ".stderr").read_text() == ""


def test_runs_are_trained_one_at_a_time_in_the_order_they_came(
    queue: Queue, launches: Launches
) -> None:
    names = ["zebra", "mole", "ape"]
    for name in names:
        prepared(name, steps=20)
    assert [queue.submit(name) for name in names] == [0, 1, 2]
    until(lambda: all(state(name) == "finished" for name in names))
    assert launches.made == [(name, []) for name in names]
    until(lambda: not queue._processes)
    assert [queue.place(name) for name in names] == [None, None, None]


def twins(steps: int = LONG) -> tuple[str, str]:
    """Two runs that are to be compared."""
    for name, other in (("pair-a", "pair-b"), ("pair-b", "pair-a")):
        folder = prepared(name, steps)
        card = json.loads((folder / "card.json").read_text())
        (folder / "card.json").write_text(json.dumps(card | {"twin": other}))
    return "pair-a", "pair-b"


def test_twins_are_trained_beside_each_other_and_count_as_one(queue: Queue) -> None:
    one, other = twins()
    prepared("alone", steps=20)
    assert [queue.submit(name) for name in (one, "alone", other)] == [0, 1, 0]
    until(lambda: trained(one) and trained(other))
    assert queue.waiting_runs() == ["alone"]
    queue.stop(one)
    until(lambda: state(one) == "stopped")
    assert state(other) == "running"
    assert queue.waiting_runs() == ["alone"], "its twin goes on"
    queue.stop(other)
    until(lambda: state("alone") == "finished")


def test_a_twin_waits_as_any_other_run_does_where_the_server_says_how_many_train(
    home: Path, launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(home / "checkpoints", twins=False, launch=launches)
    try:
        names = twins(steps=20)
        assert [queue.submit(name) for name in names] == [0, 1]
        until(lambda: all(state(name) == "finished" for name in names))
        assert launches.made == [(name, []) for name in names]
    finally:
        queue.close()
    queue_module._queue_at.cache_clear()
    assert own_queue().twins_at_once
    queue_module._queue_at.cache_clear()
    monkeypatch.setenv("GPTVIZ_TRAINING", "1")
    assert not own_queue().twins_at_once
    queue_module._queue_at.cache_clear()


def test_more_than_may_wait_are_refused_and_what_waits_stays(queue: Queue) -> None:
    for index in range(5):
        prepared(f"run-{index}", steps=LONG)
    queue.submit("run-0")
    until(lambda: queue.place("run-0") == 0)
    assert [queue.submit(f"run-{index}") for index in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(QueueFullError, match="3 runs wait already"):
        queue.submit("run-4")
    assert state("run-4") == "ready"
    assert queue.waiting_runs() == ["run-1", "run-2", "run-3"]
    queue.stop("run-2")
    assert state("run-2") == "ready"
    assert queue.submit("run-4") == 3
    assert [queue.place(f"run-{index}") for index in range(5)] == [0, 1, None, 2, 3]


def test_a_run_submitted_twice_is_trained_once_and_keeps_its_place(queue: Queue) -> None:
    prepared("first", steps=LONG)
    prepared("second", steps=LONG)
    prepared("third", steps=LONG)
    queue.submit("first")
    until(lambda: queue.place("first") == 0)
    assert queue.submit("second") == 1
    assert queue.submit("third") == 2
    assert queue.submit("second") == 1
    assert queue.submit("first") == 0
    assert queue.waiting_runs() == ["second", "third"]


def test_a_paused_run_goes_on_from_where_it_was(queue: Queue) -> None:
    folder = prepared("long", LONG)
    queue.submit("long")
    until(lambda: trained("long"))
    queue.pause("long")
    until(lambda: state("long") == "paused")
    paused_at = read_run(folder).card.steps
    assert paused_at > 0
    assert queue.place("long") is None
    before = log("long").read_text()
    assert queue.submit("long") == 0
    until(lambda: state("long") == "running" and log("long").read_text() != before)
    queue.stop("long")
    until(lambda: state("long") == "stopped")
    assert log("long").read_text().startswith(before)
    steps = [line.step for line in read_log(log("long")) if line.kind == "step"]
    assert steps == sorted(set(steps))
    assert steps[-1] > paused_at


@pytest.mark.parametrize("how", ["pause", "stop"])
def test_a_process_that_has_not_begun_is_ended_at_once_and_its_run_can_begin_again(
    home: Path, how: str
) -> None:
    begin = threading.Event()
    queue = Queue(home / "checkpoints", launch=partial(TrainingThread, begin=begin))
    prepared("early", steps=LONG)
    try:
        queue.submit("early")
        assert "early" in queue._processes
        assert state("early") == "waiting"
        getattr(queue, how)("early")
        assert state("early") == "ready"
        assert queue.place("early") is None
        begin.set()
        queue.submit("early")
        until(lambda: trained("early"))
    finally:
        queue.close()


def test_a_killed_process_leaves_a_run_that_says_so_and_can_be_resumed(
    queue: Queue, launches: Launches
) -> None:
    folder = prepared("killed", steps=LONG)
    queue.submit("killed")
    until(lambda: trained("killed"))
    launches.last.kill()
    interrupted_and_resumed(queue, folder)


@pytest.mark.full
def test_a_real_process_that_is_killed_does_too(process_queue: Queue) -> None:
    folder = prepared("killed", steps=LONG)
    process_queue.submit("killed")
    until(lambda: trained("killed"))
    os.kill(process_queue._processes["killed"].pid, KILL)
    interrupted_and_resumed(process_queue, folder)


def interrupted_and_resumed(queue: Queue, folder: Path) -> None:
    until(lambda: not queue._processes)
    status = read_status(folder)
    assert status.state == "interrupted"
    assert "SIGKILL" in status.message or "exit status" in status.message
    queue.submit("killed")
    until(lambda: state("killed") == "running")


def test_what_a_process_last_complained_of_is_the_message(queue: Queue) -> None:
    folder = prepared("spoilt", steps=5)
    (folder / "tokenizer.json").write_text("{}")
    queue.submit("spoilt")
    until(lambda: read_status(folder).state == "failed")
    assert "tokenizer.json" in read_status(folder).message


def test_a_process_that_cannot_begin_fails_the_run_with_its_last_line(queue: Queue) -> None:
    cannot_begin(queue)


@pytest.mark.full
def test_a_real_process_that_cannot_begin_does_too(process_queue: Queue) -> None:
    cannot_begin(process_queue)


def cannot_begin(queue: Queue) -> None:
    folder = prepared("stillborn", steps=5)
    queue.submit("stillborn", device="abacus")
    until(lambda: read_status(folder).state == "failed")
    assert "could not begin: no device 'abacus'" in read_status(folder).message
    queue.submit("stillborn", device="cpu")
    until(lambda: state("stillborn") == "finished")


def test_a_system_that_starts_no_process_fails_the_run(home: Path) -> None:
    def refused(command: list[str], **options: Any) -> Any:
        raise OSError("out of processes")

    queue = Queue(home / "checkpoints", launch=refused)
    folder = prepared("unlucky", steps=5)
    queue.submit("unlucky")
    assert read_status(folder).state == "failed"
    assert (
        "no process could be started to train it (out of processes)" in read_status(folder).message
    )
    queue.close()


def test_a_run_whose_loss_explodes_fails_with_what_to_change_and_the_next_goes_on(
    queue: Queue,
) -> None:
    folder = prepared(
        "wild", steps=2_000, learning_rate=1e30, optimiser="sgd", clip=0.0, warmup=0.0
    )
    prepared("tame", steps=20)
    queue.submit("wild")
    queue.submit("tame")
    until(lambda: state("tame") == "finished")
    assert read_status(folder).state == "failed"
    assert "lower the learning rate" in read_status(folder).message


def command(name: str) -> list[str]:
    return ["-m", "gptviz", "train", "--resume", name]


def test_a_run_trained_outside_the_queue_counts_and_can_be_paused(
    queue: Queue, launches: Launches, home: Path
) -> None:
    prepared("orphan", steps=LONG)
    with (home / "errors").open("wb") as errors:
        other = TrainingThread(command("orphan"), env={"GPTVIZ_HOME": str(home)}, stderr=errors)
    try:
        waits_for_the_orphan(queue, launches)
        assert other.wait(60) == 0
    finally:
        other.kill()
        other.wait()


@pytest.mark.full
def test_a_run_trained_by_a_process_of_the_command_line_counts_and_can_be_paused(
    queue: Queue, launches: Launches
) -> None:
    prepared("orphan", steps=LONG)
    with running(command("orphan")) as other:
        waits_for_the_orphan(queue, launches)
        other.communicate(timeout=PATIENCE)
        assert other.returncode == 0


def waits_for_the_orphan(queue: Queue, launches: Launches) -> None:
    """The next run begins once the orphan, which the queue has not started, is paused."""
    prepared("patient", steps=20)
    until(lambda: trained("orphan"))
    assert queue.place("orphan") == 0
    assert queue.submit("patient") == 1
    assert queue.place("patient") == 1
    queue.pause("orphan")
    until(lambda: state("patient") == "finished")
    assert state("orphan") == "paused"
    assert launches.made == [("patient", [])]


@pytest.mark.full
def test_a_process_outlives_the_server_that_started_it_and_the_next_one_takes_over_the_line(
    home: Path,
) -> None:
    prepared("survivor", steps=LONG)
    prepared("heir", steps=20)
    server = (
        "import time; from gptviz.runs import queue\n"
        "queue.submit('survivor'); queue.submit('heir')\n"
        "while queue.own_queue().place('survivor'): time.sleep(0.05)\n"
        "print(queue.own_queue()._processes['survivor'].pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with running(["-c", server]) as first:
        said = first.stdout.readline()
        assert said, first.stderr.read()
        with guarded(int(said)):
            until(lambda: trained("survivor"))
            if hasattr(os, "killpg"):
                os.kill(first.pid, signal.SIGINT)
            first.kill()
            first.wait()
            assert state("survivor") == "running"
            again = own_queue()
            try:
                assert (again.place("survivor"), again.place("heir")) == (0, 1)
                own_queue().stop("survivor")
                until(lambda: state("survivor") == "stopped")
                until(lambda: state("heir") == "finished")
                until(lambda: not again._processes)
            finally:
                again.close()


def test_what_cannot_be_trained_is_refused_with_the_reason(
    queue: Queue, tiny_model: Callable[..., Path]
) -> None:
    with pytest.raises(checkpoints.CheckpointError, match="no run named '../../x'"):
        queue.submit("../../x")
    with pytest.raises(checkpoints.CheckpointError, match="no run named 'shakespeare'"):
        queue.submit("shakespeare")
    tiny_model("untrained")
    with pytest.raises(RunError, match="does not say how it was trained"):
        queue.submit("untrained")
    prepared("done", steps=3)
    queue.submit("done")
    until(lambda: state("done") == "finished")
    with pytest.raises(RunError, match="is finished"):
        queue.submit("done")
    with pytest.raises(RunError, match="not being trained"):
        queue.pause("done")


def test_a_run_deleted_while_it_waits_is_forgotten(queue: Queue) -> None:
    prepared("long", steps=LONG)
    gone = prepared("gone", steps=LONG)
    queue.submit("long")
    queue.submit("gone")
    gone.rename(gone.with_name(".gone"))
    assert queue.waiting_runs() == []
    assert queue.place("gone") is None


def test_thirty_browsers_that_submit_at_once_all_get_a_place_or_a_refusal(queue: Queue) -> None:
    for index in range(12):
        prepared(f"run-{index:02d}", steps=LONG)
    outcomes: list[str] = []

    def press(index: int) -> None:
        try:
            queue.submit(f"run-{index % 12:02d}")
            outcomes.append("taken")
        except QueueFullError:
            outcomes.append("refused")

    presses = [threading.Thread(target=press, args=(index,)) for index in range(30)]
    for thread in presses:
        thread.start()
    for thread in presses:
        thread.join()
    assert len(outcomes) == 30
    assert len(queue.waiting_runs()) <= 3
    assert len(queue.training()) <= 1
    assert {state(f"run-{index:02d}") for index in range(12)} <= {"waiting", "running", "ready"}
    content = [
        json.loads((folder / "status.json").read_text())
        for folder in checkpoints.folders().values()
        if (folder / "status.json").exists()
    ]
    assert len(content) == 12
