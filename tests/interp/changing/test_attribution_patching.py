"""Attribution patching against finite differences, and what a backward pass must leave alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume
from torch import Tensor

from gptviz.interp.changing.attribution_patching import TRUSTED, correlation, preview
from gptviz.interp.changing.patchable import quantities, quantity
from gptviz.interp.changing.patching import PromptPair, patch
from gptviz.interp.trace import run
from gptviz.model import Config, Transformer
from gptviz.model.precision import place
from tests.examples import tried
from tests.interp.changing.test_patching import pair_for
from tests.tiny import NO_SHORTCUTS, families, scrambled, tiny


def slope(model: Transformer, pair: PromptPair, tap: str, at: int, step: float = 1e-5) -> float:
    """How fast the answer changes where a piece goes from its corrupted to its clean value, by
    finite differences.
    """
    ids = pair.ids(torch.device("cpu"))
    sources = pair.sources(torch.device("cpu"))
    read = [{"source": None if sources is None else sources[i : i + 1]} for i in (0, 1)]
    clean = run(model, ids[:1], [tap], **read[0])[tap]

    def answer(share: float) -> float:
        def moved(value: Tensor) -> Tensor:
            value[:, at] += share * (clean - value)[:, at]
            return value

        return float(
            pair.answer(run(model, ids[1:], ["logits"], edits={tap: moved}, **read[1])["logits"])[0]
        )

    return (answer(step) - answer(-step)) / (2 * step)


@tried(5, 15, families(activation="gelu", **NO_SHORTCUTS))
def test_a_preview_of_one_step_is_the_slope_of_finite_differences(config: Config) -> None:
    model = scrambled(config).double()
    pair = pair_for(config)
    found = preview(model, pair, [one.name for one in quantities(config)], steps=1, checked=0)
    for name, guess in found.items():
        one = quantity(name, config)
        for block in range(config.n_layer):
            for at in (0, len(guess.places.labels) - 1):
                expected = slope(model, pair, one.tap(block), at)
                assert guess.answers[block, at] - guess.corrupted == pytest.approx(
                    expected, rel=1e-4, abs=1e-6
                ), name


@pytest.mark.parametrize(
    "changes",
    [{"n_encoder_layer": 1, "padding": 0}, {"head": "mean", "n_label": 3, "mask": "full"}],
)
def test_other_kinds_of_models_have_a_preview_too(changes: dict[str, object]) -> None:
    config = tiny(**changes)
    model = scrambled(config).double()
    pair = pair_for(config)
    for name, guess in preview(
        model, pair, [one.name for one in quantities(config)], steps=1, checked=0
    ).items():
        expected = slope(model, pair, quantity(name, config).tap(0), 1)
        assert guess.answers[0, 1] - guess.corrupted == pytest.approx(
            expected, rel=1e-4, abs=1e-6
        ), name


def test_of_a_small_change_the_preview_says_what_patches_do() -> None:
    model = scrambled(tiny()).double()
    pair = replace(pair_for(tiny()), corrupted=(*pair_for(tiny()).clean[:-1], 5))
    with torch.no_grad():  # two tokens that are nearly the same
        model.embed.weight[5] = model.embed.weight[pair.clean[-1]] + 1e-4 * model.embed.weight[5]
    for name, guess in preview(
        model, pair, ["resid_pre", "attention.z", "mlp.out"], checked=0
    ).items():
        exact = patch(model, pair, name)
        assert (guess.clean, guess.corrupted) == pytest.approx((exact.clean, exact.corrupted))
        np.testing.assert_allclose(
            guess.answers - guess.corrupted, exact.answers - exact.corrupted, rtol=1e-2, atol=1e-9
        )
        assert correlation(exact.answers, guess.answers) > 0.999


# Each example takes 257 runs; the slope of one run is compared for more families above.
@tried(1, 4, families(activation="gelu", **NO_SHORTCUTS))
def test_integrated_gradients_add_up_to_the_whole_difference(config: Config) -> None:
    # Where a router chooses other experts the answer jumps, of which no slope says anything.
    assume(config.n_layer and config.mlp != "experts")
    model = scrambled(config).double()
    pair = pair_for(config)
    found = preview(model, pair, steps=257, checked=0)["resid_pre"]
    guessed = found.answers[0][~found.known[0]] - found.corrupted
    assert len(guessed) > 1, (
        "the prompts differ at several positions, or the sum would be a cell that is known"
    )
    assert guessed.sum() == pytest.approx(found.clean - found.corrupted, rel=1e-3, abs=1e-5)


def test_what_acts_on_corrupted_values_is_the_slope_over_the_corrupted_prompt_in_any_number_of_steps() -> (
    None
):
    model = scrambled(tiny())
    pair = pair_for(tiny())
    stays = ["attention.pattern", "attention.q", "attention.k"]
    one, many = (preview(model, pair, [*stays, "attention.z"], steps, 0) for steps in (1, 5))
    for name in stays:
        np.testing.assert_allclose(one[name].answers, many[name].answers, rtol=1e-5, atol=1e-7)
    assert not np.allclose(one["attention.z"].answers, many["attention.z"].answers)


@tried(4, 15, families(activation="gelu", **NO_SHORTCUTS))
def test_what_a_preview_calls_known_is_what_patches_do(config: Config) -> None:
    assume(config.n_layer)
    model = scrambled(config).double()
    pair = pair_for(config)
    pair = replace(
        pair,
        corrupted=(
            *pair.clean[:2],
            pair.corrupted[2] if pair.corrupted[2] != pair.clean[2] else 3,
            *pair.clean[3:],
        ),
    )
    names = [one.name for one in quantities(config)]
    for checked in (0, 5):
        for name, guess in preview(model, pair, names, checked=checked).items():
            exact = patch(model, pair, name)
            np.testing.assert_allclose(
                guess.answers[guess.known], exact.answers[guess.known], atol=1e-9, err_msg=name
            )
            assert guess.checked == min(checked, guess.checked + int((~guess.known).sum()))
    if config.padding is None and not config.n_encoder_layer:
        assert preview(model, pair, checked=0)["resid_pre"].answers[0, 2] == guess.clean


def test_a_preview_states_its_correlation_with_what_was_computed_and_is_trusted_from_a_certain_one_on() -> (
    None
):
    config = tiny(n_layer=4, n_head=6, d_model=24)
    model = scrambled(config).double()
    pair = pair_for(config)
    for name in ("attention.z", "attention.k", "mlp.out"):
        bare, found = (preview(model, pair, [name], checked=checked)[name] for checked in (0, 7))
        computed = found.known & ~bare.known
        exact = patch(model, pair, name).answers[computed]
        assert found.checked == computed.sum() == 7
        assert np.argmax(np.abs(bare.answers - bare.corrupted)) in np.flatnonzero(computed), (
            "the largest is among them"
        )
        assert found.correlation == pytest.approx(np.corrcoef(exact, bare.answers[computed])[0, 1])
        assert found.is_trusted == (found.correlation >= TRUSTED)
        assert f"{found.correlation:.2f}".replace("-", "−") in found.agreement
        assert not bare.is_trusted, "nothing was computed to check it"
    assert not replace(found, correlation=TRUSTED - 0.01).is_trusted
    assert replace(found, known=np.ones_like(found.known), correlation=math.nan).is_trusted


def test_a_correlation_is_that_of_numpy_and_none_where_nothing_differs() -> None:
    model = scrambled(tiny())
    pair = pair_for(tiny())
    exact, guess = (
        found.answers
        for found in (patch(model, pair), preview(model, pair, checked=0)["resid_pre"])
    )
    assert correlation(exact, guess) == pytest.approx(
        np.corrcoef(exact.ravel(), guess.ravel())[0, 1]
    )
    assert math.isnan(correlation(np.ones_like(guess), guess))


def test_the_parameters_get_no_gradient_and_stay_as_they_are() -> None:
    model = scrambled(tiny())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    preview(model, pair_for(tiny()), ["resid_pre", "attention.pattern"])
    assert all(
        parameter.grad is None and parameter.requires_grad for parameter in model.parameters()
    )
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_no_product_holds_what_only_the_derivative_of_a_weight_needs() -> None:
    model = scrambled(tiny())
    weights = list[Tensor]()
    model.blocks[0].mlp.down.register_forward_pre_hook(
        lambda part, _args: weights.append(part.weight)
    )  # type: ignore[union-attr]
    preview(model, pair_for(tiny()), checked=0)
    assert not weights[-1].requires_grad
    assert {one.data_ptr() for one in weights} == {model.blocks[0].mlp.down.weight.data_ptr()}, (
        "the numbers are not copied"
    )


def test_a_caller_that_computes_without_gradients_gets_the_same() -> None:
    model = scrambled(tiny())
    pair = pair_for(tiny())
    expected = preview(model, pair)["resid_pre"].answers
    with torch.inference_mode():
        np.testing.assert_array_equal(preview(model, pair)["resid_pre"].answers, expected)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_weights_that_are_kept_in_two_bytes_have_a_preview(precision: str) -> None:
    config = tiny(d_model=24, d_mlp=48)
    weights = {
        name: value.detach().bfloat16() for name, value in scrambled(config).named_parameters()
    }
    kept = place(scrambled(config), weights.items(), precision=precision)
    assert kept.blocks[0].mlp.up.weight.dtype == torch.bfloat16  # type: ignore[union-attr]
    whole = scrambled(config)
    whole.load_state_dict(weights, strict=False)
    pair = pair_for(config)
    for name, guess in preview(kept, pair, ["resid_pre", "attention.q"]).items():
        expected = preview(whole, pair, [name])[name]
        tolerance = 1e-4 if precision == "float32" else 0.2
        np.testing.assert_allclose(guess.answers, expected.answers, atol=tolerance)
