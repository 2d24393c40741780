"""A mixture of experts, against loops over tokens and experts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from gptviz.model import Config, Edit, Record, Transformer
from gptviz.model.costs.operations import flops, products
from gptviz.model.parts.experts import Expert, MixtureOfExperts
from tests.tiny import scrambled, some_ids, tiny

KINDS: list[dict[str, Any]] = [
    {},
    {"n_expert": 5, "n_active": 1, "expert_norm": False},
    {"n_expert": 5, "n_active": 3, "expert_norm": False, "d_shared": 9},
    {"n_expert": 4, "n_active": 4, "d_shared": 20, "activation": "silu"},
]


def mixed(**fields: Any) -> Transformer:
    """A small model with experts, whose weights are large enough that each token has its own."""
    return scrambled(tiny(mlp="experts", **fields))


def part(model: Transformer, block: int = 1) -> MixtureOfExperts:
    """The mixture of a block."""
    found = model.blocks[block].mlp
    assert isinstance(found, MixtureOfExperts)
    return found


def by_hand(expert: Expert, x: Tensor, config: Config) -> Tensor:
    """What an expert gives of one token [d_model], written out."""
    curve = {"gelu": F.gelu, "silu": F.silu}[config.activation]
    result: Tensor = expert.down.weight @ (curve(expert.gate.weight @ x) * (expert.up.weight @ x))
    return result


@pytest.mark.parametrize("fields", KINDS)
@torch.no_grad()
def test_a_mixture_is_the_sum_of_the_chosen_experts_token_by_token(fields: dict[str, Any]) -> None:
    model = mixed(**fields)
    mixture = part(model)
    config = model.config
    record = Record()
    x = torch.randn(2, 6, config.d_model, generator=torch.Generator().manual_seed(0))
    out = mixture(x, record)
    for row in range(2):
        for place in range(6):
            token = x[row, place]
            shares = torch.softmax(mixture.router.weight @ token, 0).tolist()
            chosen = sorted(range(config.n_expert), key=lambda e: -shares[e])[: config.n_active]
            total = sum(shares[e] for e in chosen) if config.expert_norm else 1.0
            weights = {e: shares[e] / total for e in chosen}
            expected = sum(
                weight * by_hand(mixture.every_expert[e], token, config)
                for e, weight in weights.items()
            )
            if mixture.shared_gate is not None:
                weights[config.n_expert] = float(torch.sigmoid(mixture.shared_gate.weight @ token))
                expected = expected + weights[config.n_expert] * by_hand(
                    mixture.every_expert[-1], token, config
                )
            torch.testing.assert_close(out[row, place], expected, rtol=1e-4, atol=1e-5)
            seen = record.values["experts"][row, place]
            assert {
                e: pytest.approx(weights.get(e, 0.0), abs=1e-6) for e in range(len(seen))
            } == dict(enumerate(seen.tolist()))


@pytest.mark.parametrize("fields", KINDS)
@torch.no_grad()
def test_a_mixture_is_one_wide_mlp_whose_neurons_are_weighted_and_0_where_an_expert_rests(
    fields: dict[str, Any],
) -> None:
    model = mixed(**fields)
    record = Record()
    model(some_ids(), tap=record)
    mixture = part(model)
    config = model.config
    neurons, weights = (record.values[f"blocks.1.mlp.{name}"] for name in ("neurons", "experts"))
    assert neurons.shape[-1] == config.mlp_size == config.n_expert * 20 + config.d_shared
    columns, bias = mixture.write_vectors()
    assert bias is None
    torch.testing.assert_close(
        neurons @ columns.T, record.values["blocks.1.mlp.out"], rtol=1e-4, atol=1e-5
    )
    for expert, at in enumerate(mixture.columns):
        assert (neurons[..., at][weights[..., expert] == 0] == 0).all()
    assert ((weights[..., : config.n_expert] > 0).sum(-1) == config.n_active).all()


@torch.no_grad()
def test_an_expert_without_weight_adds_nothing_and_the_others_stay_as_they_are() -> None:
    model = mixed(n_expert=4, n_active=2)
    record = Record()
    ids = some_ids()

    def without(weights: Tensor) -> Tensor:
        weights[..., 2] = 0.0
        return weights

    whole = model(ids, tap=record)
    weights = record.values["blocks.1.mlp.experts"]
    edited = Record()
    assert not torch.equal(model(ids, tap=Edit({"blocks.1.mlp.experts": without}, edited)), whole)
    mixture = part(model)
    rest = weights.clone()
    rest[..., 2] = 0.0
    assert torch.equal(edited.values["blocks.1.mlp.experts"], rest), (
        "the others are not weighed anew"
    )
    x = edited.values["blocks.1.resid_mid"]
    x = model.blocks[1].mlp_residual.norm(x)
    lost = weights[..., 2, None] * mixture.every_expert[2].down(mixture.every_expert[2].neurons(x))
    difference = record.values["blocks.1.mlp.out"] - edited.values["blocks.1.mlp.out"]
    torch.testing.assert_close(difference, lost, rtol=1e-3, atol=1e-5)
    assert lost.abs().max() > 1e-3


@torch.no_grad()
def test_a_neuron_of_an_expert_that_was_not_chosen_can_be_set_by_hand() -> None:
    model = mixed(n_expert=4, n_active=1)
    record = Record()

    def put(neurons: Tensor) -> Tensor:
        neurons[..., 25] = 3.0  # of expert 1
        return neurons

    model(some_ids(), tap=Edit({"blocks.1.mlp.neurons": put}, record))
    columns, _ = part(model).write_vectors()
    expected = record.values["blocks.1.mlp.neurons"] @ columns.T
    assert (record.values["blocks.1.mlp.experts"][..., 1] == 0).any()
    torch.testing.assert_close(record.values["blocks.1.mlp.out"], expected, rtol=1e-4, atol=1e-5)


def test_every_expert_gets_a_gradient_and_one_without_tokens_gets_zeros() -> None:
    model = mixed(n_expert=30, n_active=1)
    model(some_ids()).square().sum().backward()
    gradients = [expert.up.weight.grad for expert in part(model).every_expert]
    assert all(gradient is not None for gradient in gradients)
    sizes = [float(gradient.abs().sum()) for gradient in gradients if gradient is not None]
    assert 0.0 in sizes
    assert max(sizes) > 0


@pytest.mark.parametrize("fields", KINDS)
def test_operations_are_those_of_the_experts_that_a_token_passes(fields: dict[str, Any]) -> None:
    model = mixed(**fields)
    ids = some_ids()
    with FlopCounterMode(display=False) as counter:
        model(ids)
    assert counter.get_total_flops() == flops(model.config, *ids.shape)[0]
    [gate] = [
        one
        for one in products(model.config, *ids.shape)
        if one.name == "blocks.*.mlp.experts.*.gate"
    ]
    assert f" · {model.config.n_active} · " in gate.formula
