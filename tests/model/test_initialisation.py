"""Fresh weights: what is documented, from the seed alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from gptviz.model import PRESETS, build
from tests.tiny import tiny


def test_one_seed_gives_one_model_whatever_was_drawn_before() -> None:
    models = []
    for before in (0, 1):
        torch.manual_seed(before)
        models.append(build(tiny(positions="relative"), seed=3).state_dict())
    assert all(torch.equal(value, models[1][name]) for name, value in models[0].items())
    other = build(tiny(positions="relative"), seed=4).state_dict()
    matrices = [name for name, value in other.items() if value.dim() > 1]
    assert len(matrices) == 12
    assert not any(torch.equal(other[name], models[0][name]) for name in matrices)


def test_no_seed_gives_a_new_model_each_time() -> None:
    assert not torch.equal(build(tiny()).embed.weight, build(tiny()).embed.weight)


@pytest.mark.parametrize("n_layer", [1, 8])
def test_matrices_have_the_documented_spread_and_biases_are_zero(n_layer: int) -> None:
    model = build(
        tiny(vocab_size=700, d_model=96, d_mlp=None, n_layer=n_layer, unembed_bias=True), seed=0
    )
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            is_gain = "norm" in name and name.endswith("weight")
            assert (parameter == (1.0 if is_gain else 0.0)).all(), name
        else:
            into_stream = name.endswith(("attention.output.weight", "mlp.down.weight"))
            expected = 0.02 / math.sqrt(2 * n_layer) if into_stream else 0.02
            # Four standard errors of a standard deviation over this many numbers.
            assert parameter.std().item() == pytest.approx(
                expected, rel=4 / math.sqrt(2 * parameter.numel())
            ), name
            assert abs(parameter.mean().item()) < 4 * expected / math.sqrt(parameter.numel()), name


def test_a_tied_embedding_is_one_matrix_and_stays_one() -> None:
    model = build(tiny(tied=True), seed=0)
    assert model.head.unembed.weight is model.embed.weight
    assert "head.unembed.weight" not in dict(model.named_parameters())


@pytest.mark.parametrize(
    "name", ["shakespeare", "generator", "ladder", "bigram", "transformerslite-generator"]
)
def test_an_untrained_model_knows_nothing_its_loss_is_the_logarithm_of_the_vocabulary(
    name: str,
) -> None:
    config = PRESETS[name]
    ids = torch.randint(
        config.vocab_size,
        (16, config.context_length + 1),
        generator=torch.Generator().manual_seed(0),
    )
    with torch.inference_mode():
        logits = build(config, seed=0).eval()(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).item()
    # A tied model starts out repeating its input, the likelier the wider it is.
    assert loss == pytest.approx(math.log(config.vocab_size), abs=0.3 if config.tied else 0.06)
