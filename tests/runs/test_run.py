"""Runs: whatever stops one, it goes on exactly; what it keeps is what it was; and nothing it finds
on the disk harms it.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors.torch import load_file

from gptviz.data.batches import consecutive_windows
from gptviz.data.registry import source_from
from gptviz.data.text import TaskSource, TextSource
from gptviz.machine.cores import FreeCores
from gptviz.model import build
from gptviz.runs import checkpoints, log, training
from gptviz.runs.checkpoints import CheckpointError, NameInUseError
from gptviz.runs.log import LogLine, read_log
from gptviz.runs.run import RunSpec, free_disk, prepare, read_run
from gptviz.runs.status import (
    RunError,
    RunState,
    Status,
    StopRequest,
    mark_waiting,
    read_status,
    request_stop,
    write_status,
)
from gptviz.runs.training import Sampled, train
from gptviz.text import CharTokenizer, Corpus, task
from gptviz.train.divergence import DivergedError
from gptviz.train.engine import Engine
from gptviz.train.evaluation import evaluate
from gptviz.train.recipe import Recipe
from gptviz.train.trainer import Evaluated, Stepped, Trainer
from tests.examples import quick
from tests.processes import running
from tests.small_runs import (
    OPTIMISERS,
    TEXT,
    finish,
    recipe,
    same,
    task_run,
    text_run,
    until,
    weights,
)
from tests.tiny import VOCAB, tiny
from tests.waiting import wait_until

TIMES = ("seconds", "seconds_left", "tokens_per_second", "wall_seconds")


pytestmark = pytest.mark.usefixtures("no_bundled_models")


def timeless(content: dict[str, Any]) -> dict[str, Any]:
    """Without what a clock said."""
    return {key: value for key, value in content.items() if key not in TIMES}


def told(folder: Path) -> list[LogLine]:
    """The log without what a clock said."""
    times = dict.fromkeys(("seconds", "seconds_left", "tokens_per_second"))
    return [replace(line, **times) for line in read_log(folder / "log.jsonl")]


def carded(folder: Path) -> dict[str, Any]:
    """The card without what a clock said."""
    card = timeless(checkpoints.read_card(folder).to_json())
    return card | {"losses": [timeless(entry) for entry in card["losses"]]}


def snapshots(folder: Path) -> dict[int, dict[str, torch.Tensor]]:
    return {step: load_file(path) for step, path in checkpoints.snapshots(folder).items()}


def assert_alike(one: Path, other: Path) -> None:
    """Two finished runs differ in nothing but their times."""
    assert told(one) == told(other)
    assert carded(one) == carded(other)
    kept = snapshots(one), snapshots(other)
    assert list(kept[0]) == list(kept[1])
    assert all(same(kept[0][step], kept[1][step]) for step in kept[0])
    assert same(load_file(one / "model.safetensors"), load_file(other / "model.safetensors"))
    assert [read_status(folder).state for folder in (one, other)] == ["finished", "finished"]


def in_a_process(folder: Path, body: str = "pass") -> AbstractContextManager[subprocess.Popen[str]]:
    """A process that trains the run; `body` is done for each event. Every line of the log is on the
    disk at once.
    """
    code = (
        "from gptviz.runs import log\nfrom gptviz.runs.training import train\nimport os, pathlib\n"
    )
    code += (
        f"log.FLUSH_EVERY = -1\nfolder = pathlib.Path({str(folder)!r})\nfor event in "
        f"train(folder):\n    {body}\n"
    )
    return running(
        ["-c", code], env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL
    )


@pytest.fixture
def killed() -> Path:
    """A run whose process ended at once, as a killed one does, after its 28th step, well after the
    state saved at the 20th.
    """
    folder = task_run("killed", steps=40, evaluations=2)
    with in_a_process(folder, "getattr(event, 'step', 0) == 29 and os._exit(9)") as process:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 9, errors
    return folder


def test_a_run_written_down_has_everything_and_has_not_begun() -> None:
    folder = task_run(options={"about": {"preset": "copy"}})
    run = read_run(folder)
    assert read_status(folder).state == "ready"
    assert (run.name, run.engine, run.recipe.steps) == ("run", None, 30)
    assert isinstance(source_from(run.source), TaskSource)
    assert (run.card.plan, run.card.steps, run.card.validation_loss) == ("copy", 0, None)
    assert same(weights(checkpoints.load(folder).model), weights(build(tiny(n_layer=1), seed=0)))


def test_a_run_tells_its_engine_then_every_event_and_a_sample_after_each_evaluation() -> None:
    events = list(train(text_run(steps=6, evaluations=2)))
    kinds = [type(event).__name__ for event in events]
    steps = ["Stepped"] * 3
    evaluated = ["Evaluated", "Sampled"]
    assert kinds == ["Engine", *evaluated, *steps, *evaluated, *steps, *evaluated]
    assert all(len(event.text) > 100 for event in events if isinstance(event, Sampled))


@pytest.mark.parametrize(("compiled", "threads"), [(False, 2), (True, 3)])
def test_a_run_computes_on_the_cores_that_are_free_but_a_compiled_one_on_those_it_was_compiled_for(
    compiled: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FreeCores, "count", lambda cores: 2.0)
    monkeypatch.setattr(training, "_usable_engine", lambda *about: Engine(False, compiled))
    monkeypatch.setattr(Engine, "forward", lambda engine, model: model)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        steps = (
            event for event in train(task_run(steps=4, evaluations=1)) if isinstance(event, Stepped)
        )
        assert [torch.get_num_threads() for _ in steps] == 4 * [threads]
        assert torch.get_num_threads() == 3, "after it there are as many as before"
    finally:
        torch.set_num_threads(before)


def test_a_finished_run_is_a_model_with_a_card_that_says_how_it_was_made() -> None:
    folder = task_run(steps=8, evaluations=4)
    events = list(train(folder))
    opened = checkpoints.load(folder)
    evaluations = [event for event in events if isinstance(event, Evaluated)]
    source = source_from(dict(opened.card.source or {}))
    final = evaluate(opened.model, source.data(opened.tokenizer, opened.model.config).validation())
    assert opened.card.validation_loss == final.loss == evaluations[-1].loss
    assert opened.card.accuracy == final.accuracy
    assert opened.card.accuracy_by_place == tuple(final.by_place())
    assert opened.card.floor == task("copy", vocab=VOCAB, lag=3, length=9).floor
    assert [entry.step for entry in opened.card.losses] == [0, 2, 4, 6, 8]
    assert [entry.validation for entry in opened.card.losses] == [
        event.loss for event in evaluations
    ]
    assert opened.card.steps == 8
    assert read_status(folder).state == "finished"
    assert {file.name for file in folder.iterdir() if not file.name.startswith(".")} == (
        checkpoints.FILES
        - {
            "source.json",
            "adapter.json",
            "state.safetensors",
            "stop_request",
            "wish",
            "dictionary.safetensors",
            "notes.json",
            "plan.json",
        }
    )


def test_a_text_that_the_tokens_cannot_read_is_said_on_the_card_once_also_of_a_run_that_goes_on() -> (
    None
):
    tokenizer = CharTokenizer("abc ")
    source = TextSource(Corpus("other letters", "abc xyz " * 60))
    config = tiny(vocab_size=tokenizer.vocab_size, n_layer=1)
    folder = prepare(
        RunSpec(
            name="run", config=config, tokenizer=tokenizer, source=source, recipe=recipe(steps=4)
        )
    )
    until(folder, 2)
    finish(folder)
    (note,) = checkpoints.read_card(folder).notes
    assert (
        "In the first 480 tokens of other letters the vocabulary lacks something 180 times. Not "
        "in the vocabulary: x" in note
    )
    whole = text_run("whole", steps=2)
    finish(whole)
    assert not checkpoints.read_card(whole).notes


def test_the_log_tells_every_step_evaluation_and_sample_in_order() -> None:
    folder = text_run(steps=10, evaluations=2)
    events = list(train(folder))
    lines = told(folder)
    steps = [event for event in events if isinstance(event, Stepped)]
    assert [line.loss for line in lines if line.kind == "step"] == pytest.approx(
        [event.loss for event in steps], rel=1e-5
    )
    assert [line.loss for line in lines if line.kind == "evaluation"] == [
        e.loss for e in events if isinstance(e, Evaluated)
    ]
    assert [line.text for line in lines if line.kind == "sample"] == [
        event.text for event in events if isinstance(event, Sampled)
    ]
    assert [line.step for line in lines] == sorted(line.step for line in lines)
    assert {line.kind for line in lines} == {"step", "evaluation", "sample"}


def test_a_long_log_is_thinned_and_its_losses_are_the_means_of_those_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log, "LINES_PER_DOUBLING", 4)
    folder = task_run(steps=37, evaluations=1, snapshots=0)
    losses = [event.loss for event in train(folder) if isinstance(event, Stepped)]
    lines = [line for line in told(folder) if line.kind == "step"]
    assert [line.step for line in lines] == [*range(1, 9), 10, 12, 14, 16, 20, 24, 28, 32, 37][
        : len(lines)
    ]
    before = 0
    for line in lines:
        left_out = losses[before : line.step]
        assert line.loss == pytest.approx(sum(left_out) / len(left_out), rel=1e-5)
        before = line.step
    assert before == 37


@pytest.mark.parametrize("optimiser", quick(OPTIMISERS, "adamw", "muon"))
def test_pausing_and_going_on_is_never_having_stopped(
    optimiser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # so that a pause falls between two lines of the log
    monkeypatch.setattr(log, "LINES_PER_DOUBLING", 4)
    settings = {"steps": 23, "evaluations": 4, "optimiser": optimiser}
    unbroken = finish(text_run("a", **settings))
    folder = text_run("b", **settings)
    for step in (1, 6, 11, 13):  # an evaluation is due after 6
        assert [event.step for event in until(folder, step) if isinstance(event, Stepped)][
            -1
        ] == step
        assert read_status(folder).state == "paused"
        assert checkpoints.load(folder).card.steps == step
    assert_alike(finish(folder), unbroken)


@pytest.mark.parametrize("stop", [5, 6])  # an evaluation is due after 6
def test_a_stopped_run_is_evaluated_and_can_go_on_all_the_same(stop: int) -> None:
    settings = {"steps": 12, "evaluations": 4, "snapshots": 1}
    unbroken = finish(task_run("a", **settings))
    folder = task_run("b", **settings)
    events = until(folder, stop, "stop")
    assert read_status(folder).state == "stopped"
    assert isinstance(events[-1], Sampled)
    opened = checkpoints.load(folder)
    loss = evaluate(
        opened.model,
        source_from(dict(opened.card.source or {}))
        .data(opened.tokenizer, opened.model.config)
        .validation(),
    ).loss
    assert opened.card.validation_loss == loss
    assert opened.card.losses[-1].step == stop
    assert same(load_file(folder / f"snapshots/{stop:08d}.safetensors"), weights(opened.model))
    finish(folder)
    # At the step of the stop it was evaluated on all that is held out, where a run that goes on
    # reads a share of it, or nothing.
    others = [
        [line for line in told(one) if line.kind == "step" or line.step != stop]
        for one in (folder, unbroken)
    ]
    assert others[0] == others[1]
    assert same(load_file(folder / "model.safetensors"), load_file(unbroken / "model.safetensors"))


def test_a_stop_request_left_over_stops_nothing_and_one_made_now_does() -> None:
    folder = task_run(steps=9)
    request_stop(folder, "stop")
    steps = [event.step for event in train(folder) if isinstance(event, Stepped)]
    assert steps == list(range(1, 10))
    folder = task_run("other", steps=9)
    for event in train(folder):
        if isinstance(event, Stepped):
            assert event.step <= 2
            if event.step == 2:
                request_stop(folder, "pause")
    assert read_status(folder).state == "paused"
    assert not (folder / "stop_request").exists()


@pytest.mark.parametrize("how", ["pause", "stop"])
def test_a_request_while_the_engine_is_chosen_ends_the_run_before_its_first_step(
    how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unbroken = finish(task_run("a", steps=4))
    folder = task_run("b", steps=4)
    said = []

    def choose(*arguments: Any, meanwhile: Callable[[str], None]) -> Engine:
        meanwhile("timing steps in float32")
        said.append(read_status(folder))
        request_stop(folder, how)
        meanwhile("timing steps in float32")
        raise AssertionError("the choice goes on")

    with monkeypatch.context() as other:
        other.setattr(training, "choose_engine", choose)
        assert list(train(folder)) == []
    assert (said[0].state, said[0].message) == ("running", "timing steps in float32 (0 s so far)")
    assert read_status(folder).state == "ready"
    assert not (folder / "stop_request").exists()
    assert_alike(finish(folder), unbroken)


def asked_amid_an_evaluation(
    folder: Path, at: int, how: StopRequest, given_up: tuple[int, ...]
) -> list[Any]:
    """The events of a run that is asked to end between the batches of the evaluation after this
    step.

    Nothing is asked after the step itself, but where the evaluation at this step can be `given_up`
    at once.
    """
    events: list[Any] = []
    asked: list[int] = []

    def requested() -> StopRequest | None:
        if at and not (events and isinstance(events[-1], Stepped) and events[-1].step == at):
            return None
        asked.append(at)
        return how if at in given_up or len(asked) > 1 else None

    events.extend(train(folder, stop_requested=requested))
    assert asked
    return events


@pytest.mark.parametrize("at", [0, 6, 12])
def test_a_pause_in_the_middle_of_an_evaluation_gives_it_up_and_it_is_made_when_the_run_goes_on(
    at: int,
) -> None:
    settings = {"steps": 12, "evaluations": 2}
    unbroken = finish(task_run("a", **settings))
    folder = task_run("b", **settings)
    events = asked_amid_an_evaluation(folder, at, "pause", (0, 12))
    assert read_status(folder).state == "paused"
    assert at not in [event.step for event in events if isinstance(event, Evaluated)]
    assert_alike(finish(folder), unbroken)


@pytest.mark.parametrize("at", [6, 12])
def test_a_stop_in_the_middle_of_an_evaluation_leaves_only_the_last_one(at: int) -> None:
    folder = task_run("a", steps=12, evaluations=2)
    events = asked_amid_an_evaluation(folder, at, "stop", (12,))
    assert read_status(folder).state == ("stopped" if at == 6 else "finished")
    evaluated = [event for event in events if isinstance(event, Evaluated) and event.step == at]
    assert [event.share for event in evaluated] == [1.0], "one, of all that is held out"


def test_a_killed_run_is_interrupted_and_going_on_ends_with_the_same_curve(killed: Path) -> None:
    assert read_status(killed).state == "interrupted"
    assert "can be resumed" in read_status(killed).message
    assert checkpoints.load(killed).card.steps == 20
    assert max(line.step for line in told(killed)) > 20
    assert max(checkpoints.snapshots(killed)) > 20
    begun = train(killed)
    assert [type(next(begun)).__name__ for _ in range(2)] == ["Engine", "Stepped"]
    begun.close()  # type: ignore[attr-defined]
    # what came after the state saved is not this run's any more
    assert max(checkpoints.snapshots(killed)) == 20
    resumed = [event.step for event in train(killed) if isinstance(event, Stepped)]
    assert resumed == list(range(21, 41))
    assert_alike(killed, finish(task_run("unbroken", steps=40, evaluations=2)))


@pytest.mark.parametrize("evaluations_made", [1, 2, 3])
def test_a_run_killed_between_an_evaluation_and_its_save_has_no_line_of_its_log_twice(
    evaluations_made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "FLUSH_EVERY", -1)
    # so that the state is also saved between a step and its evaluation
    monkeypatch.setattr(training, "SAVE_EVERY", 0.0)
    folder = task_run(steps=6, evaluations=2)
    begun = train(folder)
    samples = 0
    while samples < evaluations_made:  # a sample is told before the run is saved
        samples += isinstance(next(begun), Sampled)
    begun.close()  # type: ignore[attr-defined]
    assert [line.kind for line in told(folder)].count("evaluation") == evaluations_made
    assert read_status(folder).state == "interrupted"
    assert_alike(finish(folder), finish(task_run("unbroken", steps=6, evaluations=2)))


def test_a_run_paused_by_an_older_version_which_counted_no_lines_goes_on_with_its_log(
    paused: Path,
) -> None:
    with_state(
        paused, lambda state: {name: value for name, value in state.items() if name != "log.lines"}
    )
    assert_alike(finish(paused), finish(task_run("unbroken", steps=12, evaluations=1)))


def test_a_run_killed_before_anything_was_saved_begins_again() -> None:
    folder = task_run(steps=5)
    begun = train(folder)
    next(begun)
    assert read_status(folder).state == "running"
    begun.close()  # type: ignore[attr-defined]  # as a killed process does, it gives its lock back and writes nothing more
    assert read_status(folder).state == "interrupted"
    assert_alike(finish(folder), finish(task_run("unbroken", steps=5)))


def test_a_state_is_saved_every_so_often_between_evaluations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "SAVE_EVERY", 0.0)
    folder = task_run(steps=9, evaluations=1)
    running = train(folder)
    for event in running:
        if isinstance(event, Stepped) and event.step == 5:
            break
    # that of the fifth is kept once it was told
    assert load_file(folder / "state.safetensors")["step"] == 4
    next(running)
    assert load_file(folder / "state.safetensors")["step"] == 5
    running.close()  # type: ignore[attr-defined]
    assert read_status(folder).state == "interrupted"
    assert_alike(finish(folder), finish(task_run("unbroken", steps=9, evaluations=1)))


@pytest.mark.parametrize("store", ["float32", "float16"])
def test_a_snapshot_is_the_weights_after_its_steps_and_the_last_is_the_model(store: str) -> None:
    folder = task_run(steps=11, evaluations=2, options={"store": store})
    finish(folder)
    run = read_run(folder)
    model = build(tiny(n_layer=1), seed=0)
    dtype = getattr(torch, store)
    expected = {0: {name: value.to(dtype) for name, value in weights(model).items()}}
    tokenizer = checkpoints.load(folder).tokenizer
    for event in Trainer(model, source_from(run.source).data(tokenizer, model.config), run.recipe):
        expected[event.step] = {name: value.to(dtype) for name, value in weights(model).items()}
    kept = snapshots(folder)
    assert list(kept) == [0, 1, 2, 3, 4, 5, 6, 8, 10, 11]
    assert all(same(kept[step], expected[step]) for step in kept)
    assert not same(kept[10], kept[11])
    assert same(kept[11], load_file(folder / "model.safetensors"))
    assert same(
        weights(checkpoints.load(folder, step=3).model),
        {name: value.float() for name, value in expected[3].items()},
    )
    with pytest.raises(CheckpointError, match="no snapshot of step 7: there are 0, 1, 2"):
        checkpoints.load(folder, step=7)


def test_a_run_that_keeps_no_snapshots_has_none() -> None:
    assert snapshots(finish(task_run(steps=4, snapshots=0))) == {}


def test_a_finished_run_cannot_go_on_says_what_to_do_and_stays_finished() -> None:
    folder = finish(task_run(steps=2))
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    with pytest.raises(RunError, match="run is finished: begin a new run with its weights"):
        finish(folder)
    assert read_status(folder).state == "finished"
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before


def test_a_model_that_says_nothing_of_its_training_cannot_be_trained_on(
    tiny_model: Callable[..., Path],
) -> None:
    folder = tiny_model("bare")
    with pytest.raises(RunError, match="bare does not say how it was trained"):
        finish(folder)
    assert read_status(folder).state == "finished"
    assert not (folder / "status.json").exists()


def test_a_run_begins_with_the_weights_it_is_given() -> None:
    begin = checkpoints.load(finish(task_run("a", steps=3))).model
    folder = task_run("b", options={"initial": begin})
    assert same(load_file(folder / "model.safetensors"), weights(begin))


# What can go wrong with a run on the way.


@pytest.mark.parametrize(
    ("rate", "store"), [(1e30, "float32"), (1e38, "float32"), (1e6, "float16")]
)
def test_a_run_that_diverges_says_the_learning_rate_and_its_last_good_weights_stay(
    rate: float, store: str
) -> None:
    folder = task_run(learning_rate=rate, evaluations=1, options={"store": store})
    with pytest.raises(DivergedError, match="lower the learning rate"):
        finish(folder)
    failed = read_status(folder)
    assert failed.state == "failed"
    assert failed.message.startswith("it diverged: ")
    assert (
        f"lower the learning rate ({rate:g}), lengthen the warm-up (5% of the run), or clip "
        "gradients" in failed.message
    )
    assert checkpoints.read_card(folder).diverged == failed.message
    assert [line.text for line in read_log(folder / "log.jsonl") if line.kind == "diverged"] == [
        failed.message
    ]
    assert all(value.isfinite().all() for value in weights(checkpoints.load(folder).model).values())
    assert load_file(folder / "state.safetensors")["step"] == 0


def fails_at(monkeypatch: pytest.MonkeyPatch, name: str, step: int, folder: Path) -> None:
    """The disk is full whenever this file is to be written from this step on."""
    write = safetensors.torch.save_file

    def full(tensors: dict[str, torch.Tensor], path: Path, **options: Any) -> None:
        if name in path.name and max([line.step for line in told(folder)], default=0) >= step:
            path.write_bytes(b"half a file")
            raise OSError(errno.ENOSPC, "No space left on device")
        write(tensors, path, **options)

    monkeypatch.setattr(safetensors.torch, "save_file", full)


@pytest.mark.parametrize("file", quick(["state", "model", "00000"], "model"))
def test_a_full_disk_is_reported_the_last_good_model_opens_and_the_run_goes_on(
    file: str, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    folder = task_run(steps=12, evaluations=3)
    with monkeypatch.context() as patch:
        fails_at(patch, file, 4, folder)
        with pytest.raises(
            CheckpointError,
            match=r"cannot write .* \(No space left on device\): the last good one is untouched",
        ):
            finish(folder)
    assert read_status(folder).state == "failed"
    assert "No space left on device" in read_status(folder).message
    step = int(load_file(folder / "state.safetensors")["step"])
    assert step == (0 if file != "00000" else 4)
    assert all(value.isfinite().all() for value in weights(checkpoints.load(folder).model).values())
    assert not list(home.rglob(".*safetensors*"))
    assert_alike(finish(folder), finish(task_run("unbroken", steps=12, evaluations=3)))


def test_a_disk_too_full_for_the_log_or_the_status_is_reported_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = task_run(steps=12, evaluations=3)
    opening = Path.open
    writing = Path.write_text

    def full_open(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if mode == "a":
            raise OSError(errno.ENOSPC, "No space left on device")
        return opening(path, mode, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full_open)
        with pytest.raises(
            CheckpointError, match="cannot write .*log.jsonl .*make room on the disk, then resume"
        ):
            finish(folder)
    assert read_status(folder).state == "failed"
    finish(folder)

    def full_write(path: Path, *arguments: Any, **options: Any) -> int:
        if "status.json" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return writing(path, *arguments, **options)

    folder = task_run("other", steps=12)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full_write)
        with pytest.raises(CheckpointError, match="cannot write .*status.json"):
            finish(folder)
    assert read_status(folder).state == "ready"


def refused_while_it_trains(folder: Path) -> None:
    refused = (
        "run is being trained by another process: wait for it, stop it, or choose another name"
    )
    with pytest.raises(RunError, match=refused):
        next(train(folder))
    with pytest.raises(RunError, match=refused):
        task_run(options={"replace": True})
    assert read_status(folder).state == "running"
    request_stop(folder, "stop")


def test_a_run_is_trained_by_one_alone() -> None:
    folder = task_run(steps=10**6, evaluations=1)
    first = train(folder)
    next(first)
    refused_while_it_trains(folder)
    assert isinstance(list(first)[-1], Sampled)
    assert read_status(folder).state == "stopped"


@pytest.mark.full
def test_two_processes_cannot_train_one_run() -> None:
    folder = task_run(steps=10**6, evaluations=1)
    with in_a_process(folder) as process:
        wait_until(lambda: read_status(folder).state == "running")
        refused_while_it_trains(folder)
        assert process.communicate(timeout=300)[1] == ""
    assert read_status(folder).state == "stopped"


# Names.


def test_a_name_taken_is_said_and_the_model_stays_unless_it_is_to_be_replaced() -> None:
    folder = finish(task_run(steps=3))
    request_stop(folder, "stop")
    before = load_file(folder / "model.safetensors")
    with pytest.raises(
        NameInUseError,
        match="there is a model named run already: choose another name, or replace it",
    ):
        task_run(steps=5, seed=1)
    assert same(load_file(folder / "model.safetensors"), before)
    assert task_run(steps=5, seed=1, options={"replace": True}) == folder
    assert read_status(folder).state == "ready"
    assert snapshots(folder) == {}
    assert not (folder / "log.jsonl").exists()
    finish(folder)
    assert checkpoints.load(folder).card.steps == 5


def test_a_run_whose_data_does_not_suit_the_model_is_not_written_down(home: Path) -> None:
    copying = task("copy", vocab=VOCAB, lag=3, length=9)
    letters = CharTokenizer(TEXT)
    text = TextSource(Corpus("short", "abcdefgh"))
    unsuited: list[tuple[Any, Any, Any, str]] = [
        (tiny(context_length=5), copying.tokenizer, TaskSource(copying), "copy needs 8 or more"),
        (
            tiny(vocab_size=7),
            copying.tokenizer,
            TaskSource(copying),
            "vocab_size is 7; the tokenizer has 11 tokens",
        ),
        (
            tiny(vocab_size=letters.vocab_size),
            letters,
            TaskSource(copying),
            "copy has tokens of its own",
        ),
        (
            tiny(vocab_size=letters.vocab_size),
            letters,
            text,
            "has 7 tokens to train on; a context of 8 needs at least 9",
        ),
    ]
    for config, tokenizer, source, said in unsuited:
        with pytest.raises(ValueError, match=said):
            prepare(
                RunSpec(
                    name="run",
                    config=config,
                    tokenizer=tokenizer,
                    source=source,
                    recipe=Recipe(steps=1),
                )
            )
    assert not list(home.rglob("*.json"))


# What a stranger, a crash or a bad copy can do to a run's folder.


def edit_card(folder: Path, **changes: Any) -> None:
    content = json.loads((folder / "card.json").read_text())
    (folder / "card.json").write_text(json.dumps(content | changes))


def with_state(
    folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]
) -> None:
    state = load_file(folder / "state.safetensors")
    safetensors.torch.save_file(change(state), folder / "state.safetensors")


def cut(folder: Path) -> None:
    path = folder / "state.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


RECIPE = {"steps": 12, "batch_size": 4}
HARM: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no recipe": (lambda f: edit_card(f, recipe=None), "run does not say how it was trained"),
    "a list for a recipe": (
        lambda f: edit_card(f, recipe=[1]),
        "run does not say how it was trained",
    ),
    "a strange recipe": (
        lambda f: edit_card(f, recipe=RECIPE | {"exec": "rm"}),
        "unknown setting 'exec'",
    ),
    "a huge batch": (
        lambda f: edit_card(f, recipe=RECIPE | {"batch_size": 10**12}),
        "batch_size is 1000000000000",
    ),
    "half a batch": (
        lambda f: edit_card(f, recipe=RECIPE | {"batch_size": 4.0}),
        r"batch_size is 4\.0",
    ),
    "a huge rate": (
        lambda f: edit_card(f, recipe=RECIPE | {"learning_rate": 10**400}),
        "learning_rate is 1000",
    ),
    "no source": (lambda f: edit_card(f, source=None), "run does not say how it was trained"),
    "a strange source": (lambda f: edit_card(f, source={"task": "fly"}), "there is no task 'fly'"),
    "a text nobody has": (
        lambda f: edit_card(f, source={"corpus": "\ud800", "sha256": "0" * 64}),
        "is not here any more",
    ),
    "another task": (
        lambda f: edit_card(f, source={"task": "copy", "settings": {"vocab": 999}}),
        "copy has tokens of its own",
    ),
    "a strange engine": (
        lambda f: edit_card(f, engine={"compiled": "yes"}),
        "this does not describe an engine",
    ),
    "a list for an engine": (
        lambda f: edit_card(f, engine=[1]),
        "this does not describe an engine",
    ),
    "a strange type": (
        lambda f: edit_card(f, store="load"),
        "its weights are stored as 'load', not as float32 or float16",
    ),
    "a list for a type": (
        lambda f: edit_card(f, store=["float32"]),
        "run does not say how it was trained",
    ),
    "a card that is a list": (
        lambda f: (f / "card.json").write_text("[]"),
        "run/card.json is not a JSON object",
    ),
    "a deep card": (
        lambda f: (f / "card.json").write_text("[" * 200_000),
        "run/card.json cannot be read",
    ),
    "a state cut short": (cut, "run/state.safetensors is damaged"),
    "an empty state": (
        lambda f: (f / "state.safetensors").write_bytes(b""),
        "run/state.safetensors is damaged",
    ),
    "a state of text": (
        lambda f: (f / "state.safetensors").write_text("{" * 99),
        "run/state.safetensors is damaged",
    ),
    "a state of nothing": (
        lambda f: with_state(f, lambda s: {}),
        "the saved state is of another model",
    ),
    "weights of another shape": (
        lambda f: with_state(f, lambda s: s | {"weights.embed.weight": torch.zeros(2)}),
        "the saved state is of another model",
    ),
    "a memory of another shape": (
        lambda f: with_state(
            f, lambda s: {n: torch.zeros(2) if "exp_avg" in n else v for n, v in s.items()}
        ),
        "what the optimiser remembers is of another",
    ),
    "steps before the first": (
        lambda f: with_state(f, lambda s: s | {"step": torch.tensor(-1)}),
        "counts no steps",
    ),
    "another optimiser": (
        lambda f: edit_card(f, recipe=RECIPE | {"optimiser": "muon"}),
        "what the optimiser remembers is of another model or optimiser",
    ),
}


@pytest.fixture(scope="module")
def _paused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a run that was paused after its fifth step, trained once for all tests."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPTVIZ_HOME", str(folder))
        until(task_run(steps=12, evaluations=1), 5)
    return folder


@pytest.fixture
def paused(home: Path, _paused: Path) -> Path:
    shutil.copytree(_paused, home, dirs_exist_ok=True)
    return checkpoints.find("run")


@pytest.mark.parametrize("kind", HARM)
def test_a_damaged_run_is_refused_with_its_name_and_what_is_wrong(kind: str, paused: Path) -> None:
    harm, said = HARM[kind]
    harm(paused)
    with pytest.raises((RunError, CheckpointError, ValueError, OSError), match=said) as raised:
        finish(paused)
    assert len(str(raised.value)) < 500
    assert "\n" not in str(raised.value)
    assert read_status(paused).state in ("failed", "paused")


@pytest.mark.parametrize(
    "changes",
    [
        {"losses": "many"},
        {"losses": [3, {"step": "x"}, {"step": 10**30}, None]},
        {"wall_seconds": "long"},
        {"wall_seconds": [1]},
        {"wall_seconds": 10**400},
        {"validation_loss": "low", "accuracy": [], "floor": "x"},
        {"corpus": "lone \ud800", "steps": -1},
    ],
)
def test_what_a_card_says_beside_the_recipe_stops_no_run(
    changes: dict[str, Any], paused: Path
) -> None:
    edit_card(paused, **changes)
    finish(paused)
    card = checkpoints.load(paused).card
    assert card.steps == 12
    assert card.losses[-1].step == 12
    assert math.isfinite(card.wall_seconds)
    assert math.isfinite(card.validation_loss)


STATUSES: list[str | bytes] = [
    *(
        "",
        "[]",
        "3",
        "{}",
        '{"state": 5}',
        '{"state": ["running"]}',
        '{"state": "flying"}',
        '{"state": null}',
    ),
    *("[" * 200_000, b"\xff\xfe\x00", '{"state": {"a": 1}, "message": "x"}'),
]


@pytest.mark.parametrize("content", STATUSES, ids=lambda content: repr(content)[:20])
def test_a_status_that_makes_no_sense_is_that_of_a_model_nobody_trains(
    content: str | bytes, paused: Path
) -> None:
    (paused / "status.json").write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    assert read_status(paused).state == "finished"
    finish(paused)


@pytest.mark.parametrize(
    "state", ["ready", "waiting", "running", "paused", "stopped", "finished", "failed"]
)
def test_a_status_is_what_was_said_but_for_a_run_whose_process_is_gone(
    state: RunState, paused: Path
) -> None:
    (paused / "status.json").write_text(json.dumps({"state": state, "message": "\ud800 5"}))
    assert read_status(paused).state == ("interrupted" if state == "running" else state)
    if state != "running":
        assert read_status(paused).message == "\ufffd 5"  # which can be shown


def test_a_log_that_a_stranger_wrote_gives_its_sound_lines_and_stops_no_run(paused: Path) -> None:
    sound = read_log(paused / "log.jsonl")
    strange = [
        "",
        "{",
        "[]",
        "3",
        "null",
        '{"step": "x"}',
        '{"step": null}',
        '{"loss": 1}',
        "[" * 100_000,
        '{"step": 1e999}',
    ]
    strange += ['{"step": true}', '{"step": -5}', "\x00"]
    file = paused / "log.jsonl"
    file.write_bytes(
        b"\n".join(line.encode() for line in strange)
        + b"\n\xff\xfe\n"
        + file.read_bytes()
        + b'{"step": 3'
    )
    assert read_log(file) == sound
    more = ""
    for loss in ("NaN", "1" + "0" * 400, '"high"'):
        more = f'{{"step": 2, "kind": "\\ud800", "loss": {loss}}}\n{{"step": {"9" * 30}}}\n'
        file.write_text(more)
        assert read_log(file) == [LogLine(kind="\ufffd", step=2)]
    file.write_text(more + '{"step": 3}')
    assert read_log(file, at_most=len(more)) == read_log(file)[:1]
    assert len(read_log(file)) == 2
    finish(paused)
    assert max(line.step for line in read_log(file)) == 12
    assert read_log(paused / "no-such-file") == []
    assert read_log(paused) == []


def test_a_compiled_run_goes_on_without_a_compiler(
    paused: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit_card(
        paused, engine={"bfloat16": False, "compiled": True, "why": "fast", "seconds_per_step": 0.1}
    )
    monkeypatch.setattr(
        training, "compiler_missing", lambda: "there is no C++ compiler (g++) on this machine"
    )
    engine, *_ = train(paused)
    assert isinstance(engine, Engine)
    assert (engine.compiled, engine.why) == (
        False,
        "not compiled as before: there is no C++ compiler (g++) on this machine",
    )
    assert checkpoints.load(paused).card.steps == 12


def test_a_run_that_waits_or_failed_says_so(paused: Path) -> None:
    request_stop(paused, "stop")
    mark_waiting(paused)
    assert (read_status(paused).state, (paused / "stop_request").exists()) == ("waiting", False)
    write_status(paused, "failed", "the queue is gone")
    assert read_status(paused) == Status("failed", "the queue is gone")


def test_room_is_told_for_folders_that_do_not_exist_yet(home: Path) -> None:
    assert free_disk(home / "not/yet/here") == pytest.approx(free_disk(home), rel=0.1)
    assert free_disk(home) > 0


def test_the_text_of_a_run_is_kept_for_it(home: Path) -> None:
    folder = text_run(steps=4, evaluations=1)
    until(folder, 2)
    finish(folder)
    opened = checkpoints.load(folder)
    held_out = opened.tokenizer.encode_ids(Corpus("x", TEXT).split()[1])
    loss = evaluate(opened.model, consecutive_windows(torch.from_numpy(held_out), 8)).loss
    assert opened.card.validation_loss == loss
    for file in (home / "corpora").iterdir():
        file.unlink()
    folder = text_run("other", steps=4)
    for file in (home / "corpora").iterdir():
        file.unlink()
    with pytest.raises(OSError, match="the text “pangrams” is not here any more"):
        finish(folder)
    assert read_status(folder).state == "failed"
