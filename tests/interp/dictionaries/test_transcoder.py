"""The dictionary of an MLP: what it reads and gives back, its edits, its quality and its fit,
against the MLP itself and sums by hand.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import gptviz
from gptviz.interp.changing.ablation import Rows
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.dictionaries import fitting
from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.dictionaries.features import (
    MISSED,
    OTHERS,
    direct_effects,
    written_by_parts,
)
from gptviz.interp.dictionaries.quality import measure_quality
from gptviz.interp.explaining.attribution import attribute
from gptviz.interp.trace import run
from gptviz.model import Config, Transformer
from gptviz.model.edited import EditedTransformer
from gptviz.model.parts.mlps import MLP
from tests.examples import tried
from tests.tiny import families, scrambled, some_ids, tiny

READ = "blocks.1.mlp.read"
OUT = "blocks.1.mlp.out"


def exact(model: Transformer) -> Dictionary:
    """The MLP of block 1 of a model with ReLU as a transcoder that misses nothing."""
    mlp = model.blocks[1].mlp
    assert isinstance(mlp, MLP)
    assert mlp.up.bias is not None
    assert mlp.down.bias is not None
    up, bias, down, back = (
        each.detach().clone()
        for each in (mlp.up.weight, mlp.up.bias, mlp.down.weight.T, mlp.down.bias)
    )
    return Dictionary(1, up, bias, down, back, torch.zeros(len(up)), name="exact", target="mlp")


def random(model: Transformer, k: int = 0) -> Dictionary:
    draw = torch.Generator().manual_seed(3)
    width = model.config.d_model
    encoder, decoder = (torch.randn(6, width, generator=draw) for _ in range(2))
    biases = (torch.randn(size, generator=draw) for size in (6, width))
    bias, back = biases
    return Dictionary(1, encoder, bias, decoder, back, torch.zeros(6), k, target="mlp")


@tried(6, 25, families(mlp="plain", activation="relu", n_layer=2, d_mlp=20, mlp_bias=True))
def test_the_neurons_of_an_mlp_are_the_features_of_a_transcoder_that_misses_nothing(
    config: Config,
) -> None:
    model = scrambled(config)
    ids = some_ids(6, 1, vocab=config.vocab_size)
    trace = run(model, ids, [READ, "blocks.1.mlp.neurons", OUT])
    one = exact(model)
    active = one.encode(trace[READ])
    torch.testing.assert_close(active, trace["blocks.1.mlp.neurons"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(one.decode(active), trace[OUT], rtol=1e-4, atol=1e-5)


def test_a_feature_that_is_set_is_a_neuron_that_is_set_where_features_are_neurons() -> None:
    model = scrambled(tiny(activation="relu"))
    ids = some_ids(6, 2)
    one = exact(model)
    edited = EditedTransformer(model, dict(one.with_set({3: 2.5, 7: 0.0})), {})

    def neurons(value: Tensor) -> Tensor:
        value = value.clone()
        value[..., 3] = 2.5
        value[..., 7] = 0.0
        return value

    expected = run(model, ids, ["logits"], edits={"blocks.1.mlp.neurons": neurons})["logits"]
    torch.testing.assert_close(run(edited, ids, ["logits"])["logits"], expected)


def test_the_quality_of_a_transcoder_is_that_of_the_model_without_its_mlp() -> None:
    model = scrambled(tiny(activation="relu"))
    ids = some_ids(9, batch=3, vocab=11)
    rows = [Rows(Inputs(ids[:, :-1]), ids[:, 1:])]
    found = measure_quality(model, exact(model), rows)
    assert found.explained == pytest.approx(1, abs=1e-5)
    assert found.loss_with == pytest.approx(found.loss, abs=1e-5)
    assert found.labelled().axes[0].name == "in the place of the output of the MLP of block 1"
    out = run(model, ids[:, :-1], [OUT])[OUT]
    for given, put in (
        (found.loss_zero, torch.zeros_like(out)),
        (found.loss_mean, out.mean((0, 1)).expand_as(out)),
    ):
        logits = run(model, ids[:, :-1], ["logits"], edits={OUT: lambda _, put=put: put})["logits"]
        expected = float(F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()))
        assert given == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("k", [0, 2])
def test_direct_effects_of_the_features_of_an_mlp_sum_to_the_logit(k: int) -> None:
    model = scrambled(tiny())
    ids = some_ids(6, 1)[0]
    one = random(model, k)
    found = direct_effects(model, ids.tolist(), one, 4)
    whole = attribute(model, ids.tolist(), 4)
    assert found.values.sum() == pytest.approx(whole.sum, abs=1e-5)
    parts = dict(zip(found.axes[0].labels, found.values, strict=True))
    mlp = sum(value for name, value in parts.items() if name != OTHERS)
    assert mlp == pytest.approx(whole.of("blocks.1.mlp") + whole.of(OUT_BIAS), abs=1e-5)
    assert MISSED in parts


OUT_BIAS = "blocks.1.mlp.down.bias"


def test_what_writes_a_feature_of_an_mlp_sums_to_its_activation_before_the_relu() -> None:
    model = scrambled(tiny())
    ids = some_ids(6, 1)[0]
    one = random(model)
    before = run(model, ids[None], [READ])[READ][0] @ one.encoder[2] + one.encoder_bias[2]
    at, found = written_by_parts(model, ids, one, 2)
    assert at == int(before.argmax())
    assert found.values.sum() == pytest.approx(float(before.max()), abs=1e-4)
    assert "head 0 of block 1" in found.axes[0].labels


@pytest.mark.parametrize("kind", fitting.KINDS)
def test_the_function_that_made_vectors_is_found_again(
    monkeypatch: pytest.MonkeyPatch, kind: fitting.FittedKind
) -> None:
    """Vectors are sums of few features, around a point away from 0; what is given back of each
    feature lies in a direction of its own.
    """
    monkeypatch.setattr(fitting, "BATCH", 64)
    draw = torch.Generator().manual_seed(0)
    reads, writes = (F.normalize(torch.randn(12, 20, generator=draw), dim=-1) for _ in range(2))
    values = (torch.rand(5_000, 12, generator=draw) < 0.15) * (
        0.5 + torch.rand(5_000, 12, generator=draw)
    )
    x = 7 * values @ reads + 3
    given = 0.2 * values @ writes - 1
    found = fitting.Fit(x, 0, 24, kind, k=3, cost=0.1, given=given).finish()
    missed = (found.reconstruct(x) - given).square().sum() / (given - given.mean(0)).square().sum()
    assert missed < 0.06
    nearest = (writes @ found.decoder.T).max(-1).values
    assert float(nearest.median()) > 0.97
    assert (found.target, found.fitted_to) == ("mlp", 5_000)


def test_the_transcoders_that_ship_stand_for_the_mlps_of_sentences() -> None:
    lm = gptviz.load("sentences")
    for block in range(3):
        found = lm.dictionary_quality(f"sentences-mlp-{block}")
        assert lm.dictionary(f"sentences-mlp-{block}").block == block
        assert found.explained > 0.97
        assert found.loss_with < found.loss + 0.001
        assert found.loss_with < 0.1 * min(found.loss_zero, found.loss_mean, found.loss_random)
    np.testing.assert_array_equal(
        [name for name in lm.dictionaries() if name.startswith("sentences-")],
        ["sentences-features", *(f"sentences-mlp-{block}" for block in range(3))],
    )
