"""Names of runs: none replaces or hides a model unasked, and of all that want a name at once, one
gets it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from gptviz.runs import checkpoints, manage, names
from gptviz.runs.checkpoints import CheckpointError, NameInUseError
from gptviz.runs.log import read_log
from gptviz.runs.names import claim_name, free_name
from gptviz.runs.run import read_run
from gptviz.runs.status import RunError, locked, mark_waiting, read_status
from gptviz.runs.training import train
from gptviz.text import CharTokenizer
from tests.processes import running
from tests.small_runs import task_run, text_run
from tests.tiny import TinyModel, scrambled, tiny

ROUNDS = 8


@pytest.fixture(autouse=True)
def shipped(no_bundled_models: None) -> Path:
    """The one model that ships, `famous`."""
    return checkpoints.save(
        "famous", scrambled(tiny()), CharTokenizer("abcdefghijk"), {}, root=checkpoints.BUNDLED
    )


def test_a_free_name_is_that_of_no_model_be_it_shipped_or_one_s_own(tiny_model: TinyModel) -> None:
    assert free_name("run") == "run"
    for expected in ("famous-2", "famous-3"):
        assert tiny_model(free_name("famous")).name == expected
    assert tiny_model("x" * 64).name == "x" * 64
    assert checkpoints.destination(free_name("x" * 64)).name == "x" * 62 + "-2"
    assert free_name("famous", checkpoints.BUNDLED) == "famous-2"
    assert free_name("famous", checkpoints.BUNDLED.parent / "elsewhere") == "famous"


BAD_NAMES = [
    "",
    ".",
    "..",
    "../../x",
    "a/b",
    "/tmp/x",
    "a\\b",
    ".hidden",
    "-x",
    "x.",
    "a b",
    "😀",
    "ä",
    "a\n",
    "a\0b",
]
DEVICES = ["con", "aux.txt", "COM1"]


@pytest.mark.parametrize("name", [*BAD_NAMES, *DEVICES, "x" * 65, "x" * 300])
def test_a_name_that_could_leave_the_folder_or_trouble_a_file_system_is_refused_and_nothing_is_written_or_moved(
    name: str, tiny_model: TinyModel, tmp_path: Path
) -> None:
    with locked(tiny_model("mine")):
        pass  # its lock stays
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    save = partial(
        checkpoints.save, model=scrambled(tiny()), tokenizer=CharTokenizer("abcdefghijk"), card={}
    )
    for use in (save, text_run, task_run, partial(manage.rename, "mine")):
        with pytest.raises(
            CheckpointError, match="cannot name a model: (use up to 64 letters|Windows)"
        ) as refused:
            use(name)
        assert repr(name[:80]) in str(refused.value)
        assert len(str(refused.value)) < 250
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before
    with pytest.raises(CheckpointError, match="no model named"):
        checkpoints.find(name)


def test_the_name_of_a_shipped_model_is_refused_unless_it_is_to_be_hidden(shipped: Path) -> None:
    said = (
        r"there is a model named famous already \(it came with gptviz, and your new model would "
        r"hide it\): choose another name"
    )
    with pytest.raises(NameInUseError, match=said):
        task_run("famous")
    with pytest.raises(NameInUseError, match=said):
        checkpoints.save("famous", scrambled(tiny()), CharTokenizer("abcdefghijk"), {})
    assert checkpoints.find("famous") == shipped
    assert checkpoints.hidden_checkpoints() == {}
    own = task_run("famous", options={"replace": True})
    assert checkpoints.find("famous") == own != shipped
    assert checkpoints.hidden_checkpoints() == {"famous": shipped}
    manage.rename("famous", "mine")
    assert checkpoints.find("famous") == shipped
    assert checkpoints.hidden_checkpoints() == {}


def test_a_model_that_comes_back_or_is_renamed_hides_none(tiny_model: TinyModel) -> None:
    tiny_model("famous")
    assert manage.undelete(manage.delete("famous")) == "famous-2"
    with pytest.raises(CheckpointError, match="there is a model named famous already"):
        manage.rename("famous-2", "famous")


def test_the_next_free_name_is_claimed_where_it_is_asked_for() -> None:
    with ExitStack() as held:
        claims = [held.enter_context(claim_name("famous", or_next=True)).name for _ in range(3)]
    assert claims == ["famous-2", "famous-3", "famous-4"]


def test_a_name_that_somebody_took_before_the_lock_was_there_is_refused(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = names.locked

    def locked_late(folder: Path, wait: float = 0.0) -> AbstractContextManager[None]:
        monkeypatch.setattr(names, "locked", lock)
        tiny_model("mine")
        return lock(folder, wait=wait)

    monkeypatch.setattr(names, "locked", locked_late)
    with pytest.raises(NameInUseError), claim_name("mine"):
        pass


@pytest.mark.parametrize("replace", [False, True])
def test_a_name_that_is_claimed_is_given_to_nobody_else(
    replace: bool, tiny_model: TinyModel
) -> None:
    tiny_model("other")
    with claim_name("mine"):
        with (
            pytest.raises(RunError, match="mine is being trained by another process"),
            claim_name("mine", replace=replace),
        ):
            pass
        with pytest.raises(CheckpointError, match="mine is being trained by another process"):
            manage.rename("other", "mine")
    with claim_name("mine"):
        pass


def test_between_its_preparation_and_its_first_step_a_claimed_run_cannot_be_replaced() -> None:
    with claim_name("mine") as claim:
        folder = task_run("mine", steps=3, seed=1, options={"claim": claim})
        with pytest.raises(RunError, match="mine is being trained by another process"):
            task_run("mine", steps=5, seed=2, options={"replace": True})
        list(train(folder, claim=claim))
    assert read_run(folder).recipe.seed == 1
    assert read_status(folder).state == "finished"


def test_a_run_that_waits_is_not_replaced() -> None:
    mark_waiting(task_run("mine", steps=3))
    with pytest.raises(RunError, match="mine waits to be trained: take it back first"):
        task_run("mine", steps=5, options={"replace": True})
    assert read_run(checkpoints.find("mine")).recipe.steps == 3


def test_the_lock_stays_while_the_folder_is_moved_by_hand_and_the_run_ends_without_bringing_it_back(
    home: Path,
) -> None:
    folder = task_run("mine", steps=10**6, evaluations=1)
    training = train(folder)
    for _ in range(8):
        next(training)
    folder.rename(folder.with_name("moved"))
    with pytest.raises(RunError, match="mine is being trained by another process"), locked(folder):
        pass
    with pytest.raises(RunError, match="mine is being trained by another process"):
        task_run("mine", steps=5)
    with pytest.raises(CheckpointError, match="cannot write .*mine"):
        list(training)
    assert not folder.exists()
    assert checkpoints.load(folder.with_name("moved")).name == "moved"


def together(acts: list[Callable[[], Any]]) -> list[Any]:
    """What each act returns, or the error it raises, where all begin at the same moment in threads
    of their own.
    """
    barrier = Barrier(len(acts))

    def begin(act: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return act()
        except ValueError as error:
            return error

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(begin, acts))


def test_of_threads_that_prepare_runs_of_one_name_at_once_one_succeeds_and_the_others_are_refused() -> (
    None
):
    for number in range(ROUNDS):
        name = f"run-{number}"
        outcomes = together([partial(task_run, name, seed=seed) for seed in range(3)])
        (winner,) = [seed for seed, outcome in enumerate(outcomes) if isinstance(outcome, Path)]
        assert sum(isinstance(outcome, NameInUseError | RunError) for outcome in outcomes) == 2
        assert read_run(checkpoints.find(name)).recipe.seed == winner
        checkpoints.load(checkpoints.find(name))


def test_of_threads_that_save_models_of_one_name_at_once_one_succeeds() -> None:
    tokenizer = CharTokenizer("abcdefghijk")

    def save(name: str, layers: int) -> Path:
        return checkpoints.save(
            name, scrambled(tiny(n_layer=layers)), tokenizer, {"layers": layers}
        )

    for number in range(ROUNDS):
        name = f"run-{number}"
        outcomes = together([partial(save, name, layers) for layers in (1, 2, 3)])
        assert sum(isinstance(outcome, Path) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, NameInUseError) for outcome in outcomes) == 2
        opened = checkpoints.load(checkpoints.find(name))
        assert opened.card.values["layers"] == opened.model.config.n_layer
    assert sorted(file.name for file in checkpoints.own_folder().iterdir()) == sorted(
        f"run-{number}" for number in range(ROUNDS)
    )


# Reads rounds from stdin, and in each claims the name, writes a run down, trains it and tells what
# came of it. Its rounds begin at the same moment as those of another such process.
CONTENDER = """
import json, sys
from pathlib import Path
from gptviz.runs import checkpoints
checkpoints.BUNDLED = Path("no such folder")
from gptviz.runs.names import claim_name
from gptviz.runs.training import train
from tests.small_runs import task_run

