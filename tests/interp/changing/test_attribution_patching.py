"""Attribution patching against finite differences, and what a backward pass must leave alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from gptviz.interp.changing.attribution_patching import correlation, preview
from gptviz.interp.changing.patchable import quantities, quantity
from gptviz.interp.changing.patching import PromptPair, patch
from gptviz.interp.trace import run
from gptviz.model import Config, Transformer
from gptviz.model.precision import place
from tests.interp.changing.test_patching import pair_for
from tests.tiny import families, scrambled, tiny


def slope(model: Transformer, pair: PromptPair, tap: str, at: int, step: float = 1e-5) -> float:
    """How fast the answer changes where a piece goes from its corrupted to its clean value, by finite differences."""
    ids, sources = pair.ids(torch.device("cpu")), pair.sources(torch.device("cpu"))
    read = [{"source": None if sources is None else sources[i : i + 1]} for i in (0, 1)]
    clean = run(model, ids[:1], [tap], **read[0])[tap]

    def answer(share: float) -> float:
        def moved(value: Tensor) -> Tensor:
            value[:, at] += share * (clean - value)[:, at]
            return value

        return float(pair.answer(run(model, ids[1:], ["logits"], edits={tap: moved}, **read[1])["logits"])[0])

    return (answer(step) - answer(-step)) / (2 * step)


@settings(max_examples=15)
@given(families(activation="gelu"))
def test_the_preview_is_the_slope_of_finite_differences(config: Config) -> None:
    model, pair = scrambled(config).double(), pair_for(config)
    found = preview(model, pair, [one.name for one in quantities(config)])
    for name, guess in found.items():
        one = quantity(name, config)
        for block in range(config.n_layer):
            for at in (0, len(guess.places.labels) - 1):
                expected = slope(model, pair, one.tap(block), at)
                assert guess.answers[block, at] - guess.corrupted == pytest.approx(expected, rel=1e-4, abs=1e-6), name


@pytest.mark.parametrize("changes", [{"n_encoder_layer": 1, "padding": 0}, {"head": "mean", "n_label": 3, "mask": "full"}])
def test_other_kinds_of_models_have_a_preview_too(changes: dict[str, object]) -> None:
    config = tiny(**changes)
    model, pair = scrambled(config).double(), pair_for(config)
    for name, guess in preview(model, pair, [one.name for one in quantities(config)]).items():
        expected = slope(model, pair, quantity(name, config).tap(0), 1)
        assert guess.answers[0, 1] - guess.corrupted == pytest.approx(expected, rel=1e-4, abs=1e-6), name


def test_of_a_small_change_the_preview_says_what_patches_do() -> None:
    model = scrambled(tiny()).double()
    pair = replace(pair_for(tiny()), corrupted=(*pair_for(tiny()).clean[:-1], 5))
    with torch.no_grad():  # two tokens that are nearly the same
        model.embed.weight[5] = model.embed.weight[pair.clean[-1]] + 1e-4 * model.embed.weight[5]
    for name, guess in preview(model, pair, ["resid_pre", "attention.z", "mlp.out"]).items():
        exact = patch(model, pair, name)
        assert (guess.clean, guess.corrupted) == pytest.approx((exact.clean, exact.corrupted))
        np.testing.assert_allclose(guess.answers - guess.corrupted, exact.answers - exact.corrupted, rtol=1e-2, atol=1e-9)
        assert correlation(exact, guess) > 0.999


def test_a_correlation_is_that_of_numpy_and_none_where_nothing_differs() -> None:
    model, pair = scrambled(tiny()), pair_for(tiny())
    exact, guess = patch(model, pair, "attention.z"), preview(model, pair, ["attention.z"])["attention.z"]
    assert correlation(exact, guess) == pytest.approx(np.corrcoef(exact.answers.ravel(), guess.answers.ravel())[0, 1])
    assert math.isnan(correlation(replace(exact, answers=np.ones((2, 3))), guess))


def test_the_parameters_get_no_gradient_and_stay_as_they_are() -> None:
    model = scrambled(tiny())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    preview(model, pair_for(tiny()), ["resid_pre", "attention.pattern"])
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_no_product_holds_what_only_the_derivative_of_a_weight_needs() -> None:
    model, weights = scrambled(tiny()), list[Tensor]()
    model.blocks[0].mlp.down.register_forward_pre_hook(lambda part, _args: weights.append(part.weight))  # type: ignore[union-attr]
    preview(model, pair_for(tiny()))
    assert not weights[-1].requires_grad
    assert {one.data_ptr() for one in weights} == {model.blocks[0].mlp.down.weight.data_ptr()}, "the numbers are not copied"


def test_a_caller_that_computes_without_gradients_gets_the_same() -> None:
    model, pair = scrambled(tiny()), pair_for(tiny())
    expected = preview(model, pair)["resid_pre"].answers
    with torch.inference_mode():
        np.testing.assert_array_equal(preview(model, pair)["resid_pre"].answers, expected)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_weights_that_are_kept_in_two_bytes_have_a_preview(precision: str) -> None:
    config = tiny(d_model=24, d_mlp=48)
    weights = {name: value.detach().bfloat16() for name, value in scrambled(config).named_parameters()}
    kept = place(scrambled(config), weights.items(), precision=precision)
    assert kept.blocks[0].mlp.up.weight.dtype == torch.bfloat16  # type: ignore[union-attr]
    whole = scrambled(config)
    whole.load_state_dict(weights, strict=False)
    pair = pair_for(config)
    for name, guess in preview(kept, pair, ["resid_pre", "attention.q"]).items():
        expected = preview(whole, pair, [name])[name]
        tolerance = 1e-4 if precision == "float32" else 0.2
        np.testing.assert_allclose(guess.answers, expected.answers, atol=tolerance)
