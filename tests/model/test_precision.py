"""Weights in two bytes a number: half the memory, nearly the same numbers, and everything between
in float32.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.interp.trace import run
from gptviz.model import Transformer
from gptviz.model.builder import lay_out
from gptviz.model.fast import HAS_LARGE_PAGES, LINE
from gptviz.model.precision import (
    AT_ONCE,
    PRECISIONS,
    are_finite,
    describe_types,
    in_float32,
    place,
)
from tests.tiny import scrambled, some_ids, tiny

WIDE: dict[str, Any] = {
    "d_model": 64,
    "d_mlp": 256,
    "n_head": 4,
    "n_layer": 3,
    "context_length": 16,
}
CONFIGS = {
    "tied": tiny(**WIDE, tied=True),
    "grouped, gated, rotary": tiny(
        **WIDE, tied=False, n_kv_head=2, mlp="gated", positions="rotary", norm="rmsnorm"
    ),
    "relative, normalised queries": tiny(**WIDE, positions="relative", qk_norm="shared"),
    "encoder": tiny(**WIDE, n_encoder_layer=2, padding=0),
    "mean of labels": tiny(**WIDE, head="mean", n_label=3, mask="full", tied=False),
}


def opened(
    model: Transformer, precision: str | None, stored: torch.dtype = torch.float32
) -> Transformer:
    """The model as if it came from a file whose numbers have this type."""
    weights = (
        (name, parameter.detach().to(stored)) for name, parameter in model.named_parameters()
    )
    return place(lay_out(model.config), weights, "cpu", precision).eval()


def matrices(model: Transformer) -> list[torch.nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.dtype != torch.float32]


def outputs(model: Transformer) -> torch.Tensor:
    ids = some_ids(12, vocab=model.config.vocab_size).clamp(min=1)
    with torch.inference_mode():
        result: torch.Tensor = model(ids, ids if model.encoder else None)
    return result


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_logits_in_two_bytes_are_within_the_rounding_of_those_in_float32(
    name: str, precision: str
) -> None:
    model = scrambled(CONFIGS[name])
    short = opened(model, precision)
    exact = outputs(opened(model, None))
    rounded = outputs(short)
    assert rounded.dtype == torch.float32
    # Every product rounds its factors and itself by at most half of this; errors of this size add
    # up on the way.
    unit = 2.0**-8 if precision == "bfloat16" else 2.0**-11
    spread = (exact - exact.mean(-1, keepdim=True)).square().mean().sqrt()
    error = (rounded - exact).square().mean().sqrt()
    assert 0 < error < 8 * unit * spread
    assert len(matrices(short)) > 5
    assert {parameter.element_size() for parameter in matrices(short)} == {2}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_everything_that_is_tapped_is_float32_and_rows_of_patterns_sum_to_one(
    precision: str, stored: torch.dtype
) -> None:
    model = opened(scrambled(CONFIGS["grouped, gated, rotary"]), precision, stored)
    trace = run(model, some_ids(12, vocab=model.config.vocab_size))
    assert {value.dtype for value in trace.values()} == {torch.float32}
    for name in trace:
        if name.endswith("pattern"):
            torch.testing.assert_close(
                trace[name].sum(-1), torch.ones_like(trace[name][..., 0]), rtol=0, atol=1e-6
            )
    torch.testing.assert_close(
        trace["logits"].softmax(-1).sum(-1),
        torch.ones(trace["logits"].shape[:2]),
        rtol=0,
        atol=1e-5,
    )


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16])
def test_short_weights_stay_short_in_memory_and_give_the_numbers_of_float32(
    stored: torch.dtype,
) -> None:
    model = scrambled(CONFIGS["tied"])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(stored))
    short = opened(model, "float32", stored)
    torch.testing.assert_close(outputs(short), outputs(model), rtol=1e-5, atol=1e-5)
    assert describe_types(short) == f"{str(stored).removeprefix('torch.')}, multiplied in float32"
    assert short.head.unembed.weight is short.embed.weight
    kept = {
        name: parameter.nbytes
        for name, parameter in short.named_parameters()
        if parameter.ndim == 2
    }
    whole = {
        name: parameter.nbytes
        for name, parameter in model.named_parameters()
        if parameter.ndim == 2
    }
    assert {name for name in kept if kept[name] != whole[name] / 2} <= {"positions.table.weight"}


def test_a_model_that_is_to_be_trained_is_float32_however_it_is_stored() -> None:
    model = opened(scrambled(CONFIGS["tied"]), None, torch.bfloat16)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert all(parameter.is_contiguous() for parameter in model.parameters())


def test_a_matrix_that_lies_turned_in_memory_has_the_same_shape_numbers_and_gradients() -> None:
    model = scrambled(CONFIGS["grouped, gated, rotary"])
    turned = opened(model, "stored")
    assert not turned.blocks[0].mlp.up.weight.is_contiguous()
    for (name, theirs), mine in zip(turned.named_parameters(), model.parameters(), strict=True):
        assert torch.equal(theirs, mine), name
    ids = some_ids(12, vocab=model.config.vocab_size)
    for one in (model, turned):
        one(ids).logsumexp(-1).sum().backward()
    for theirs, mine in zip(turned.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(theirs.grad, mine.grad, rtol=1e-4, atol=1e-4)


def test_a_large_matrix_is_brought_to_float32_in_slices_that_give_the_whole_product() -> None:
    weight = torch.randn(5, 1 + AT_ONCE // 2).to(torch.bfloat16)
    x = torch.randn(2, 3, weight.shape[1])
    bias = torch.randn(5)
    torch.testing.assert_close(
        in_float32(x, weight, bias), x @ weight.float().T + bias, rtol=1e-4, atol=1e-2
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_one_number_that_is_none_is_found_among_many(value: float, dtype: torch.dtype) -> None:
    tensor = torch.randn(7, 11).to(dtype)
    assert are_finite(tensor)
    assert are_finite(torch.full((2,), torch.finfo(dtype).max, dtype=dtype))
    tensor[3, 4] = value
    assert not are_finite(tensor)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_with_its_cache_a_model_in_any_precision_writes_what_it_writes_without(
    precision: str,
) -> None:
    model = opened(scrambled(CONFIGS["grouped, gated, rotary"]), precision)
    texts = []
    for use_cache in (True, False):
        grown = Generation(
            model,
            some_ids(3, 1, model.config.vocab_size)[0],
            Sampling(temperature=0),
            use_cache=use_cache,
        )
        for _ in range(6):
            next(grown)
        texts.append(grown.ids)
    assert torch.equal(*texts)


def test_a_product_with_a_short_matrix_has_the_gradient_of_a_long_one() -> None:
    weight = torch.randn(7, 5, dtype=torch.bfloat16)
    x = torch.randn(2, 3, 5, requires_grad=True)
    found = in_float32(x, weight, None)
    expected = x @ weight.float().T
    assert torch.allclose(found, expected)
    upstream = torch.randn(2, 3, 7)
    (short,) = torch.autograd.grad(found, x, upstream)
    (long,) = torch.autograd.grad(expected, x, upstream)
    assert torch.allclose(short, long, atol=1e-5)


def test_an_open_model_takes_one_small_piece_of_memory_more_than_its_weights_at_most() -> None:
    model = opened(scrambled(CONFIGS["tied"]), "stored")
    places = sorted((parameter.data_ptr(), parameter.nbytes) for parameter in model.parameters())
    (first, _), (last, size) = places[0], places[-1]
    if HAS_LARGE_PAGES:
        assert last + size - first <= sum(bytes_ + LINE for _, bytes_ in places)
