"""The loss that keeps the experts of a mixture equally busy."""

from __future__ import annotations

import pytest
import torch

from gptviz.interp.reading.experts import load, routing
from gptviz.interp.trace import run
from gptviz.model import build
from gptviz.train.balance import imbalance
from tests.small_runs import REPETITIVE, trainer
from tests.tiny import tiny

EXPERTS = tiny(mlp="experts", n_expert=4, n_active=1, d_mlp=8)


@pytest.mark.parametrize("n_active", [1, 2])
def test_it_is_the_sum_over_experts_of_how_often_each_is_chosen_times_how_much_the_router_likes_it(
    n_active: int,
) -> None:
    scores = torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(1))
    often = [0.0] * 5
    liked = [0.0] * 5
    for row in scores.flatten(0, 1).softmax(-1).tolist():
        for expert in sorted(range(5), key=lambda expert: -row[expert])[:n_active]:
            often[expert] += 1 / (14 * n_active)
        for expert, share in enumerate(row):
            liked[expert] += share / 14
    expected = 5 * sum(a * b for a, b in zip(often, liked, strict=True))
    assert imbalance(scores, n_active).item() == pytest.approx(expected, rel=1e-5)


def test_a_step_adds_it_for_every_block_and_with_no_strength_nothing() -> None:
    model = build(EXPERTS, seed=1)
    found = {strength: trainer(model, expert_balance=strength) for strength in (0.0, 0.1)}
    batch = found[0.0].data.training(4, 5)
    trace = run(model, batch.inputs[0], ["blocks.*.mlp.router"])
    expected = sum(
        imbalance(trace[f"blocks.{block}.mlp.router"], EXPERTS.n_active).item()
        for block in range(2)
    )
    without, added = (found[strength]._loss(batch)[0].item() for strength in (0.0, 0.1))
    assert added - without == pytest.approx(0.1 * expected, rel=1e-3)
    assert trainer(build(tiny()), expert_balance=0.1)._loss(batch)[0].isfinite(), (
        "a model without experts"
    )


def test_a_router_that_sends_nearly_all_tokens_to_one_expert_learns_to_spread_them() -> None:
    busiest = {}
    for strength in (0.0, 0.3):
        model = build(EXPERTS, seed=1)
        for block in model.blocks:
            with torch.no_grad():  # the first expert is the likeliest of nearly all tokens
                block.mlp.router.weight[0] = (
                    model.blocks[0].mlp.router.weight.new_ones(EXPERTS.d_model) * 0.5
                )
        list(trainer(model, steps=60, expert_balance=strength))
        ids = REPETITIVE[: EXPERTS.context_length]
        busiest[strength] = float(load(routing(model, ids, [""] * len(ids))).values.max())
    assert busiest[0.3] < 0.6 * busiest[0.0] or busiest[0.3] < 0.5
