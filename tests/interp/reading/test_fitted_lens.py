"""Lenses that are fitted: against exact matrices, finite differences, the logit lens, and a map
that is known.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from gptviz.interp.reading import fitted_lens as module
from gptviz.interp.reading.fitted_lens import FittedLens, fit, guesses, jacobian
from gptviz.interp.reading.layers import layers
from gptviz.interp.reading.lens import lens
from gptviz.interp.trace import run
from gptviz.model import Config, Transformer
from gptviz.settings.kinds import LensKind
from tests.tiny import families, scrambled, some_ids, tiny


def rows_of(count: int = 4, length: int = 8) -> list[torch.Tensor]:
    return list(some_ids(length, batch=count, vocab=11))


def unchanged(config: Config) -> FittedLens:
    """A lens that leaves the stream as it is."""
    n_layer = len(layers(config))
    size = config.d_model
    return FittedLens(
        tuple(range(n_layer)),
        torch.eye(size).repeat(n_layer, 1, 1),
        torch.zeros(n_layer, size),
        np.zeros((2, 2, n_layer)),
    )


@torch.no_grad()
def linear() -> tuple[Transformer, list[torch.Tensor]]:
    """A model whose attention adds nothing and whose MLP is affine, since its ReLUs are always
    open; the matrix of each MLP.
    """
    model = scrambled(
        tiny(residual="plain", final_norm=False, activation="relu", mlp_bias=True)
    ).double()
    for name, weight in model.named_parameters():
        if "attention.output" in name:
            weight.zero_()
    for block in model.blocks:
        block.mlp.up.bias.fill_(100)
        # the stream stays small
        block.mlp.down.bias.copy_(-block.mlp.down.weight @ block.mlp.up.bias)
    return model, [block.mlp.down.weight @ block.mlp.up.weight for block in model.blocks]


def test_of_a_linear_model_the_jacobian_is_the_product_of_its_matrices() -> None:
    model, (first, second) = linear()
    one = torch.eye(12, dtype=torch.float64)
    found, biases = jacobian(model, rows_of())
    # attention changes nothing
    after = [(one + second) @ (one + first)] * 2 + [one + second] * 2 + [one]
    torch.testing.assert_close(found, torch.stack(after))
    assert not biases.any()


def test_a_jacobian_is_the_mean_of_finite_differences() -> None:
    model = scrambled(tiny(), std=0.2).double()
    rows = rows_of(2)
    ids = torch.stack(rows)
    step = 1e-5
    tap = "blocks.0.resid_mid"
    expected = torch.zeros(12, 12, dtype=torch.float64)
    for place in range(2, 8):  # the first quarter is left out
        for direction in range(12):
            ends = []
            for sign in (1, -1):

                def moved(
                    value: torch.Tensor,
                    by: float = sign * step,
                    at: tuple[int, int] = (place, direction),
                ) -> torch.Tensor:
                    value[:, at[0], at[1]] += by
                    return value

                ends.append(
                    run(model, ids, ["blocks.1.resid_post"], edits={tap: moved})[
                        "blocks.1.resid_post"
                    ]
                    .sum(1)
                    .mean(0)
                )
            expected[:, direction] += (ends[0] - ends[1]) / (2 * step) / 6
    torch.testing.assert_close(jacobian(model, rows)[0][1], expected, rtol=1e-6, atol=1e-8)


def test_rows_of_several_lengths_count_by_their_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEFT_OUT", 0)
    model, (long, short) = scrambled(tiny(), std=0.2).double(), (rows_of(2)[0], rows_of(2)[1][:5])
    both, one, other = (jacobian(model, rows)[0] for rows in ([long, short], [long], [short]))
    torch.testing.assert_close(both, (8 * one + 5 * other) / 13)


@settings(max_examples=15)
@given(families(mask="causal"))
def test_a_map_that_changes_nothing_is_the_logit_lens_to_the_bit(config: Config) -> None:
    model = scrambled(config)
    ids = rows_of(1)[0].tolist()
    plain = lens(model, ids)
    read = lens(model, ids, fitted=unchanged(config))
    assert torch.equal(plain.stream, read.stream)
    np.testing.assert_array_equal(plain.probability, read.probability)
    np.testing.assert_array_equal(plain.top, read.top)


@pytest.mark.parametrize("kind", ["jacobian", "tuned"])
def test_the_last_layer_is_the_model(kind: LensKind) -> None:
    model = scrambled(tiny())
    rows = rows_of(12)
    fitted = fit(model, rows, kind)
    plain, read = (lens(model, rows[0].tolist(), fitted=one, top=11) for one in (None, fitted))
    assert torch.equal(plain.stream[-1], read.stream[-1])
    assert read.final_error == plain.final_error
    assert not torch.equal(plain.stream[0], read.stream[0])
    np.testing.assert_array_equal(fitted.measured[:, :, -1], [[0, 1], [0, 1]])


def test_the_tuned_lens_of_an_affine_model_foretells_its_guess() -> None:
    model = linear()[0].float()
    found = fit(model, rows_of(400), "tuned").measured
    assert (found[1, 0, :4] < 0.5 * found[0, 0, :4]).all()
    assert (found[1, 1, :4] > found[0, 1, :4]).all()


@torch.no_grad()
def test_what_is_measured_is_that_of_a_loop_over_tokens() -> None:
    model = scrambled(tiny())
    rows = rows_of(10)
    fitted = fit(model, rows, "jacobian")
    found = np.zeros((2, 5))
    seen = 0
    for row in rows[8:]:  # the last fifth
        trace = run(model, row[None])
        for place in range(len(row)):
            own = trace["logits"][0, place].log_softmax(-1)
            for layer, where in enumerate(layers(model.config)):
                moved = fitted.matrices[layer] @ trace[where.tap][0, place]
                other = guesses(model, moved[None])[0]
                found[:, layer] += (
                    float((own.exp() * (own - other)).sum()),
                    float(own.argmax() == other.argmax()),
                )
            seen += 1
    np.testing.assert_allclose(fitted.measured[1], found / seen, atol=1e-5)


def test_what_cannot_be_fitted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = scrambled(tiny())
    with pytest.raises(ValueError, match="'logit'"):
        fit(model, rows_of(), "logit")
    with pytest.raises(ValueError, match="decoder with blocks"):
        fit(scrambled(tiny(n_layer=0)), rows_of(), "tuned")
    with pytest.raises(ValueError, match="too short"):
        fit(model, [torch.tensor([1])], "tuned")
    monkeypatch.setattr(module, "MOST_BYTES", 1_000)
    with pytest.raises(ValueError, match="use the logit lens"):
        fit(model, rows_of(), "jacobian")


def test_a_lens_that_is_worse_than_the_logit_lens_is_not_offered_as_better() -> None:
    model = scrambled(tiny())
    distances = np.array([[[0.5, 0.4, 0.3, 0.2, 0.0]] * 2, [[0.4, 0.4, 0.35, 0.1, 0.0]] * 2])
    lens = replace(unchanged(model.config), measured=distances)
    assert lens.compare_lenses(model, "tuned") == (
        "After 1 of 4 layers (MLP 0) the tuned lens is further from the model's guess than "
        "the logit lens: there the logit lens shows it better."
    )
    worse = replace(lens, measured=distances[::-1] + np.array([0.01, 0.0])[:, None, None])
    assert "After every layer the Jacobian lens is further" not in worse.compare_lenses(
        model, "jacobian"
    )
    worst = replace(lens, measured=np.stack([distances[1], distances[1] + 0.1]))
    assert "After every layer the Jacobian lens is further" in worst.compare_lenses(
        model, "jacobian"
    )
    best = replace(lens, measured=np.stack([distances[1] + 0.1, distances[1]]))
    assert best.compare_lenses(model, "tuned").startswith(
        "After every layer the tuned lens is nearer"
    )


def test_copies_of_a_row_and_beginnings_of_it_are_not_held_out() -> None:
    model = scrambled(tiny())
    rows = rows_of(10)
    once = fit(model, rows, "jacobian")
    twice = fit(model, [*rows, *rows], "jacobian")
    np.testing.assert_array_equal(once.measured, twice.measured)
    with pytest.raises(ValueError, match="repeats itself"):
        fit(model, [rows[0], rows[0][:2]], "tuned")


def test_a_text_is_read_in_groups_of_layers_where_memory_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scrambled(tiny())
    rows = rows_of(12)
    whole = fit(model, rows, "tuned")
    # the streams of two layers, beside the last one
    monkeypatch.setattr(module, "MOST_BYTES", 3 * 80 * 12 * 4)
    parts = fit(model, rows, "tuned")
    torch.testing.assert_close(whole.matrices, parts.matrices)
    np.testing.assert_allclose(whole.measured, parts.measured, atol=1e-6)


def test_the_nearest_map_of_an_affine_model_is_its_own() -> None:
    _, (first, second) = linear()
    x = torch.randn(400, 12, dtype=torch.float64)
    one = torch.eye(12, dtype=torch.float64)
    after = x @ ((one + second) @ (one + first)).T + 3
    matrix, bias = module._nearest_map(x, after)
    torch.testing.assert_close(x @ matrix.T + bias, after, atol=0.02, rtol=0)
    # few vectors leave the map as it is where they say nothing
    matrix, _ = module._nearest_map(x[:3], after[:3])
    across = torch.linalg.svd(x[:3] - x[:3].mean(0)).Vh[2:]
    torch.testing.assert_close(matrix @ across.T, across.T, atol=1e-4, rtol=0)


def test_with_few_steps_a_map_begins_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    model = linear()[0].float()
    monkeypatch.setattr(module, "WORK", 1.0)
    near = fit(model, rows_of(400), "tuned").measured[1, 0]
    monkeypatch.setattr(module, "_nearest_map", lambda x, y: (torch.eye(12), torch.zeros(12)))
    far = fit(model, rows_of(400), "tuned").measured[1, 0]
    assert (near[:4] < 0.5 * far[:4]).all()
