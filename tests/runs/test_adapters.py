"""LoRA adapters: a small folder that names its base, trained, resumed, opened, shared; and never
opened on another model.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import gptviz
from gptviz.data.registry import source_from
from gptviz.data.text import TextSource
from gptviz.machine import memory
from gptviz.model import Transformer
from gptviz.model.lora import AdaptedTransformer, MergedTransformer, numbers, parameter_shapes
from gptviz.pretrained.opening import source_at
from gptviz.runs import checkpoints, exports, manage, sharing
from gptviz.runs.checkpoints import CheckpointError
from gptviz.runs.experiments import PLANS
from gptviz.runs.imports import import_model
from gptviz.runs.run import read_run
from gptviz.runs.status import RunError
from gptviz.text import Corpus
from gptviz.train.engine import Engine, compiler_missing
from gptviz.train.estimate import UNMEASURED, estimate
from gptviz.train.optimisers import optimiser_numbers, optimisers, tensors
from gptviz.train.trainer import Trainer
from tests.small_runs import OPTIMISERS, TEXT, data, finish, recipe, same, text_run, until, weights
from tests.tiny import TinyModel, some_ids

pytestmark = pytest.mark.usefixtures("no_bundled_models")


@pytest.fixture(scope="module")
def _trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a model that was trained a little, and an adapter of it, once for all tests."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPTVIZ_HOME", str(folder))
        finish(text_run("base", steps=10, evaluations=1))
        finish(adapter())
    return folder


@pytest.fixture
def base(home: Path, _trained: Path) -> Path:
    """The model alone."""
    shutil.copytree(_trained, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*tuned*"))
    return checkpoints.find("base")


@pytest.fixture
def tuned(base: Path, _trained: Path) -> Path:
    """The adapter, beside its base."""
    return Path(shutil.copytree(_trained / "checkpoints/tuned", checkpoints.own_folder() / "tuned"))


def adapter(base: str = "base", name: str = "tuned", **settings: Any) -> Path:
    """A run that trains an adapter, written down."""
    folder = checkpoints.find(base)
    options = {"initial": checkpoints.load(folder).model, "base": folder}
    return text_run(
        name,
        options=options,
        **{"lora_rank": 2, "steps": 12, "evaluations": 2, "snapshots": 1} | settings,
    )


def opened(folder: Path, **options: Any) -> Transformer:
    return checkpoints.load(folder, **options).model


def test_before_the_first_step_it_is_the_base_to_the_bit(base: Path) -> None:
    assert same(weights(opened(adapter())), weights(opened(base)))


def test_it_is_trained_opened_merged_and_leaves_its_base_where_it_is(base: Path) -> None:
    before = (base / "model.safetensors").read_bytes()
    tuned = finish(adapter())
    assert (base / "model.safetensors").read_bytes() == before
    config = checkpoints.read_config(tuned)
    stored = {
        name: tuple(one.shape) for name, one in load_file(tuned / "model.safetensors").items()
    }
    assert stored == parameter_shapes(config, checkpoints.read_adapter(tuned).ranks)
    assert json.loads((tuned / "adapter.json").read_text())["base"] == "base"
    model = opened(tuned, precision="stored")
    unmerged = opened(tuned, unmerged=True)
    assert isinstance(model, MergedTransformer)
    assert isinstance(unmerged, AdaptedTransformer)
    ids = some_ids(vocab=config.vocab_size)
    with torch.no_grad():
        torch.testing.assert_close(model(ids), unmerged(ids), atol=1e-5, rtol=1e-4)
        assert not torch.allclose(model(ids), opened(base)(ids), atol=1e-3)
        assert torch.equal(model.with_strength(0)(ids), opened(base, precision="stored")(ids))
    losses = [one.validation for one in checkpoints.read_card(tuned).losses]
    assert losses[0] == pytest.approx(checkpoints.read_card(base).validation_loss)
    assert losses[-1] < losses[0]  # type: ignore[operator]


def test_every_snapshot_opens_and_the_first_is_the_base(base: Path, tuned: Path) -> None:
    steps = list(checkpoints.snapshots(tuned))
    assert steps == [0, 1, 2, 4, 8, 12]
    assert same(weights(opened(tuned, step=0)), weights(opened(base)))
    assert same(weights(opened(tuned, step=12)), weights(opened(tuned)))
    for step in steps:
        checkpoints.check_weights(tuned, checkpoints.read_config(tuned), step)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_one_that_was_paused_and_resumed_ends_as_one_that_was_not(
    optimiser: str, base: Path
) -> None:
    whole = finish(adapter(name="whole", optimiser=optimiser))
    paused = adapter(name="paused", optimiser=optimiser)
    until(paused, 5)
    finish(paused)
    assert same(load_file(whole / "model.safetensors"), load_file(paused / "model.safetensors"))


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_costs_count_what_is_trained_alone(optimiser: str, base: Path) -> None:
    model = opened(adapter(), unmerged=True)
    one = recipe(optimiser=optimiser, lora_rank=2)
    steps = optimisers(model, one)
    model(some_ids(vocab=model.config.vocab_size)).sum().backward()
    for each in steps:
        each.step()
    kept = sum(
        value.numel() for name, value in tensors(steps).items() if not name.endswith(".step")
    )
    assert optimiser_numbers(model.config, one) == kept
    expected = estimate(model.config, one, UNMEASURED)
    assert (
        expected.trained
        == numbers(model.config, 2)
        == sum(each.numel() for each in model.parameters())
    )
    full = estimate(model.config, recipe(optimiser=optimiser), UNMEASURED)
    assert full.trained == full.parameters == expected.parameters
    assert expected.disk < full.disk


def test_it_is_shared_without_its_base_and_opens_where_that_is(tuned: Path, tmp_path: Path) -> None:
    sharing.pack(tuned, tmp_path / "tuned.zip")
    again = sharing.unpack(tmp_path / "tuned.zip", "again")
    assert same(weights(opened(again)), weights(opened(tuned)))
    assert list(checkpoints.snapshots(again)) == list(checkpoints.snapshots(tuned))
    manage.delete("base")
    with pytest.raises(
        CheckpointError, match="changes the weights of 'base', and there is no model of that name"
    ):
        sharing.unpack(tmp_path / "tuned.zip", "without")
    assert "without" not in checkpoints.folders()


def test_a_base_that_is_gone_is_named_and_one_that_comes_back_serves_again(tuned: Path) -> None:
    token = manage.delete("base")
    for ask in (
        lambda: opened(tuned),
        lambda: checkpoints.check_weights(tuned, checkpoints.read_config(tuned)),
    ):
        with pytest.raises(
            CheckpointError, match="there is no model of that name: bring that model back"
        ):
            ask()
    assert manage.undelete(token) == "base"
    opened(tuned)


def test_a_base_that_is_renamed_is_named_anew(tuned: Path) -> None:
    before = weights(opened(tuned))
    manage.rename("base", "other")
    assert checkpoints.read_adapter(tuned).base == "other"
    assert same(weights(opened(tuned)), before)


def test_a_base_with_other_weights_is_refused(base: Path, tuned: Path) -> None:
    checkpoints.save(
        "base",
        opened(base),
        checkpoints.read_tokenizer(base),
        {},
        dtype=torch.float16,
        replace=True,
    )
    with pytest.raises(
        CheckpointError, match="'base', which has other weights than when the adapter was made"
    ):
        opened(tuned)


def test_the_bundled_base_serves_where_a_model_of_the_user_hides_it(
    base: Path, tuned: Path, tiny_model: TinyModel
) -> None:
    checkpoints.BUNDLED.mkdir()
    base.rename(checkpoints.BUNDLED / "base")
    expected = weights(opened(tuned))
    tiny_model("base")
    assert same(weights(opened(tuned)), expected)


def test_an_adapter_has_no_adapters(base: Path, tuned: Path) -> None:
    with pytest.raises(CheckpointError, match="tuned is an adapter itself, of base"):
        adapter("tuned", "second")
    content = json.loads((checkpoints.find("tuned") / "adapter.json").read_text())
    (base / "adapter.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match="which is an adapter itself"):
        opened(checkpoints.find("tuned"))


def test_all_weights_of_an_adapter_s_model_can_be_trained_on(tuned: Path) -> None:
    going_on = finish(adapter("tuned", "second", lora_rank=0))
    assert not checkpoints.is_adapter(going_on)
    assert same(weights(opened(going_on, step=0)), weights(opened(tuned)))


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        '{"base": 1, "sha256": "", "ranks": {}}',
        '{"base": "a", "sha256": "", "ranks": {"a": -1}}',
        "{",
    ],
)
def test_a_damaged_record_is_refused_in_a_line(content: str, base: Path) -> None:
    folder = adapter()
    (folder / "adapter.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"tuned/adapter\.json") as refused:
        opened(folder)
    assert "\n" not in str(refused.value)


def test_a_base_s_name_is_never_a_path(base: Path, tmp_path: Path) -> None:
    folder = adapter()
    content = json.loads((folder / "adapter.json").read_text())
    (folder / "adapter.json").write_text(json.dumps(content | {"base": str(base)}))
    with pytest.raises(CheckpointError, match="no model of that name"):
        opened(folder)


def test_a_rank_needs_a_model_to_begin_with_and_blocks(base: Path) -> None:
    with pytest.raises(RunError, match="--from NAME"):
        text_run("none", lora_rank=2)
    with pytest.raises(RunError, match="--from NAME"):
        PLANS["sums"].prepare("none", recipe=recipe(lora_rank=2))


def test_a_plan_trains_an_adapter_of_the_model_it_begins_with(base: Path) -> None:
    source = source_from(read_run(base).source)
    folder = PLANS["finetune"].prepare(
        "one", source=source, recipe=recipe(lora_rank=3), begin="base"
    )
    assert checkpoints.read_adapter(folder).base == "base"
    assert read_run(folder).recipe.lora_rank == checkpoints.read_adapter(folder).rank == 3


def test_exports_have_the_merged_weights(tuned: Path, tmp_path: Path) -> None:
    exports.FORMATS["transformers"].write(tuned, tmp_path / "out")
    written = sharing.weights_of(source_at(tmp_path / "out"), checkpoints.read_config(tuned))
    for name, weight in weights(opened(tuned)).items():
        torch.testing.assert_close(written[name], weight, atol=1e-6, rtol=1e-5)


def test_the_library_opens_it_as_any_model(tuned: Path) -> None:
    lm = gptviz.load("tuned")
    assert len(lm.generate("the ", 5)) == 5


def test_a_model_of_another_program_is_a_base_whose_files_stay_where_they_are(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    exports.FORMATS["transformers"].write(
        tiny_model("given", text=TEXT, tied=True, activation="gelu-tanh"), tmp_path / "theirs"
    )
    imported = import_model(str(tmp_path / "theirs"), "imported").folder
    assert checkpoints.is_reference(imported)
    source = TextSource(Corpus("pangrams", TEXT))
    folder = PLANS["finetune"].prepare(
        "tuned", source=source, recipe=recipe(lora_rank=2, steps=4, evaluations=1), begin="imported"
    )
    finish(folder)
    assert [file.name for file in imported.iterdir() if file.suffix == ".safetensors"] == []
    assert opened(folder, precision="stored").base.config == checkpoints.read_config(imported)  # type: ignore[union-attr]
    weights_of_theirs = tmp_path / "theirs" / "model.safetensors"
    changed = {name: one + 1 for name, one in load_file(weights_of_theirs).items()}
    save_file(changed, weights_of_theirs, metadata={"format": "pt"})
    with pytest.raises(
        CheckpointError, match="'imported', which has other weights than when the adapter was made"
    ):
        opened(folder)
    weights_of_theirs.unlink()
    with pytest.raises(CheckpointError, match=r"the weights at .* are gone"):
        opened(folder)


@pytest.mark.full
def test_a_compiled_adapter_learns_too(base: Path) -> None:
    if compiler_missing():
        pytest.skip("no compiler")
    model = opened(adapter(), unmerged=True)
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    ready = Engine(compiled=True).forward(model)
    one = Trainer(model, data(), recipe(lora_rank=2), forward=ready)
    one.advance(0.1)
    assert not same(before, weights(model))


def test_changed_weights_that_find_no_room_beside_those_of_the_base_are_refused(
    tuned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()

    def room(needed: int, device: Any = "cpu") -> int:
        asked.append(needed)
        return 0 if len(asked) > 1 else 10**12

    monkeypatch.setattr(memory, "room", room)
    with pytest.raises(CheckpointError, match="tuned is not opened: .*memory"):
        opened(tuned, precision="stored")
    assert len(asked) == 2
