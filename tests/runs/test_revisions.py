"""Revisions of a model on the hub as snapshots of one model: from a hub on this machine with six of
them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import gptviz
from gptviz.__main__ import main
from gptviz.lessons.expression import compute_expression
from gptviz.lessons.quantities import Quantities
from gptviz.machine import progress
from gptviz.machine.progress import Progress
from gptviz.pretrained.places import download
from gptviz.runs import checkpoints, revisions
from gptviz.runs.checkpoints import CheckpointError
from gptviz.runs.revisions import by_step, import_revisions, names_on_axis
from gptviz.text.tokenizers.symbols import SymbolTokenizer
from tests.pretrained.fake_hub import FakeHub, fake_hub
from tests.pretrained.test_families import GROUPED, VOCAB, theirs

NAME = "someone/tiny"
STEPS = (0, 1, 8, 64, 512, 1000)
# not in their order
NAMED = ("step1000", "step0", "step64", "step8", "step1", "step512")


def made(folder: Path, seed: int, dtype: torch.dtype = torch.float16, **fields: int) -> Path:
    """A small model as `transformers` saves it, other numbers for each seed."""
    torch.manual_seed(seed)
    model = theirs("llama", GROUPED | fields)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.2)
    model.to(dtype).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(SymbolTokenizer.numbers(VOCAB).to_json())
    return folder


@pytest.fixture
def server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_bundled_models: None
) -> Iterator[FakeHub]:
    monkeypatch.setattr(download, "WAIT", 0.0)
    monkeypatch.setattr(download, "CHUNK", 4_000)
    with fake_hub(tmp_path / "hub", monkeypatch) as server:
        server.add(NAME, made(tmp_path / "main", 99))
        for step in STEPS:
            server.add_revision(NAME, f"step{step}", made(tmp_path / f"step{step}", step))
        yield server


def theirs_at(tmp_path: Path, step: int) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(tmp_path / f"step{step}" / "model.safetensors")


def test_six_revisions_become_the_snapshots_of_one_model_bit_for_bit(
    server: FakeHub, tmp_path: Path
) -> None:
    made = import_revisions(f"hub:{NAME}", NAMED)
    assert made.folder.name == "tiny"
    assert tuple(checkpoints.snapshots(made.folder)) == STEPS
    card = checkpoints.read_card(made.folder)
    assert card.imported_from == NAME
    assert card.revisions == {str(step): f"step{step}" for step in STEPS}
    for step in STEPS:
        # as the step's own files open in place
        own = gptviz.load(tmp_path / f"step{step}")
        here = gptviz.load("tiny", step=step)
        for (name, ours), (_, expected) in zip(
            here.model.named_parameters(), own.model.named_parameters(), strict=True
        ):
            torch.testing.assert_close(ours, expected.float(), rtol=0, atol=0, msg=name)
    from safetensors import safe_open

    with safe_open(checkpoints.snapshot_path(made.folder, 8), framework="pt") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F16"}  # noqa: SIM118
    last = gptviz.load("tiny")
    torch.testing.assert_close(
        last.model.embed.weight.float(),
        theirs_at(tmp_path, 1000)["model.embed_tokens.weight"].float(),
    )
    assert not (tmp_path / "home" / "fetching").exists() or not list(
        (tmp_path / "home" / "fetching").rglob("*.safetensors")
    ), "nothing of it is kept twice"


def test_they_are_followed_over_training_as_any_snapshots(server: FakeHub) -> None:
    import_revisions(NAME, NAMED)
    lm = gptviz.load("tiny")
    prompt = "1 2 3"
    history = lm.over_training("probability", prompt, token="3")
    assert tuple(history.steps) == STEPS
    for step, (value,) in zip(history.steps, history.values, strict=True):
        at = gptviz.load("tiny", step=step)
        expected = at.model(at.encode(prompt)[None])[0, -1].softmax(-1)[at.token("3")].item()
        assert value == pytest.approx(expected, abs=1e-5)


def test_questions_of_a_lesson_are_asked_at_their_steps(server: FakeHub) -> None:
    import_revisions(NAME, NAMED)

    functions = Quantities(lambda name, step: gptviz.load(name, "cpu", step), "tiny").functions

    def ask(expression: str) -> Any:
        return compute_expression(expression, functions)

    assert ask("snapshots()") == list(STEPS)
    for step in (0, 512):
        lm = gptviz.load("tiny", step=step)
        score = lm.head_scores().values["induction"].max()
        assert ask(f'highest_score("induction", step={step})') == pytest.approx(score)
        asked = ask(f'probability("1 2 3", "3", step={step})')
        expected = lm.model(lm.encode("1 2 3")[None])[0, -1].softmax(-1)[lm.token("3")].item()
        assert asked == pytest.approx(expected, abs=1e-6)
    assert ask('half_done("heads.induction")') >= 0


def test_what_they_take_is_said_first_and_they_are_fetched_one_at_a_time(
    server: FakeHub, tmp_path: Path
) -> None:
    heard: list[Progress] = []
    said: list[str] = []

    def note(found: revisions.Revisions) -> None:
        assert not [path for path in server.files_sent() if path.endswith(".safetensors")]
        sizes = [sum(map(len, files.values())) for files in server.revisions[NAME].values()]
        assert found.fetched_bytes <= sum(sizes)
        said.append(found.said)

    with progress.listen_to(heard.append):
        import_revisions(NAME, NAMED, offered=note)
    assert re.fullmatch(r"6 revisions: .* are fetched .*, and .* stay among your models", said[0])
    fetched = [now for now in heard if now.step == "byte"]
    assert [now.share for now in fetched] == sorted(now.share for now in fetched)
    order = list(dict.fromkeys(now.doing for now in fetched))
    assert order == [f"revision step{step}" for step in (1000, 0, 1, 8, 64, 512)], "the last first"


def test_one_that_was_stopped_has_what_arrived_and_goes_on_with_the_rest(
    server: FakeHub, tmp_path: Path
) -> None:
    def stop(now: Progress) -> None:
        if now.doing == "revision step8" and now.step == "byte" and now.share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress.listen_to(stop):
        import_revisions(NAME, NAMED)
    folder = checkpoints.find("tiny")
    assert tuple(checkpoints.snapshots(folder)) == (0, 1, 1000)
    assert gptviz.load("tiny", step=1).lens("1 2").top.shape
    server.asked.clear()
    assert import_revisions(NAME, NAMED).folder == folder
    assert tuple(checkpoints.snapshots(folder)) == STEPS
    assert server.files_sent().count("model.safetensors") == 3, "those that were missing"
    server.asked.clear()
    import_revisions(NAME, NAMED)
    assert "model.safetensors" not in server.files_sent()


def test_a_later_step_becomes_the_model_and_another_repository_another_model(
    server: FakeHub, tmp_path: Path
) -> None:
    import_revisions(NAME, ["step0", "step8"])
    import_revisions(NAME, ["step512"])
    assert tuple(checkpoints.snapshots(checkpoints.find("tiny"))) == (0, 8, 512)
    torch.testing.assert_close(
        gptviz.load("tiny").model.embed.weight,
        gptviz.load("tiny", step=512).model.embed.weight,
    )
    server.add("other/tiny", tmp_path / "main")
    server.add_revision("other/tiny", "step3", tmp_path / "step1")
    assert import_revisions("other/tiny", ["step3"]).folder.name == "tiny-2"
    with pytest.raises(CheckpointError, match="there is a model named tiny already"):
        import_revisions("other/tiny", ["step3"], "tiny")


def test_names_that_are_no_steps_are_ordered_as_given(server: FakeHub, tmp_path: Path) -> None:
    for revision, step in (("late", 512), ("early", 1)):
        server.add_revision(NAME, revision, tmp_path / f"step{step}")
    made = import_revisions(NAME, ["early", "late", "step1000"])
    assert checkpoints.read_card(made.folder).revisions == {
        "0": "early",
        "1": "late",
        "2": "step1000",
    }
    torch.testing.assert_close(
        gptviz.load("tiny", step=0).model.embed.weight,
        theirs_at(tmp_path, 1)["model.embed_tokens.weight"].float(),
    )


@pytest.mark.parametrize(
    ("named", "ordered"),
    [
        (["step10", "step2"], {2: "step2", 10: "step10"}),
        (
            ["step1000-tokens4B", "step500-tokens2B"],
            {500: "step500-tokens2B", 1000: "step1000-tokens4B"},
        ),
        (["stage1-step5-tokens1B", "step_4"], {4: "step_4", 5: "stage1-step5-tokens1B"}),
        (["checkpoint-20", "9"], {9: "9", 20: "checkpoint-20"}),
        (["step7", "main"], {0: "step7", 1: "main"}),
        (["step7", "step-7"], {0: "step7", 1: "step-7"}),
        (["b", "a"], {0: "b", 1: "a"}),
    ],
)
def test_the_order_of_names(named: list[str], ordered: dict[int, str]) -> None:
    found = by_step(named)
    assert found == ordered
    assert list(found) == sorted(found)


def test_names_stand_on_the_axis_where_they_say_no_step() -> None:
    assert names_on_axis({"0": "early", "1": "late", "2": "step1000"}) == {
        0: "early",
        1: "late",
        2: "step1000",
    }
    assert names_on_axis({"0": "step0", "8": "step8"}) == {}
    assert names_on_axis(None) == {}


def test_one_that_is_missing_or_of_another_shape_is_refused_by_name_before_anything_is_fetched(
    server: FakeHub, tmp_path: Path
) -> None:
    server.add_revision(NAME, "step5", made(tmp_path / "other", 1, num_hidden_layers=1))
    for named, said in (
        (["step0", "step7"], "revision step7 of someone/tiny: the hub has no version"),
        (
            ["step0", "step5", "step8"],
            "revision step5 of someone/tiny is of another shape: its n_layer",
        ),
        (["step0", "step0"], "each of them once"),
        ([], "from 1 to 200 revisions"),
    ):
        with pytest.raises(CheckpointError, match=said):
            import_revisions(NAME, named)
    assert "model.safetensors" not in server.files_sent()
    assert "tiny" not in checkpoints.folders()
    # a config that lies: found out by its tensors
    config = (tmp_path / "step0" / "config.json").read_bytes()
    server.revisions[NAME]["step5"]["config.json"] = config
    with pytest.raises(CheckpointError, match="revision step5 of someone/tiny: .*missing"):
        import_revisions(NAME, ["step0", "step5", "step8"])
    assert tuple(checkpoints.snapshots(checkpoints.find("tiny"))) == (0, 8), "those stay"


def test_the_command_says_the_sizes_and_which_snapshots_there_are(
    server: FakeHub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", f"hub:{NAME}", "--revisions", "step0,step8, step1000", "--json"]) == 0
    out, error = capsys.readouterr()
    assert json.loads(out) == {
        "name": "tiny",
        "family": "Llama",
        "parameters": 17_208,
        "steps": [0, 8, 1000],
        "revisions": ["step0", "step8", "step1000"],
    }
    assert "3 revisions: " in error
    assert main(["import", NAME, "--revisions", "all"]) == 0
    assert "with 6 snapshots, from step0 to step1000" in capsys.readouterr().out
    assert main(["import", NAME, "--revisions", "step3"]) == 2
    assert "revision step3 of someone/tiny" in capsys.readouterr().err
    assert main(["import", "./nowhere", "--revisions", "step3"]) == 2
