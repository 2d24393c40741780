"""Optimisers: their steps are the published ones, and what they remember can be put away and taken
out again.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from gptviz.model import Transformer
from gptviz.train import optimisers
from gptviz.train.optimisers import BlockMuon, clip, restore, tensors
from tests.small_runs import OPTIMISERS, fresh, recipe, same, weights
from tests.tiny import scrambled, tiny

RATE = 0.03
DECAY = 0.3
VECTORS = {"positions": "relative", "unembed_bias": True}


def gradients(model: Transformer, seed: int) -> dict[str, Tensor]:
    """Gives every weight a random gradient."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    return {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


def steps(model: Transformer, count: int, **settings: Any) -> list[dict[str, Tensor]]:
    """Takes steps along random gradients, which are returned."""
    using = optimisers.optimisers(model, recipe(learning_rate=RATE, weight_decay=DECAY, **settings))
    taken = []
    for seed in range(count):
        taken.append(gradients(model, seed))
        for optimiser in using:
            optimiser.step()
    return taken


def by_hand(
    kind: str, start: Tensor, gradients: list[Tensor], beta1: float, beta2: float, decay: float
) -> Tensor:
    """AdamW (Loshchilov & Hutter 2019), Adam (Kingma & Ba 2015) with L2, or SGD with momentum and
    L2, in float64.
    """
    weight = start.double()
    mean = torch.zeros(())
    square = torch.zeros(())
    for step, gradient in enumerate(map(Tensor.double, gradients), 1):
        if kind == "adamw":
            weight = weight - RATE * decay * weight
        else:
            gradient = gradient + decay * weight
        if kind == "sgd":
            mean = beta1 * mean + gradient
            weight = weight - RATE * mean
            continue
        mean = beta1 * mean + (1 - beta1) * gradient
        square = beta2 * square + (1 - beta2) * gradient**2
        weight = weight - RATE * (mean / (1 - beta1**step)) / (
            (square / (1 - beta2**step)).sqrt() + 1e-8
        )
    return weight.float()


@pytest.mark.parametrize("kind", ["adamw", "adam", "sgd"])
def test_five_steps_are_those_of_the_formula_and_only_matrices_decay(kind: str) -> None:
    model = scrambled(tiny(n_layer=1, **VECTORS))
    before = weights(model)
    taken = steps(model, 5, optimiser=kind, beta1=0.8, beta2=0.95)
    assert min(parameter.dim() for parameter in before.values()) == 1
    for name, start in before.items():
        decay = DECAY if start.dim() > 1 else 0.0
        expected = by_hand(kind, start, [gradient[name] for gradient in taken], 0.8, 0.95, decay)
        torch.testing.assert_close(
            model.get_parameter(name).detach(), expected, rtol=1e-4, atol=1e-5, msg=name
        )


@pytest.mark.parametrize("n_encoder_layer", [0, 2])
def test_muon_takes_exactly_the_matrices_of_the_blocks_and_adamw_the_others(
    n_encoder_layer: int,
) -> None:
    model = fresh(n_layer=2, tied=True, n_encoder_layer=n_encoder_layer)
    muon, adamw = optimisers.optimisers(model, recipe(optimiser="muon"))
    assert isinstance(muon, BlockMuon)
    assert isinstance(adamw, torch.optim.AdamW)
    held = [
        {id(p) for group in optimiser.param_groups for p in group["params"]}
        for optimiser in (muon, adamw)
    ]
    for name, parameter in model.named_parameters():
        is_block_matrix = (
            name.removeprefix("encoder.").startswith("blocks.")
            and name.endswith(".weight")
            and "norm" not in name
        )
        assert (id(parameter) in held[0]) is is_block_matrix, name
        assert (id(parameter) in held[1]) is not is_block_matrix, name


def test_muon_moves_a_matrix_along_all_its_directions_alike() -> None:
    model = scrambled(tiny(n_layer=1, d_model=16, n_head=2, d_mlp=16))
    before = weights(model)["blocks.0.mlp.up.weight"]
    steps(model, 1, optimiser="muon", warmup=0.0)
    moved = model.get_parameter("blocks.0.mlp.up.weight").detach() - before * (1 - RATE * DECAY)
    sizes = torch.linalg.svdvals(moved)
    # Of a random gradient the largest of 16 singular values is tens of times the smallest; five
    # Newton–Schulz steps of Jordan's polynomial bring them to 1, within 0.3. The step is then
    # scaled by 0.2 times the root of the longer side.
    assert sizes.max() / sizes.min() < 2.5
    assert sizes.mean().item() == pytest.approx(RATE * 0.2 * math.sqrt(16), rel=0.35)


