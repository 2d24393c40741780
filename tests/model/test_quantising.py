"""Quantisers: rounding to nearest held to a loop and to its bounds, GGUF's kinds to the `gguf`
library, twins to a copy.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from torch import Tensor

from gptviz.model import Config
from gptviz.model.edited import with_weights
from gptviz.model.quantising import (
    BITS,
    GGUF_KINDS,
    GROUPS,
    OfGGUF,
    RoundToNearest,
    matrices,
    matrix_names,
    quantiser,
)
from tests.examples import tried
from tests.tiny import configs, families, scrambled, some_ids, tiny


def random(rows: int, width: int, seed: int = 0) -> Tensor:
    """A matrix whose rows have very different sizes."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.logspace(-6, 3, rows)[:, None]
    return sizes * torch.randn(rows, width, generator=generator)


def in_a_loop(
    weight: Tensor, bits: int, group: int | None
) -> tuple[list[list[float]], list[list[float]]]:
    """The rounded numbers, and the scale of each, number by number in Python."""
    levels = 2 ** (bits - 1) - 1
    values = []
    scales = []
    for row in weight.tolist():
        values.append([])
        scales.append([])
        each = group or len(row)
        for begin in range(0, len(row), each):
            some = row[begin : begin + each]
            scale = float(torch.tensor(max(map(abs, some)) / levels).bfloat16())
            for number in some:
                values[-1].append(scale * round(number / scale) if scale else 0.0)
                scales[-1].append(scale)
    return values, scales


@pytest.mark.parametrize("group", [None, *GROUPS])
@pytest.mark.parametrize("bits", BITS)
def test_rounding_to_nearest_is_that_of_a_loop_and_no_number_moves_by_more_than_half_a_step(
    bits: int, group: int | None
) -> None:
    weight = random(5, 150)  # no group divides 150
    found = RoundToNearest(bits, group).brought_back(weight)
    values, scales = in_a_loop(weight, bits, group)
    expected = torch.tensor(values)
    step = torch.tensor(scales)
    # A number in the middle of two levels may go either way, by the rounding of the division.
    torch.testing.assert_close(found, expected, atol=0, rtol=1e-5)
    assert (abs(found - weight) <= step * (0.5 + 1e-5)).all()
    assert (abs(found - weight) > step * 0.4).any()


def test_zero_stays_zero_and_a_constant_row_stays_as_it_is() -> None:
    weight = torch.tensor([[0.0] * 40, [0.5] * 40, [-2.0] * 40, [1e-44] * 40, [3e38] * 40])
    for name in ("2bit.row", "8bit.g32", "4bit.g32"):
        found = quantiser(name).brought_back(weight)
        assert found.isfinite().all()
        # a scale has the 8 binary digits of bfloat16
        torch.testing.assert_close(found[:3], weight[:3], atol=0, rtol=2**-8)
        torch.testing.assert_close(found[4], weight[4], atol=0, rtol=0.01)
        assert not found[0].any()


@pytest.mark.parametrize("kind", GGUF_KINDS)
def test_the_kinds_of_gguf_are_those_of_its_library(kind: str) -> None:
    weight = random(37, 96)
    number = GGMLQuantizationType[kind]
    stored = gguf.quantize(weight.numpy(), number)
    kept = OfGGUF(kind)
    assert np.array_equal(kept.brought_back(weight).numpy(), gguf.dequantize(stored, number))
    assert kept.size(37, 96) == stored.nbytes
    narrow = random(4, 20)
    assert torch.equal(kept.brought_back(narrow), narrow.half().float())
    assert kept.size(4, 20) == 2 * 80


@pytest.mark.parametrize("group", [None, *GROUPS])
@pytest.mark.parametrize("bits", BITS)
def test_the_size_counts_every_number_and_every_scale(bits: int, group: int | None) -> None:
    rows = 7
    width = 150
    scales = sum(1 for _ in range(rows) for _ in range(0, width, group or width))
    assert (
        RoundToNearest(bits, group).size(rows, width)
        == math.ceil(rows * width * bits / 8) + 2 * scales
    )


@pytest.mark.parametrize("name", ["4bit.row", "Q8_0"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_matrix_with_numbers_that_are_not_finite_is_refused(name: str, bad: float) -> None:
    weight = torch.ones(2, 32)
    weight[1, 5] = bad
    with pytest.raises(ValueError, match="not finite"):
        quantiser(name).brought_back(weight)


@pytest.mark.parametrize("width", [20, 64])
@pytest.mark.parametrize("kind", GGUF_KINDS)
def test_numbers_beyond_float16_are_refused_by_the_kinds_of_gguf_and_not_by_ours(
    kind: str, width: int
) -> None:
    weight = torch.full((2, width), -1e8)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="too large for float16"):
        quantiser(kind).brought_back(weight)
    torch.testing.assert_close(
        quantiser("4bit.g32").brought_back(weight), weight, atol=0, rtol=0.01
    )


def test_a_large_matrix_is_quantised_in_parts_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = random(50, 96)
    whole = {name: quantiser(name).brought_back(weight) for name in ("3bit.g64", "Q5_1")}
    monkeypatch.setattr("gptviz.model.quantising.AT_ONCE", 96 * 7)
    assert all(
        torch.equal(quantiser(name).brought_back(weight), found) for name, found in whole.items()
    )


@pytest.mark.parametrize(
    "name",
    [f"{bits}bit.{scales}" for bits in BITS for scales in ("row", "g32", "g64", "g128")]
    + [*GGUF_KINDS],
)
def test_a_quantiser_is_found_by_its_name(name: str) -> None:
    assert quantiser(name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "7bit.row",
        "1bit.row",
        "4bit",
        "4bit.g16",
        "4bit.g032",
        "Q4_K",
        "F16",
        "q4_0",
        "4bit.row ",
    ],
)
def test_another_name_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=r"4bit\.g32 .*Q4_0"):
        quantiser(name)


KINDS: list[dict[str, Any]] = [
    {},
    {"tied": True},
    {"n_encoder_layer": 2, "padding": 0},
    {"positions": "learned", "mlp": "gated"},
]


@tried(20, 200, families() | configs(n_encoder_layer=1))
def test_the_matrices_of_a_config_are_those_of_its_models(config: Config) -> None:
    model = scrambled(config)
    assert matrix_names(config) == tuple(matrices(model))
    two = {name for name, one in model.named_parameters() if one.ndim == 2}
    assert set(matrices(model)) == {
        name for name in two if "positions" not in name and "qk_norm" not in name
    }


@pytest.mark.parametrize("changes", KINDS)
def test_a_twin_with_other_weights_is_a_copy_with_them_and_the_model_stays(
    changes: dict[str, Any],
) -> None:
    model = scrambled(tiny(**changes))
    ids = some_ids().clamp(min=1)
    source = some_ids(5, seed=3).clamp(min=1) if model.config.n_encoder_layer else None
    fresh = {name: quantiser("3bit.row").brought_back(one) for name, one in matrices(model).items()}
    before = deepcopy(model.state_dict())
    copied = deepcopy(model)
    with torch.no_grad():
        for name, value in fresh.items():
            dict(copied.named_parameters())[name].copy_(value)
    twin = with_weights(model, fresh)
    with torch.no_grad():
        torch.testing.assert_close(twin(ids, source), copied(ids, source))
        assert not torch.allclose(twin(ids, source), model(ids, source))
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    # What is not replaced is shared, and a tied matrix is still one.
    own = dict(model.named_parameters())
    theirs = dict(twin.named_parameters())
    assert list(own) == list(theirs)
    assert {name for name, one in theirs.items() if one is not own[name]} == set(fresh)
