"""The fit of a dictionary as a run: written down, stopped, killed, gone on with, and refused."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import gptviz
from gptviz.__main__ import main
from gptviz.interp.dictionaries.dictionary import find_dictionary
from gptviz.interp.dictionaries.fitting import FitStep
from gptviz.language_model import fits as fit_runs
from gptviz.language_model.fits import Kept, model_of, prepare_fit, run_fit
from gptviz.machine.files import home as home_folder
from gptviz.runs import checkpoints, fits, names, queue
from gptviz.runs.log import curve_points, read_log
from gptviz.runs.queue import Queue
from gptviz.runs.status import RunError, Status, StopRequest, read_status, request_stop
from gptviz.text.datasets.corpora import CorpusUnavailableError
from tests.command_line import Capture, error, output
from tests.processes import KILL, GuardedProcess
from tests.tiny import TinyModel
from tests.waiting import wait_until

TEXT = "a cab bed " * 40
SETTINGS: dict[str, Any] = {"k": 3, "steps": 60, "text": TEXT}


@pytest.fixture
def begun(tiny_model: TinyModel) -> Callable[..., Path]:
    """Writes down a fit of 20 features to a small model."""
    tiny_model("mine", text="abcdefg ")

    def begin(**more: Any) -> Path:
        return prepare_fit(gptviz.load("mine"), 1, 20, **SETTINGS | more)

    return begin


def after(steps: int, how: StopRequest) -> Callable[[], StopRequest | None]:
    """Asks for the end after so many questions, of which reading the text asks two."""
    asked = iter(range(steps + 2))
    return lambda: None if next(asked, None) is not None else how


def finish(folder: Path) -> str:
    """The name of the dictionary that a fit makes from here to its end."""
    (*_, kept) = run_fit(folder, model_of(folder))
    assert isinstance(kept, Kept)
    return kept.dictionary.name


@pytest.mark.parametrize("how", ["pause", "stop"])
@pytest.mark.parametrize("target", ["stream", "mlp"])
def test_a_fit_that_stopped_and_went_on_is_that_which_ran_through(
    begun: Callable[..., Path], how: StopRequest, target: str
) -> None:
    folder = begun(target=target)
    lm = gptviz.load("mine")
    whole = lm.fit_dictionary(1, 20, **SETTINGS, target=target)
    seen = [*run_fit(folder, model_of(folder), stop_requested=after(11, how))]
    steps = [event.step for event in seen if isinstance(event, FitStep)]
    assert 0 < len(steps) < 60
    assert steps == [*range(1, len(steps) + 1)]
    status = read_status(folder)
    assert status.state == ("paused" if how == "pause" else "stopped")
    assert (folder / "state.safetensors").exists()
    # stopped, it keeps what it has: a dictionary that all pages open; paused, it keeps none
    stopped = [event for event in seen if isinstance(event, Kept)]
    assert len(stopped) == (how == "stop")
    for kept in stopped:
        assert find_dictionary(kept.dictionary.name) is not None
        assert kept.dictionary.name != whole.name
        assert checkpoints.read_card(folder).values["dictionary"] == kept.dictionary.name
    # the name has a digest of all its numbers
    assert finish(folder) == whole.name
    assert read_status(folder).state == "finished"
    assert not (folder / "state.safetensors").exists()
    log = read_log(folder / "log.jsonl")
    assert [step for step, _ in curve_points(log, "step", "loss")] == [*range(1, 61)]
    through = begun(target=target)
    finish(through)
    losses = curve_points(read_log(through / "log.jsonl"), "step", "loss")
    assert curve_points(log, "step", "loss") == losses


def test_the_card_of_a_finished_fit_says_how_good_the_dictionary_is(
    begun: Callable[..., Path],
) -> None:
    folder = begun()
    name = finish(folder)
    lm = gptviz.load("mine")
    card = checkpoints.read_card(folder)
    quality = lm.dictionary_quality(name, TEXT)
    assert card.values["quality"]["explained"] == quality.explained
    assert card.values["quality"]["l0"] == quality.l0
    assert card.steps == 60
    (evaluation,) = [line for line in read_log(folder / "log.jsonl") if line.kind == "evaluation"]
    assert (evaluation.loss, evaluation.active) == (1 - quality.explained, quality.l0)
    assert {line.active for line in read_log(folder / "log.jsonl") if line.kind == "step"} == {3.0}
    with pytest.raises(RunError, match="is finished, after 60 steps"):
        finish(folder)


def test_a_fit_is_a_folder_beside_the_models_and_no_model(begun: Callable[..., Path]) -> None:
    first, second = begun(), begun()
    assert (first.name, second.name) == ("mine-block-1", "mine-block-1-2")
    assert set(fits.folders()) == {first.name, second.name}
    assert not set(fits.folders()) & set(checkpoints.folders())
    # the name is in use, and what a model saved there would replace is seen
    with pytest.raises(checkpoints.NameInUseError):
        checkpoints.check_is_free(first.name)
    with pytest.raises(checkpoints.CheckpointError, match="no fit named 'mine'"):
        fits.find("mine")


def test_a_fit_goes_on_from_what_was_saved_where_its_process_was_killed(
    begun: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = begun(name="whole")
    expected = finish(whole).removeprefix("whole")
    folder = begun(name="killed")
    monkeypatch.setattr(fit_runs, "SAVE_EVERY", 0.0)
    steps = run_fit(folder, model_of(folder))
    # as a process that is killed: after the step, before the next
    assert [event.step for event in islice(steps, 8) if isinstance(event, FitStep)] == [
        *range(1, 9)
    ]
    steps.close()  # type: ignore[attr-defined]
    assert read_status(folder).state == "interrupted"
    assert checkpoints.read_card(folder).steps == 7
    assert finish(folder).removeprefix("killed") == expected


@pytest.mark.parametrize("how", ["pause", "stop"])
def test_a_fit_that_is_stopped_while_it_reads_has_not_begun(
    begun: Callable[..., Path], how: StopRequest
) -> None:
    folder = begun()
    assert [*run_fit(folder, model_of(folder), stop_requested=lambda: how)] == []
    assert read_status(folder).state == "ready"
    # and a request on the disk, which is older than the fit, does not count
    request_stop(folder, how)
    finish(folder)


def test_what_cannot_go_on_is_refused_by_name(
    begun: Callable[..., Path], tiny_model: TinyModel
) -> None:
    folder = begun()
    lm = gptviz.load("mine")
    with torch.no_grad():
        lm.model.embed.weight.mul_(2)
    with pytest.raises(RunError, match="mine has other weights than when mine-block-1 began"):
        list(run_fit(folder, lm))
    status = read_status(folder)
    assert status.state == "failed"
    assert "other weights" in status.message
    # its state is damaged, or that of another fit
    (folder / "state.safetensors").write_bytes(b"nothing")
    with pytest.raises(RunError, match=r"mine-block-1/state.safetensors is damaged"):
        finish(folder)
    (folder / "state.safetensors").unlink()
    # its text is gone
    for text in (home_folder() / "corpora").glob("*.txt"):
        text.unlink()
    with pytest.raises(CorpusUnavailableError, match="is not here any more"):
        finish(folder)
    # what it fits to is unknown
    good = json.loads((folder / "plan.json").read_text())
    for wrong in (
        good | {"size": 0},
        good | {"kind": "best"},
        good | {"of": 3},
        good | {"corpus": {"name": 1}},
        good | {"more": 1},
        {},
    ):
        (folder / "plan.json").write_text(json.dumps(wrong))
        with pytest.raises(RunError, match="mine-block-1 does not say what it fits"):
            fits.read_fit(folder)
    for damaged in ("{", "[1]"):
        (folder / "plan.json").write_text(damaged)
        with pytest.raises(checkpoints.CheckpointError, match=r"mine-block-1/plan.json"):
            fits.read_fit(folder)


def test_what_cannot_be_fitted_is_refused_before_a_folder_is_written(
    begun: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong, said in (
        ({"k": 21}, "with 21 active"),
        ({"text": ""}, "is empty"),
    ):
        with pytest.raises(ValueError, match=said):
            begun(**wrong)
    with pytest.raises(ValueError, match="after a block of a decoder"):
        prepare_fit(gptviz.load("mine"), 2, 20, **SETTINGS)
    monkeypatch.setattr(fits, "free_disk", lambda folder: 100)
    with pytest.raises(checkpoints.CheckpointError, match="mine-block-1 takes .* on the disk"):
        begun()
    monkeypatch.setattr(fits, "MOST_OF_ONE", 100)
    with pytest.raises(checkpoints.CheckpointError, match="is the most that is kept"):
        begun()
    assert fits.folders() == {}


def test_a_disk_that_is_full_fails_the_fit_by_name_and_what_was_saved_goes_on(
    begun: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begun()
    [*run_fit(folder, model_of(folder), stop_requested=after(11, "pause"))]
    saved = (folder / "state.safetensors").read_bytes()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(safetensors.torch, "save_file", full)
        with pytest.raises(checkpoints.CheckpointError, match=r"cannot write .*mine-block-1"):
            finish(folder)
    status = read_status(folder)
    assert status.state == "failed"
    assert re.search("No space left on device.*the last good one is untouched", status.message)
    assert (folder / "state.safetensors").read_bytes() == saved
    assert finish(folder) == gptviz.load("mine").fit_dictionary(1, 20, **SETTINGS).name


def test_two_cannot_fit_the_same_and_a_name_is_claimed(begun: Callable[..., Path]) -> None:
    folder = begun()
    steps = run_fit(folder, model_of(folder))
    next(iter(steps))
    with pytest.raises(RunError, match="is being trained by another process"):
        finish(folder)
    with names.claim_name("another"):
        pass
    steps.close()  # type: ignore[attr-defined]


@pytest.fixture
def process_queue(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    """A queue whose runs are fitted by processes of their own."""
    monkeypatch.setattr(queue, "POLL", 0.05)
    made = Queue(home / "checkpoints", launch=GuardedProcess)
    yield made
    made.close()


def test_the_queue_fits_it_and_goes_on_with_it_after_a_kill(
    begun: Callable[..., Path], process_queue: Queue
) -> None:
    folder = begun(steps=1_000_000)
    assert process_queue.submit(folder.name, "cpu") == 0
    assert process_queue.submit(begun(steps=60, name="short").name) == 1

    def state() -> str:
        return read_status(folder).state

    wait_until(lambda: any(line.kind == "step" for line in read_log(folder / "log.jsonl")))
    os.kill(process_queue._processes[folder.name].pid, KILL)
    wait_until(lambda: state() == "interrupted")
    wait_until(lambda: read_status(fits.find("mine-short")).state == "finished")
    assert checkpoints.read_card(fits.find("mine-short")).values["dictionary"].startswith("short-")
    # it goes on, and is stopped through its folder; the dictionary is kept
    process_queue.submit(folder.name, "cpu")
    # it has read the text again, and takes steps
    wait_until(lambda: read_status(folder) == Status("running"))
    process_queue.stop(folder.name)
    wait_until(lambda: state() == "stopped")
    name = checkpoints.read_card(folder).values["dictionary"]
    assert find_dictionary(name) is not None
    assert name in gptviz.load("mine").dictionaries()


def test_the_queue_refuses_a_fit_that_says_nothing(
    begun: Callable[..., Path], process_queue: Queue
) -> None:
    folder = begun()
    (folder / "plan.json").write_text("{}")
    with pytest.raises(RunError, match="does not say what it fits"):
        process_queue.submit(folder.name)


def test_who_only_reads_begins_none(
    begun: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, process_queue: Queue
) -> None:
    folder = begun()
    monkeypatch.setenv("GPTVIZ_READ_ONLY", "1")
    before = sorted(home_folder().rglob("*"))
    for begin in (begun, lambda: process_queue.submit(folder.name)):
        with pytest.raises(checkpoints.CheckpointError, match="this server shows models"):
            begin()
    assert sorted(home_folder().rglob("*")) == before


def test_the_command_goes_on_with_a_fit(
    begun: Callable[..., Path], capsys: Capture, tmp_path: Path
) -> None:
    folder = begun()
    [*run_fit(folder, model_of(folder), stop_requested=after(11, "pause"))]
    said = json.loads(output(capsys, "dictionary", "--resume", folder.name, "--json"))
    assert (said["run"], said["state"]) == (folder.name, "finished")
    assert said["name"] == gptviz.load("mine").fit_dictionary(1, 20, **SETTINGS).name
    for wrong, why in (
        (["--resume", "none"], "no fit named 'none'"),
        (["--resume", folder.name], "is finished"),
        (["mine", "--resume", folder.name], "--resume NAME alone"),
        (["mine"], "--block N"),
        (["--block", "1"], "--block N"),
    ):
        assert why in error(capsys, "dictionary", *wrong)
    assert main(["dictionary", "--resume", "none"]) == 2