def test_a_model_without_blocks_has_nothing_for_muon() -> None:
    (alone,) = optimisers.optimisers(fresh(n_layer=0), recipe(optimiser="muon"))
    assert isinstance(alone, torch.optim.AdamW)


@pytest.mark.parametrize("kind", OPTIMISERS)
@pytest.mark.parametrize(
    "changes",
    [{}, {"tied": True}, {"n_layer": 0}, {"positions": "relative"}, {"n_encoder_layer": 1}],
)
def test_every_weight_is_held_once(kind: str, changes: dict[str, Any]) -> None:
    model = fresh(**changes)
    using = optimisers.optimisers(model, recipe(optimiser=kind))
    held = [
        id(p) for optimiser in using for group in optimiser.param_groups for p in group["params"]
    ]
    assert sorted(held) == sorted(map(id, model.parameters()))


@pytest.mark.parametrize("kind", OPTIMISERS)
@pytest.mark.parametrize("beta1", [0.9, 0.0])
def test_what_is_remembered_can_be_put_away_and_taken_out_again(kind: str, beta1: float) -> None:
    of = recipe(optimiser=kind, beta1=beta1)
    model = scrambled(tiny())
    other = scrambled(tiny())
    using = optimisers.optimisers(model, of)
    for seed in range(3):
        gradients(model, seed)
        for optimiser in using:
            optimiser.step()
    other.load_state_dict(model.state_dict())
    taken_out = optimisers.optimisers(other, of)
    restore(taken_out, {name: value.clone() for name, value in tensors(using).items()})
    assert same(weights(other), weights(model))  # restoring moved nothing
    assert same(tensors(taken_out), tensors(using))
    for one, them in ((model, using), (other, taken_out)):
        gradients(one, 7)
        for optimiser in them:
            optimiser.step()
    assert same(weights(other), weights(model))
    assert (kind, beta1) == ("sgd", 0.0) or tensors(using)


def test_two_optimisers_share_no_memory() -> None:
    model = scrambled(tiny())
    other = scrambled(tiny())
    first, second = (optimisers.optimisers(each, recipe()) for each in (model, other))
    gradients(model, 0)
    first[0].step()
    restore(second, tensors(first))
    kept = {name: value.clone() for name, value in tensors(second).items()}
    first[0].step()
    assert same(tensors(second), kept)


def lost(named: dict[str, Tensor]) -> dict[str, Tensor]:
    return dict(list(named.items())[1:])


def strange(named: dict[str, Tensor]) -> dict[str, Tensor]:
    return named | {"0.9999.exp_avg": torch.zeros(3)}


def misshapen(named: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value if value.dim() == 0 else torch.zeros(2) for name, value in named.items()}


def nothing(named: dict[str, Tensor]) -> dict[str, Tensor]:
    return {}


def unnumbered(named: dict[str, Tensor]) -> dict[str, Tensor]:
    return named | {"exp_avg": torch.zeros(3)}


@pytest.mark.parametrize("change", [lost, strange, misshapen, nothing, unnumbered])
@pytest.mark.parametrize("kind", OPTIMISERS)
def test_the_memory_of_others_is_refused(kind: str, change: Any) -> None:
    model = scrambled(tiny())
    using = optimisers.optimisers(model, recipe(optimiser=kind))
    gradients(model, 0)
    for optimiser in using:
        optimiser.step()
    with pytest.raises(ValueError, match="is of another model or optimiser"):
        restore(
            optimisers.optimisers(scrambled(tiny()), recipe(optimiser=kind)), change(tensors(using))
        )


@pytest.mark.parametrize(("most", "factor"), [(0.5, 0.5), (1e9, None), (0, None)])
def test_gradients_are_shortened_together_to_the_norm_allowed_and_zero_never_shortens(
    most: float, factor: float | None
) -> None:
    model = fresh()
    before = gradients(model, 0)
    norm = math.sqrt(sum(gradient.double().square().sum().item() for gradient in before.values()))
    assert norm > 1
    assert clip(list(model.parameters()), most) == pytest.approx(norm, rel=1e-5)
    for name, parameter in model.named_parameters():
        scale = 1.0 if factor is None else factor / norm
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, before[name] * scale, rtol=1e-4, atol=1e-7)
