"""Neurons: what is kept of a text that is read in batches, against all activations at once;
promoted tokens; steering.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.interp.trace import run
from gptviz.interp.units import activity
from gptviz.interp.units.activity import BINS, MOST_PLACES, SEGMENT, Activity, observe
from gptviz.interp.units.neurons import columns, observable_neurons, promoted_tokens
from gptviz.model import Config
from gptviz.model.parts.mlps import MLPS
from gptviz.model.parts.residuals import RESIDUALS
from tests import hand_built
from tests.hand_built import LOUD, VOCAB, Neuron, steered
from tests.tiny import families, scrambled, some_ids, tiny


def of_all(model: torch.nn.Module, block: int, rows: list[torch.Tensor]) -> Activity:
    (*_, last) = observe(observable_neurons(model, block), rows)
    return last.activity()


def rows_of(*lengths: int) -> list[torch.Tensor]:
    return [some_ids(length, 1, seed=seed)[0] for seed, length in enumerate(lengths)]


@settings(max_examples=20)
@given(families(d_mlp=20, context_length=70), st.integers(1, 500_000))
def test_what_is_kept_batch_by_batch_is_what_all_activations_together_say(
    config: Config, at_once: int
) -> None:
    if not config.n_layer:
        return
    model = scrambled(config)
    rows = rows_of(70, 70, 70, 40, 40, 3, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(activity, "AT_ONCE", at_once)
        found = of_all(model, config.n_layer - 1, rows)
    name = f"blocks.{config.n_layer - 1}.mlp.neurons"
    each = [run(model, row[None], [name])[name][0].double().numpy() for row in rows]
    together = np.concatenate(each)  # [tokens, neuron]
    assert found.n_tokens == len(together)
    np.testing.assert_allclose(found.largest, together.max(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.smallest, together.min(0), rtol=1e-4, atol=1e-5)
    # batches round differently around 0
    np.testing.assert_allclose(found.active, (together > 0).mean(0), atol=2e-2)
    for neuron in range(20):
        counts, _ = np.histogram(
            together[:, neuron], BINS, (-found.reach[neuron], found.reach[neuron])
        )
        assert abs(found.counts[neuron] - counts).sum() <= 4, (
            "an activation on an edge may fall on either side"
        )
        assert found.counts[neuron].sum() == len(together)
        best = {}  # the largest of each segment
        for row, values in enumerate(each):
            for start in range(0, len(values), SEGMENT):
                place = start + int(values[start : start + SEGMENT, neuron].argmax())
                best[row, place] = float(values[place, neuron])
        expected = sorted(best.values(), reverse=True)[:MOST_PLACES]
        kept = [each[row][place, neuron] for row, place in found.places(neuron)]
        np.testing.assert_allclose(kept, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            found.highest[: len(kept), neuron], expected, rtol=1e-4, atol=1e-5
        )
        kept = [each[row][place, neuron] for row, place in found.places(neuron, lowest=True)]
        assert kept == sorted(kept)
        assert kept[0] == pytest.approx(together[:, neuron].min(), rel=1e-4, abs=1e-5)
    tokens = torch.cat(rows).numpy()
    for token in range(config.vocab_size):
        assert found.seen[token] == (tokens == token).sum()
        mean = together[tokens == token].mean(0) if found.seen[token] else np.zeros(20)
        np.testing.assert_allclose(found.by_token[:, token], mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mlp", MLPS)
def test_the_effect_is_the_mean_length_of_what_a_neuron_adds(mlp: str) -> None:
    model = scrambled(tiny(mlp=mlp))
    rows = rows_of(8, 8)
    found = of_all(model, 1, rows)
    # [16, 20]
    values = run(model, torch.stack(rows), ["*.neurons"])["blocks.1.mlp.neurons"].flatten(0, 1)
    columns = model.blocks[1].mlp.write_vectors()[0].detach()
    for neuron in range(20):
        added = values[:, neuron, None] * columns[:, neuron]
        assert found.effect[neuron] == pytest.approx(float(added.norm(dim=-1).mean()), rel=1e-4)
    assert found.ranked("effect")[0] == int(found.effect.argmax())


def test_activations_are_those_of_the_whole_pass_and_need_no_later_block() -> None:
    model = scrambled(tiny(n_layer=2))
    ids = some_ids()
    expected = run(model, ids)["blocks.0.mlp.neurons"]
    model.blocks[1] = torch.nn.Identity()  # would refuse its arguments
    assert torch.equal(observable_neurons(model, 0).values(ids), expected)


def test_a_neuron_built_by_hand_is_found_with_the_token_it_reads_and_the_one_it_says() -> None:
    model = hand_built.hand_built((hand_built.nothing(),), neurons=((Neuron(3, 8), Neuron(5, 1)),))
    ids = torch.tensor([3, 5, 3, 7, 5, 1, 3, 8])
    found = of_all(model, 0, [ids])
    np.testing.assert_array_equal(found.largest, [1, 1])
    np.testing.assert_array_equal(found.active, [3 / 8, 2 / 8])
    assert found.places(0) == [(0, 0)], "one place of each segment"
    values = promoted_tokens(model, columns(model, 0)[:, 0])
    assert values.argmax() == 8
    assert values[8] == pytest.approx(LOUD * (1 - 1 / VOCAB))
    assert found.histogram(1).values.sum() == 8
    assert found.tokens(0, 1) == [(3, 1.0)]
    assert [token for token, _ in found.tokens(1, often=2)] == [5, 3], (
        "the others stand in the text once"
    )
    assert steered(model, ids[3:4], 0, 1, 3.0).argmax() == 1, (
        "made active where its token does not stand"
    )
    assert torch.equal(steered(model, ids, 0, 1, None), model(ids[None])[0, -1])


@settings(max_examples=20)
@given(families(d_mlp=20, backout=False))
def test_in_the_last_block_of_a_model_without_norms_a_promoted_token_gains_exactly_so_much(
    config: Config,
) -> None:
    if not config.n_layer:
        return
    residual = "plain" if "add" in RESIDUALS[config.residual].steps else "none"
    without = replace(config, final_norm=False, logit_cap=None, residual=residual)
    model = scrambled(without)
    ids = some_ids()[0]
    low, high = (
        steered(model, ids, without.n_layer - 1, 7, value).double() for value in (-1.0, 1.0)
    )
    gained = ((high - low) / 2).numpy()
    np.testing.assert_allclose(
        promoted_tokens(model, columns(model, without.n_layer - 1)[:, 7]),
        gained - gained.mean(),
        atol=1e-4,
    )


def test_through_norms_a_promoted_token_is_the_linear_part_times_one_factor() -> None:
    """RMSNorm of x + a·w for a large a is w / ‖w‖, times the gain: all that is left of the stream
    is the neuron.
    """
    model = scrambled(tiny(norm="rmsnorm", n_layer=1, residual="pre-norm"))
    logits = steered(model, some_ids()[0], 0, 7, 1e6).double().numpy()
    values = promoted_tokens(model, columns(model, 0)[:, 7])
    assert np.corrcoef(values, logits)[0, 1] == pytest.approx(1, abs=1e-4)


def test_steering_is_an_edit_of_the_neurons_at_every_token() -> None:
    model = scrambled(tiny(n_layer=2))
    ids = some_ids()[0]
    edits = {
        "blocks.0.mlp.neurons": lambda value: torch.cat(
            (value[..., :4], torch.full_like(value[..., :1], 2.5), value[..., 5:]), -1
        )
    }
    expected = run(model, ids[None], ["logits"], edits=edits)["logits"][0, -1]
    torch.testing.assert_close(steered(model, ids, 0, 4, 2.5), expected)


def test_steering_a_classifier_moves_its_labels() -> None:
    model = scrambled(tiny(mask="full", head="mean", n_label=3))
    ids = some_ids()[0]
    assert steered(model, ids, 0, 4, None).shape == (3,)
    assert not torch.equal(steered(model, ids, 0, 4, None), steered(model, ids, 0, 4, 9.0))
