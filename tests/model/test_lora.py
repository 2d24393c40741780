"""LoRA: merged and unmerged compute the same, without strength nothing changes, and nothing but the
adapter is trained.
"""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from gptviz.model import Config, Record, Transformer, build
from gptviz.model.lora import (
    AdaptedTransformer,
    MergedTransformer,
    every_matrix,
    factors,
    matrices,
    numbers,
    parameter_shapes,
    parameters,
)
from gptviz.train import optimisers
from gptviz.train.recipe import Recipe
from tests.examples import tried
from tests.tiny import configs, scrambled, some_ids, tiny

KINDS = {
    "decoder": tiny(),
    "tied": tiny(tied=True),
    "llama": tiny(norm="rmsnorm", mlp="gated", positions="rotary", n_kv_head=1),
    "parallel": tiny(residual="parallel", positions="rotary"),
    "classifier": tiny(head="mean", n_label=3, mask="full", tied=False, padding=0),
    "encoder-decoder": tiny(n_encoder_layer=2, tied=False, padding=0),
}


@torch.no_grad()
def trained(base: Transformer, rank: int = 2, seed: int = 0) -> AdaptedTransformer:
    """An adapter with numbers in both of its factors."""
    model = AdaptedTransformer(base, every_matrix(base.config, rank), seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.normal_(0, 0.3, generator=generator)
    return model


def output(model: Transformer) -> Tensor:
    with torch.no_grad():
        return model(some_ids(), some_ids(5) if model.config.n_encoder_layer else None)


def same(one: Transformer, other: Transformer) -> bool:
    """Whether two models have the same weights to the bit."""
    ours = one.state_dict()
    theirs = other.state_dict()
    return ours.keys() == theirs.keys() and all(
        torch.equal(value, theirs[name]) for name, value in ours.items()
    )


@tried(10, 100, configs())
def test_merged_and_unmerged_compute_the_same_in_any_architecture(config: Config) -> None:
    base = scrambled(config, std=0.1)
    adapted = trained(base)
    torch.testing.assert_close(
        output(MergedTransformer(base, adapted.adapter)),
        output(adapted),
        atol=1e-5,
        rtol=1e-4,
        equal_nan=True,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_without_strength_and_without_training_it_is_the_base_to_the_bit(kind: str) -> None:
    base = scrambled(KINDS[kind])
    merged = MergedTransformer(base, trained(base).adapter)
    assert not same(merged, base)
    assert same(merged.with_strength(0), base)
    assert torch.equal(output(merged.with_strength(0)), output(base))
    fresh = AdaptedTransformer(base, every_matrix(base.config, 2))
    assert torch.equal(output(fresh), output(base))
    assert same(MergedTransformer(base, fresh.adapter), base)


def test_strength_goes_along_a_line_through_the_base_and_what_was_trained() -> None:
    base = scrambled(tiny())
    merged = MergedTransformer(base, trained(base).adapter)
    for name, one in merged.adapter.items():
        for strength in (-1.0, 0.5, 1.0, 2.0):
            weight = merged.with_strength(strength).get_parameter(f"{name}.weight")
            expected = base.get_parameter(f"{name}.weight") + strength * (one.b @ one.a)
            torch.testing.assert_close(weight, expected)


def test_merging_leaves_the_base_as_it_was() -> None:
    base = scrambled(tiny())
    before = copy.deepcopy(base)
    MergedTransformer(base, trained(base).adapter)
    assert same(base, before)
    assert all(parameter.requires_grad for parameter in base.parameters())


def test_a_matrix_that_is_smaller_than_the_rank_has_all_the_rank_it_has() -> None:
    assert every_matrix(tiny(), 10_000) == {
        name: min(shape) for name, shape in matrices(tiny()).items()
    }


@pytest.mark.parametrize("optimiser", ["adamw", "adam", "sgd", "muon"])
def test_training_changes_the_adapter_alone(optimiser: str) -> None:
    base = build(tiny(), seed=0)
    before = copy.deepcopy(base)
    adapted = AdaptedTransformer(base, every_matrix(base.config, 2))
    started = {name: parameter.detach().clone() for name, parameter in adapted.named_parameters()}
    recipe = Recipe(steps=1, learning_rate=0.1, optimiser=optimiser)  # type: ignore[arg-type]
    steps = optimisers.optimisers(adapted, recipe)
    owned = [
        parameter for one in steps for group in one.param_groups for parameter in group["params"]
    ]
    assert {id(each) for each in owned} == {id(each) for each in adapted.parameters()}
    for _ in range(2):  # B is 0 at first, so that A has no gradient before the second step
        adapted(some_ids()).logsumexp(-1).sum().backward()
        for one in steps:
            one.step()
    assert all(
        not torch.equal(parameter, started[name]) for name, parameter in adapted.named_parameters()
    )
    assert same(base, before)
    assert all(parameter.grad is None for parameter in base.parameters())


def test_its_parameters_are_named_and_counted_by_the_matrices_they_change() -> None:
    adapted = AdaptedTransformer(build(tiny(), seed=0), every_matrix(tiny(), 3))
    shapes = {name: tuple(parameter.shape) for name, parameter in adapted.named_parameters()}
    assert shapes == parameter_shapes(tiny(), every_matrix(tiny(), 3))
    assert sum(parameter.numel() for parameter in adapted.parameters()) == numbers(tiny(), 3)
    assert parameters(factors(dict(adapted.named_parameters()))).keys() == shapes.keys()
    assert {name.rpartition(".")[0] for name in shapes} == matrices(tiny()).keys()


def test_the_seed_decides_how_it_begins() -> None:
    base = build(tiny(), seed=0)
    one, again, other = (
        AdaptedTransformer(base, every_matrix(base.config, 2), seed).adapter for seed in (1, 1, 2)
    )
    assert all(torch.equal(one[name].a, again[name].a) for name in one)
    assert not any(torch.equal(one[name].a, other[name].a) for name in one)


def test_a_merged_model_is_tapped_and_copied_as_any_other() -> None:
    base = scrambled(tiny(tied=True))
    merged = MergedTransformer(base, trained(base).adapter)
    record = Record()
    merged(some_ids(), tap=record)
    assert "blocks.1.attention.pattern" in record.values
    assert len(list(merged.parameters())) == len(list(base.parameters()))
    twin = copy.deepcopy(merged)
    assert same(twin, merged)
    assert twin.base is base
