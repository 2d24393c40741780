"""Heads and neurons found by a token, against a loop over all of them."""

from __future__ import annotations

import pytest
import torch

from gptviz.interp.units.by_token import heads_for, neurons_for
from gptviz.interp.units.neurons import columns, promoted_tokens
from tests.tiny import VOCAB, scrambled, tiny


@pytest.mark.parametrize(
    "changes", [{}, {"norm": "rmsnorm", "mlp": "gated", "n_kv_head": 1}, {"residual": "post-norm"}]
)
def test_the_neurons_for_a_token_are_those_that_promote_it_most(changes: dict[str, object]) -> None:
    model = scrambled(tiny(**changes))
    config = model.config
    every = {
        (block, neuron): promoted_tokens(model, columns(model, block)[:, neuron])[4]
        for block in range(config.n_layer)
        for neuron in range(config.mlp_size)
    }
    best = sorted(every, key=lambda place: -every[place])[:5]
    found = neurons_for(model, 4, 5)
    assert [(one.unit.block, one.unit.index) for one in found] == best
    assert [one.value for one in found] == pytest.approx(
        [every[place] for place in best], rel=1e-3, abs=1e-5
    )


def test_the_heads_for_a_token_are_found_by_what_each_of_its_matrices_makes_of_every_embedding() -> (
    None
):
    model = scrambled(tiny(norm="rmsnorm", norm_gain=False, final_norm=False, n_layer=2))
    config = model.config
    token = 3
    expected = {}
    with torch.no_grad():
        unembed = model.head.get_parameter("unembed.weight")
        for block in range(config.n_layer):
            part = model.blocks[block]
            value = part.get_parameter("attention.qkv.weight")[
                -config.key_heads * config.head_size :
            ]
            output = part.get_parameter("attention.output.weight")
            for head in range(config.n_head):
                rows = slice(head * config.head_size, (head + 1) * config.head_size)
                adds = [
                    float(
                        (
                            (unembed - unembed.mean(0))
                            @ (output[:, rows] @ (value[rows] @ model.embed.weight[read]))
                        )[token]
                    )
                    for read in range(VOCAB)
                ]
                expected[block, head] = max((one, read) for read, one in enumerate(adds))
    found = heads_for(model, token, 4)
    best = sorted(expected, key=lambda place: -expected[place][0])[:4]
    assert [(one.unit.block, one.unit.index) for one in found] == best
    assert [one.reads for one in found] == [expected[place][1] for place in best]
    assert [one.value for one in found] == pytest.approx(
        [expected[place][0] for place in best], rel=1e-3
    )
