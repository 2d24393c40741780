"""Training with few weights: the kept ones are the largest, exactly as many as asked for, after every
step, and in all that is saved.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn

from gptviz.__main__ import main
from gptviz.model import Transformer, build
from gptviz.runs import checkpoints
from gptviz.train.sparsity import keep_largest
from gptviz.train.trainer import Stepped
from tests.command_line import Capture, answered
from tests.small_runs import OPTIMISERS, finish, fresh, recipe, same, trainer, until, weights
from tests.small_runs import task_run as run
from tests.tiny import TinyModel, tiny


def numbers(model: Transformer) -> dict[str, tuple[int, int]]:
    """Of each matrix, how many of its weights are not 0, and how many there are."""
    return {
        name: (int(parameter.count_nonzero()), parameter.numel())
        for name, parameter in model.named_parameters()
        if parameter.dim() >= 2
    }


def test_the_largest_of_each_matrix_stay_as_they_are_and_vectors_stay_whole() -> None:
    model = fresh()
    before = weights(model)
    keep_largest(model, 0.1)
    for name, after in weights(model).items():
        whole = before[name]
        if whole.dim() < 2:
            assert torch.equal(after, whole)
            continue
        count = round(0.1 * whole.numel())
        # By sorting, which the function does not do.
        border = sorted(whole.abs().flatten().tolist(), reverse=True)[count - 1]
        assert torch.equal(after, torch.where(whole.abs() >= border, whole, 0.0))
        assert after.count_nonzero() == count


def test_even_of_equal_weights_exactly_as_many_are_kept_and_at_least_one() -> None:
    model = nn.Linear(4, 5)
    nn.init.ones_(model.weight)
    keep_largest(model, 0.3)
    assert model.weight.count_nonzero() == 6
    keep_largest(model, 1e-9)
    assert model.weight.count_nonzero() == 1


def test_the_share_falls_from_1_to_the_one_asked_for_in_the_first_half() -> None:
    of = recipe(keep_weights=0.04)
    assert of.kept_share(0) == 1
    assert of.kept_share(0.25) == pytest.approx(0.2)  # half the way down, as factors count
    assert [of.kept_share(progress) for progress in (0.5, 0.7, 1)] == [pytest.approx(0.04)] * 3
    assert recipe().kept_share(0.7) == 1


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_after_every_step_exactly_the_share_of_that_step_is_left(optimiser: str) -> None:
    model = fresh()
    training = trainer(model, keep_weights=0.1, optimiser=optimiser, steps=12)
    for event in training:
        if isinstance(event, Stepped):
            share = training.recipe.kept_share(event.step / 12)
            for left, every in numbers(model).values():
                assert left == max(1, round(share * every))
    assert sum(left for left, _ in numbers(model).values()) < 0.11 * sum(
        every for _, every in numbers(model).values()
    )


def test_a_weight_that_became_0_comes_back_if_it_is_worth_it() -> None:
    model = fresh()
    training = trainer(model, keep_weights=0.2, steps=60)
    seen = []
    for event in training:
        if isinstance(event, Stepped) and event.progress >= 0.5:
            kept = torch.cat([weight.flatten() for weight in weights(model).values()]) != 0
            seen.append(kept)
    assert any(bool((later & ~earlier).any()) for earlier, later in pairwise(seen))


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_share_of_1_is_the_run_without_the_setting_bit_for_bit(
    optimiser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = fresh()
    losses = [event.loss for event in trainer(asked, keep_weights=1.0, optimiser=optimiser)]
    monkeypatch.delattr("gptviz.train.trainer.keep_largest")
    without = fresh()
    assert [event.loss for event in trainer(without, optimiser=optimiser)] == losses
    assert same(weights(asked), weights(without))


def test_stopping_and_resuming_changes_nothing_and_every_snapshot_has_its_share(
    home: Path,
) -> None:
    settings = {"keep_weights": 0.1, "snapshots": 2, "steps": 20}
    whole = finish(run("whole", **settings))
    broken = run("broken", **settings)
    until(broken, 7)
    finish(broken)
    steps = checkpoints.snapshots(whole)
    assert steps.keys() == checkpoints.snapshots(broken).keys()
    assert {4, 8, 20} <= steps.keys()
    for step in steps:
        one = checkpoints.load(whole, step=step).model
        assert same(weights(one), weights(checkpoints.load(broken, step=step).model))
        share = recipe(keep_weights=0.1).kept_share(step / 20)
        if step:
            for left, every in numbers(one).values():
                assert left == max(1, round(share * every))


@pytest.mark.parametrize("kind", ["zip", "transformers", "nanogpt", "gguf"])
def test_what_is_written_for_other_programs_keeps_its_zeros(
    kind: str, tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    folder = tiny_model("sparse", tied=True, d_mlp=48)
    model = checkpoints.load(folder).model
    keep_largest(model, 0.1)
    checkpoints.write_weights(folder / "model.safetensors", model, torch.float32)
    there = tmp_path / ("there.zip" if kind == "zip" else "there")
    path = Path(answered(capsys, "export", "sparse", "--out", there, "--format", kind)["path"])
    source = path / "ckpt.pt" if kind == "nanogpt" else path
    assert main(["import", str(source), "--name", "again"]) == 0
    assert numbers(checkpoints.load(checkpoints.find("again")).model) == numbers(model)


def test_a_lora_adapter_leaves_the_weights_that_it_stands_beside() -> None:
    model = build(tiny(n_layer=1), seed=0)
    model.embed.weight.requires_grad_(False)
    before = weights(model)["embed.weight"]
    keep_largest(model, 0.1)
    assert torch.equal(model.embed.weight, before)