print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    try:
        with claim_name(asked["name"], replace=asked["replace"], or_next=asked["or_next"]) as claim:
            folder = task_run(claim.name, steps=3, evaluations=1, snapshots=0, seed=asked["seed"], options={"claim": claim})
            list(train(folder, claim=claim))
            print(json.dumps({"name": claim.name, "seed": asked["seed"]}), flush=True)
    except ValueError as error:
        print(json.dumps({"refused": str(error)}), flush=True)
"""


@pytest.mark.full
def test_of_two_processes_that_want_one_name_at_once_no_two_train_in_one_folder() -> None:
    with running(["-c", CONTENDER], stdin=-1) as one, running(["-c", CONTENDER], stdin=-1) as other:
        processes = [one, other]

        def answers(**asked: Any) -> list[dict[str, Any]]:
            for seed, process in enumerate(processes):
                process.stdin.write(json.dumps(asked | {"seed": seed}) + "\n")
                process.stdin.flush()
            return [
                json.loads(process.stdout.readline())
                for process in processes
                if process.stdout is not None
            ]

        assert [
            process.stdout.readline() for process in processes if process.stdout is not None
        ] == ["ready\n"] * 2
        for number in range(ROUNDS):
            told = answers(name=f"new-{number}", replace=False, or_next=False)
            assert sorted("refused" in answer for answer in told) == [False, True], told
            told = answers(name=f"new-{number}", replace=True, or_next=False)
            assert any("name" in answer for answer in told)
            assert all("is being trained by another process" in answer.get("refused", "is being trained by another process")
                       for answer in told)  # fmt: skip
            told = answers(name="next", replace=False, or_next=True)
            assert len({answer["name"] for answer in told}) == 2
            for answer in told:
                assert read_run(checkpoints.find(answer["name"])).recipe.seed == answer["seed"]
    assert len(checkpoints.folders()) == 1 + 3 * ROUNDS
    for name, folder in checkpoints.folders().items():
        if name != "famous":
            checkpoints.load(folder)
            assert read_status(folder).state == "finished"
            steps = [
                (line.kind, line.step)
                for line in read_log(folder / "log.jsonl")
                if line.kind != "sample"
            ]
            assert steps == [
                ("evaluation", 0),
                ("step", 1),
                ("step", 2),
                ("step", 3),
                ("evaluation", 3),
            ]
