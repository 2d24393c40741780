"""Many kills while a model is saved or trained: the last good one always opens, and nothing
half-made stays.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gptviz.machine.files import sweep
from gptviz.runs import checkpoints
from gptviz.runs.status import read_status
from tests.processes import KILL, running
from tests.small_runs import same, task_run, until, weights

pytestmark = pytest.mark.full
if sys.platform == "win32":
    pytest.skip("Windows has no fork", allow_module_level=True)

# Imports once, then forks a process for every line it reads: what it does, in which folder, and
# before which touch of a file there it is killed: a moment that does not depend on how busy the
# machine is.
SCRIPT = """
import itertools, json, os, signal, sys
import torch
import torch._dynamo  # an optimiser imports it, which takes a second, in each process anew
from gptviz.runs import checkpoints
from gptviz.runs.training import train
from gptviz.text import CharTokenizer
from tests.tiny import tiny, scrambled

TOUCHES = {"open", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}
home = os.environ["GPTVIZ_HOME"]

def save(folder):
    tokenizer, model = CharTokenizer("abcdefghijk"), scrambled(tiny(n_layer=1))
    for generation in itertools.count(1):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(generation % 1_000)
        checkpoints.save("saved", model, tokenizer, {"steps": generation % 1_000}, replace=True)

def work(what, folder, touches):
    left = itertools.count(touches, -1)
    def hook(event, arguments):
        if event in TOUCHES and str(arguments[0]).startswith(home) and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    if what == "save":
        save(folder)
    else:
        for _ in train(folder):
            pass

from pathlib import Path
print("there", flush=True)
for line in sys.stdin:
    what, folder, touches = json.loads(line)
    pid = os.fork()
    if pid == 0:
        try:
            work(what, Path(folder), touches)
            os._exit(0)
        except BaseException as error:
            print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
            os._exit(1)
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])), flush=True)
"""
# Of each kind: a training takes longer to come to the moment of its kill.
KILLS = {"save": 50, "train": 25}
# The most touches before a kill: a training that is gone on with reads its files first, and then
# saves.
MOST_TOUCHES = {"save": 120, "train": 400}
Kill = Callable[[str, Path], int]


@pytest.fixture
def kill(home: Path) -> Iterator[Kill]:
    """Lets a process do something in a folder, and kills it at the next moment that is drawn; how
    it ended.
    """
    moments = random.Random(14)
    with running(["-c", SCRIPT], stdin=-1) as process:
        assert process.stdin is not None
        assert process.stdout.readline() == "there\n", process.stderr and process.stderr.read()

        def one(what: str, folder: Path) -> int:
            print(
                json.dumps([what, str(folder), moments.randrange(MOST_TOUCHES[what])]),
                file=process.stdin,
                flush=True,
            )
            ended = json.loads(process.stdout.readline())
            assert isinstance(ended, int), ended
            return ended

        yield one


def swept(folder: Path) -> list[str]:
    """What is in a folder once it is swept."""
    sweep(folder)
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def test_a_model_whose_process_is_killed_while_it_saves_is_the_old_one_or_the_new_one_as_a_whole(
    kill: Kill, home: Path
) -> None:
    root = home / "checkpoints"
    left = 0
    seen = set[int]()
    for _ in range(KILLS["save"]):
        assert kill("save", root / "saved") == -KILL
        left += root.is_dir() and len(os.listdir(root)) > 1
        names = swept(root)
        assert names == ["saved"] or (not names and not seen), names
        if names:
            model = checkpoints.load(root / "saved")
            assert all((value == model.card.steps).all() for value in model.model.parameters())  # type: ignore[attr-defined]
            seen.add(model.card.steps)
    assert left > KILLS["save"] / 10, "hardly any process was killed while it saved"
    assert len(seen) > 2


def test_a_run_whose_process_is_killed_again_and_again_opens_each_time_and_goes_on_as_if_it_never_was(
    kill: Kill,
) -> None:
    settings: dict[str, Any] = {"steps": 4_000, "evaluations": 1_000, "snapshots": 5}
    folder = task_run("killed", **settings)
    left = 0
    steps = [0]
    for _ in range(KILLS["train"]):
        assert kill("train", folder) == -KILL
        left += any(name.startswith(".") for name in os.listdir(folder))
        assert swept(folder.parent) == [".locks", "killed"]
        assert not [
            name for name in [*swept(folder), *swept(folder / "snapshots")] if name.startswith(".")
        ]
        assert read_status(folder).state in ("ready", "interrupted")
        steps.append(checkpoints.load(folder).card.steps)
        for step in checkpoints.snapshots(folder):
            checkpoints.load(folder, step=step)
    assert steps == sorted(steps), "what was saved is lost"
    assert left, "no process was killed while it saved"
    assert len(set(steps)) > 5
    whole = task_run("whole", **settings)
    for each in (folder, whole):
        until(each, steps[-1] + 10)
    ended = checkpoints.load(folder)
    unbroken = checkpoints.load(whole)
    assert ended.card.steps == unbroken.card.steps == steps[-1] + 10
    assert same(weights(ended.model), weights(unbroken.model))
