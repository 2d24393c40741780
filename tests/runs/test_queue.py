"""The queue in front of the machine, with real processes that train tiny runs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from gptviz.data.text import TaskSource
from gptviz.runs import checkpoints
from gptviz.runs.log import read_log
from gptviz.runs.queue import POLL, Queue, QueueFullError, own_queue, stop
from gptviz.runs.run import RunSpec, prepare, read_run
from gptviz.runs.status import RunError, read_status
from gptviz.text import task
from gptviz.train.recipe import Recipe
from tests.tiny import tiny

ROOT = Path(__file__).resolve().parents[2]
LONG = 1_000_000


def prepared(name: str, steps: int, **settings: Any) -> Path:
    """A run that reverses four symbols."""
    reversal = task("reversal", vocab=11, length=4)
    given = {"batch_size": 4, "evaluations": 2, "compile": "no", "precision": "float32", "snapshots": 0} | settings
    source, recipe = TaskSource(reversal), Recipe(steps=steps, **given)
    return prepare(RunSpec(name=name, config=tiny(), tokenizer=reversal.tokenizer, source=source, recipe=recipe))


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def state(name: str) -> str:
    return read_status(checkpoints.find(name)).state


def trained(name: str) -> bool:
    """Whether the run is being trained and has taken a step that is on the disk."""
    return state(name) == "running" and any(line.kind == "step" for line in read_log(log(name)))


def log(name: str) -> Path:
    return checkpoints.find(name) / "log.jsonl"


@pytest.fixture
def queue(home: Path) -> Iterator[Queue]:
    made = Queue(home / "checkpoints", waiting=3)
    yield made
    made.close()


def test_runs_are_trained_one_at_a_time_in_the_order_they_came(queue: Queue) -> None:
    names = ["zebra", "ape", "mole"]
    for name in names:
        prepared(name, steps=20)
    assert [queue.submit(name) for name in names] == [0, 1, 2]
    seen: list[tuple[str, ...]] = []
    finished = []
    while len(finished) < 3:
        running = tuple(name for name in names if state(name) == "running")
        assert len(running) <= 1
        if running and running != (seen or [None])[-1]:
            seen.append(running)
        finished = [name for name in names if state(name) == "finished"]
        time.sleep(0.01)
    order = sorted(names, key=lambda name: (checkpoints.find(name) / "status.json").stat().st_mtime_ns)
    assert order == names
    assert [run for (run,) in seen] == [name for name in names if (name,) in seen]
    until(lambda: not queue.is_attended)
    assert [queue.place(name) for name in names] == [None, None, None]


def test_more_than_may_wait_are_refused_and_what_waits_stays(queue: Queue) -> None:
    for index in range(5):
        prepared(f"run-{index}", steps=LONG)
    queue.submit("run-0")
    until(lambda: queue.place("run-0") == 0)
    assert [queue.submit(f"run-{index}") for index in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(QueueFullError, match="3 runs wait already"):
        queue.submit("run-4")
    assert state("run-4") == "ready"
    assert queue.waiting() == ["run-1", "run-2", "run-3"]
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
    assert queue.waiting() == ["second", "third"]


@pytest.mark.full
def test_a_paused_and_resumed_run_ends_with_the_losses_of_one_that_never_was(queue: Queue) -> None:
    steps = 600
    prepared("straight", steps)
    prepared("broken", steps)
    queue.submit("straight")
    until(lambda: state("straight") == "finished")
    queue.submit("broken")
    until(lambda: trained("broken"))
    queue.pause("broken")
    until(lambda: state("broken") == "paused")
    paused_at = read_run(checkpoints.find("broken")).card["steps"]
    assert 0 < paused_at < steps
    assert queue.place("broken") is None
    queue.submit("broken")
    until(lambda: state("broken") == "finished")
    losses = [
        [(line.step, line.loss) for line in read_log(log(name)) if line.kind == "evaluation"] for name in ("straight", "broken")
    ]
    assert losses[0] == losses[1]
    weights = [load_file(checkpoints.find(name) / "model.safetensors") for name in ("straight", "broken")]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def test_a_pause_asked_for_before_the_process_has_begun_is_kept(queue: Queue) -> None:
    prepared("early", steps=LONG)
    queue.submit("early")
    until(lambda: "early" in queue.processes())
    assert state("early") == "waiting"
    queue.pause("early")
    until(lambda: state("early") == "paused")


def test_a_killed_process_leaves_a_run_that_says_so_and_can_be_resumed(queue: Queue) -> None:
    folder = prepared("killed", steps=LONG)
    queue.submit("killed")
    until(lambda: trained("killed"))
    os.kill(queue.processes()["killed"], signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
    until(lambda: not queue.is_attended)
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
    folder = prepared("stillborn", steps=5)
    queue.submit("stillborn", device="abacus")
    until(lambda: read_status(folder).state == "failed")
    assert "could not begin: no device 'abacus'" in read_status(folder).message
    queue.submit("stillborn", device="cpu")
    until(lambda: state("stillborn") == "finished")


def test_a_run_whose_loss_explodes_fails_with_what_to_change_and_the_next_goes_on(queue: Queue) -> None:
    folder = prepared("wild", steps=2_000, learning_rate=1e30, optimiser="sgd", clip=0.0, warmup=0.0)
    prepared("tame", steps=20)
    queue.submit("wild")
    queue.submit("tame")
    until(lambda: state("tame") == "finished")
    assert read_status(folder).state == "failed"
    assert "lower the learning rate" in read_status(folder).message


@pytest.mark.full
def test_a_run_trained_by_another_process_counts_and_can_be_paused(queue: Queue, home: Path) -> None:
    prepared("orphan", steps=LONG)
    prepared("patient", steps=20)
    other = subprocess.Popen(
        [sys.executable, "-m", "gptviz", "train", "--resume", "orphan"],
        cwd=ROOT,
        env={**os.environ, "GPTVIZ_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: trained("orphan"))
        assert queue.place("orphan") == 0
        assert queue.submit("patient") == 1
        time.sleep(3 * POLL)
        assert queue.place("patient") == 1
        queue.pause("orphan")
        assert other.wait(30) == 0
        assert state("orphan") == "paused"
        until(lambda: state("patient") == "finished")
    finally:
        other.kill()


@pytest.mark.full
def test_a_process_outlives_the_server_that_started_it_and_the_next_one_takes_over_the_line(home: Path) -> None:
    prepared("survivor", steps=LONG)
    prepared("heir", steps=20)
    server = (
        "import time; from gptviz.runs import queue\n"
        "queue.submit('survivor'); queue.submit('heir')\n"
        "while queue.place('survivor'): time.sleep(0.05)\n"
        "print(queue.own_queue().processes()['survivor'], flush=True)\n"
        "time.sleep(60)\n"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", server], cwd=ROOT, env={**os.environ, "GPTVIZ_HOME": str(home)}, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    worker = int(first.stdout.readline())
    try:
        until(lambda: trained("survivor"))
        if hasattr(os, "killpg"):
            os.kill(first.pid, signal.SIGINT)
        first.kill()
        first.wait()
        assert state("survivor") == "running"
        again = own_queue()
        assert (again.place("survivor"), again.place("heir")) == (0, 1)
        stop("survivor")
        until(lambda: state("survivor") == "stopped")
        until(lambda: state("heir") == "finished")
        until(lambda: not again.is_attended)
    finally:
        first.kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGTERM)


def test_what_cannot_be_trained_is_refused_with_the_reason(queue: Queue, tiny_model: Callable[..., Path]) -> None:
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
    assert queue.waiting() == []
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
    assert len(queue.waiting()) <= 3
    assert len(queue.training()) <= 1
    assert {state(f"run-{index:02d}") for index in range(12)} <= {"waiting", "running", "ready"}
    content = [
        json.loads((folder / "status.json").read_text())
        for folder in checkpoints.folders().values()
        if (folder / "status.json").exists()
    ]
    assert len(content) == 12
