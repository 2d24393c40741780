"""Frozen runs: what each part adds sums to what is read, along every way down, and equals a loop
over the parts.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import example, given, settings

from gptviz.interp.explaining.attribution import attribute
from gptviz.interp.explaining.circuit_reads import Frozen, choice, means
from gptviz.interp.trace import run
from gptviz.interp.units.unit import Unit
from gptviz.model import Config
from tests.tiny import families, scrambled, some_ids, tiny

CLOSE = 1e-4
POSITION = 4


def _scale(*values: float) -> float:
    return max(1e-3, *map(abs, values))


@given(families(n_encoder_layer=0))
@example(tiny(norm="layernorm", qk_norm="separate"))
@settings(max_examples=60, deadline=None)
def test_what_all_parts_add_sums_to_what_is_read_on_every_way_down_and_of_every_architecture(
    config: Config,
) -> None:
    model = scrambled(config)
    ids = some_ids(6, 1)[0]
    for usual in (None, means(model, some_ids(8, 3, seed=1))):
        frozen = Frozen(model, ids, POSITION, usual)
        top = frozen.logit(3, 5)
        assert abs(float(top.adds.sum()) + top.rest - top.total) < CLOSE * _scale(
            top.total, float(top.adds.abs().sum())
        )
        for unit in frozen.units:
            for reads in frozen.inputs_of(unit, POSITION, top.directions[unit.layer][0]):
                scale = _scale(reads.total, float(reads.adds.abs().sum()), reads.rest)
                assert abs(float(reads.adds.sum()) + reads.rest - reads.total) < CLOSE * scale, (
                    unit.name,
                    reads.kind,
                )


@given(families(n_encoder_layer=0))
@settings(max_examples=30, deadline=None)
def test_the_total_is_the_logit_of_the_model(config: Config) -> None:
    model = scrambled(replace(config, logit_cap=None))
    ids = some_ids(6, 1)[0]
    logits = run(model, ids[None])["logits"][0, POSITION]
    frozen = Frozen(model, ids, POSITION)
    assert frozen.logit(3, None).total == pytest.approx(float(logits[3]), abs=1e-4, rel=1e-4)
    assert frozen.logit(3, 5).total == pytest.approx(
        float(logits[3] - logits[5]), abs=1e-4, rel=1e-4
    )


@given(families(n_encoder_layer=0))
@settings(max_examples=20, deadline=None)
def test_what_each_part_adds_to_the_logit_is_what_the_decomposition_of_the_stream_says(
    config: Config,
) -> None:
    model = scrambled(config)
    ids = some_ids(6, 1)[0]
    frozen = Frozen(model, ids, POSITION)
    top = frozen.logit(3, 5)
    parts = attribute(model, ids.tolist(), 3, POSITION, 5)
    scale = _scale(float(top.adds.abs().max()))
    for unit, value in zip(frozen.units, top.adds[0].tolist(), strict=True):
        # here an MLP is one with its bias
        biases = (f"{unit.layer}.down.bias",) if unit.part == "mlp" else ()
        expected = sum(part.value for part in parts.parts if part.name in (unit.name, *biases))
        assert value == pytest.approx(expected, abs=CLOSE * scale), unit.name


@torch.no_grad()
def test_a_value_edge_is_pattern_times_value_matrix_times_output_matrix_times_what_was_written() -> (
    None
):
    """Against a loop over sources and positions that reads the model's matrices itself."""
    config = tiny(residual="plain", final_norm=False, n_kv_head=1, d_mlp=0, positions="rotary")
    model = scrambled(config)
    ids = some_ids(6, 1)[0]
    trace = run(model, ids[None])
    head = Unit("attention", 1, 2)
    frozen = Frozen(model, ids, POSITION)
    top = frozen.logit(3, 5)
    value = frozen.inputs_of(head, POSITION, top.directions[head.layer][0])[0]
    attention = model.blocks[1].attention
    size = config.head_size
    unembed = model.head.get_parameter("unembed.weight")
    w_v = attention.qkv.weight[(config.n_head + 1) * size :]  # [d_head, d_model]
    w_o = attention.output.weight[:, 2 * size : 3 * size]  # [d_model, d_head]
    below = model.blocks[0].attention.output.weight
    for row, place in enumerate(value.at.tolist()):
        for source in range(3):
            z = trace["blocks.0.attention.z"][0, source, place]
            wrote = below[:, source * size : (source + 1) * size] @ z
            reads = trace["blocks.1.attention.pattern"][0, 2, POSITION, place]
            expected = reads * (unembed[3] - unembed[5]) @ (w_o @ (w_v @ wrote))
            found = value.adds[row, frozen.place[Unit("attention", 0, source)]]
            assert float(found) == pytest.approx(float(expected), abs=1e-5)
        expected = (
            trace["blocks.1.attention.pattern"][0, 2, POSITION, place]
            * (unembed[3] - unembed[5])
            @ (w_o @ (w_v @ trace["embed"][0, place]))
        )
        assert float(value.adds[row, frozen.place[Unit("embed")]]) == pytest.approx(
            float(expected), abs=1e-5
        )


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 30.0, 400.0])
def test_the_shares_of_scores_add_up_to_what_choosing_gains_however_sure_the_head_is(
    sharpness: float,
) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = sharpness * torch.randn(9, generator=generator)
    values = torch.randn(9, generator=generator)
    weights = choice(scores, values)
    gained = scores.softmax(-1) @ values - values.mean()
    assert float(weights @ scores) == pytest.approx(float(gained), abs=1e-4)
    assert float(weights.sum()) == pytest.approx(0.0, abs=1e-5)


def test_the_shares_of_scores_equal_an_integral_in_small_steps() -> None:
    scores = torch.tensor([3.0, -1.0, 0.5, 6.0])
    values = torch.tensor([1.0, 2.0, -1.0, 0.5])
    steps = 20_000
    total = torch.zeros(4, dtype=torch.float64)
    for step in range(steps):
        pattern = ((step + 0.5) / steps * scores.double()).softmax(-1)
        total += pattern * (values.double() - pattern @ values.double()) / steps
    torch.testing.assert_close(choice(scores, values), total.float(), atol=1e-5, rtol=1e-4)


def test_two_scores_share_what_is_gained_in_a_closed_form() -> None:
    """With two keys only the difference of the scores matters, so both weights are the gain divided
    by it.
    """
    weights = choice(torch.tensor([2.0, -1.0]), torch.tensor([5.0, 1.0]))
    gain = (1 / (1 + torch.exp(torch.tensor(-3.0))) - 0.5) * 4.0
    torch.testing.assert_close(weights, torch.tensor([1.0, -1.0]) * gain / 3.0)


def test_means_are_those_of_a_loop_over_positions() -> None:
    model = scrambled(tiny())
    texts = some_ids(8, 3)
    found = means(model, texts)
    trace = run(model, texts)
    for name in ("embed", "blocks.0.attention.z", "blocks.1.mlp.out"):
        rows = [trace[name][b].select(-2, t) for b in range(3) for t in range(8)]
        torch.testing.assert_close(found[name], torch.stack(rows).mean(0))
    torch.testing.assert_close(found["positions"], trace["positions"].mean(0))
