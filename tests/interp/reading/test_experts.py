"""The routing of tokens to experts, against loops over tokens."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
import torch

from gptviz.interp.changing.edits import edit, edit_model
from gptviz.interp.reading.experts import even_load, load, routing, tokens_of_expert
from gptviz.interp.trace import run
from gptviz.interp.units.unit import Unit, unit
from tests.tiny import scrambled, some_ids, tiny

MIXED = tiny(mlp="experts", n_expert=5, n_active=2, d_shared=8, vocab_size=11)


def test_routing_is_what_the_router_of_each_block_chooses_for_each_token() -> None:
    model = scrambled(MIXED)
    ids = some_ids(8)[0]
    found = routing(model, ids, [f"t{one}" for one in ids.tolist()])
    assert [axis.name for axis in found.axes] == ["block", "token", "expert"]
    assert found.axes[2].labels == ("0", "1", "2", "3", "4", "shared")
    trace = run(model, ids[None])
    for block in range(2):
        scores = trace[f"blocks.{block}.mlp.router"][0].softmax(-1)
        for place, row in enumerate(scores.tolist()):
            chosen = sorted(range(5), key=lambda e: -row[e])[:2]
            total = sum(row[e] for e in chosen)
            expected = [row[e] / total if e in chosen else 0.0 for e in range(5)]
            np.testing.assert_allclose(found.values[block, place, :5], expected, atol=1e-6)
            assert 0 < found.values[block, place, 5] < 1


def test_load_and_tokens_are_counted_as_a_loop_counts_them() -> None:
    ids = torch.tensor([3, 1, 3, 3, 7, 1, 0, 3])
    found = routing(scrambled(MIXED), ids, list(map(str, ids.tolist())))
    shares = load(found)
    np.testing.assert_allclose(shares.values[:, :5].sum(1), 2, atol=1e-6)
    assert (shares.values[:, 5] == 1).all(), "every token passes the shared expert"
    assert even_load(MIXED) == 2 / 5
    for block in range(2):
        for expert in range(6):
            times = defaultdict(int)
            weights = defaultdict(list)
            for place, one in enumerate(ids.tolist()):
                if (weight := found.values[block, place, expert]) != 0:
                    times[str(one)] += 1
                    weights[str(one)].append(weight)
            assert shares.values[block, expert] == pytest.approx(sum(times.values()) / 8)
            listed = tokens_of_expert(found, block, expert)
            assert {one.token: one.times for one in listed} == dict(times)
            assert [one.times for one in listed] == sorted(times.values(), reverse=True)
            for one in listed:
                assert one.of == ids.tolist().count(int(one.token))
                assert one.weight == pytest.approx(float(np.mean(weights[one.token])), abs=1e-6)


def test_an_expert_is_a_unit_with_a_name_and_a_model_without_experts_has_none() -> None:
    found = unit("blocks.1.mlp.expert.5", MIXED)
    assert found == Unit("expert", 1, 5)
    assert (found.name, found.title, found.layer) == (
        "blocks.1.mlp.expert.5",
        "expert 5 of block 1",
        "blocks.1.mlp",
    )
    with pytest.raises(ValueError, match="there is no expert 6; experts are counted from 0 to 5"):
        unit("blocks.1.mlp.expert.6", MIXED)
    with pytest.raises(ValueError, match="this model has no experts"):
        unit("blocks.1.mlp.expert.0", tiny())
    with pytest.raises(ValueError, match="expert 1 of block 0 cannot become 'mean', but zero"):
        edit("blocks.0.mlp.expert.1=mean", MIXED)


@pytest.mark.parametrize("expert", range(6))
def test_an_expert_switched_off_adds_nothing_and_the_others_keep_their_weights(expert: int) -> None:
    model = scrambled(MIXED)
    ids = some_ids(8)
    whole, without = (
        run(one, ids)
        for one in (model, edit_model(model, [edit(f"blocks.1.mlp.expert.{expert}", MIXED)]))
    )
    weights = whole["blocks.1.mlp.experts"].clone()
    weights[..., expert] = 0
    assert torch.equal(without["blocks.1.mlp.experts"], weights)
    for name in ("blocks.0.mlp.out", "blocks.1.mlp.router", "blocks.1.attention.pattern"):
        assert torch.equal(without[name], whole[name]), name
    neurons = whole["blocks.1.mlp.neurons"].clone()
    neurons[..., model.blocks[1].mlp.columns[expert]] = 0
    columns, _ = model.blocks[1].mlp.write_vectors()
    torch.testing.assert_close(
        without["blocks.1.mlp.out"], neurons @ columns.T, rtol=1e-4, atol=1e-5
    )
