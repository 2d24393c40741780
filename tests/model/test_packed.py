"""Matrices at the bits of a file: the numbers are the file's, products are theirs but for rounding,
and rows can be reordered.
"""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from gptviz.model import packed as packed_module
from gptviz.model.packed import (
    AT_ONCE,
    GROUP,
    KERNEL,
    LARGEST_KEPT,
    WIDENED,
    FourBitProduct,
    Groups,
    Packed,
    bytes_of_number,
    fastest_product,
    looked_up_packed,
    times_exactly,
    times_packed,
)

ROUNDING = 2.0**-8  # of bfloat16: of a factor and of a sum at most half of it each


@dataclass(frozen=True)
class Held:
    """A matrix that is kept in this process."""

    groups: Groups
    bits: int
    kind: str = "held"

    @property
    def group(self) -> int:
        return self.groups.q.shape[2]

    @property
    def shape(self) -> tuple[int, int]:
        rows, groups, numbers = self.groups.q.shape
        return rows, groups * numbers

    def read_rows(self, rows: Tensor) -> Groups:
        return Groups(*(each[rows] for each in self.groups))

    def read_blocks(self, rows: Tensor) -> Tensor:
        raise NotImplementedError("no library multiplies these")

    def is_finite(self, rows: Tensor) -> bool:
        return bool(self.read_rows(rows).numbers().isfinite().all())


def held(rows: int, width: int, bits: int, group: int = GROUP, seed: int = 0) -> Held:
    """Random numbers of this many bits."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.randint(2**bits, (rows, width // group, group), generator=generator).to(torch.uint8)
    scale, offset = torch.randn(2, rows, width // group, 1, generator=generator)
    return Held(Groups(q, scale, offset * 2**bits / 4), bits)


def looped(matrix: Held) -> Tensor:
    """Its numbers, one after the other."""
    q, scale, offset = matrix.groups
    rows, width = matrix.shape
    numbers = torch.empty(rows, width)
    for row in range(rows):
        for place in range(width):
            group, within = divmod(place, q.shape[2])
            numbers[row, place] = (
                float(q[row, group, within]) * scale[row, group, 0] + offset[row, group, 0]
            )
    return numbers


def multiply_by(monkeypatch: pytest.MonkeyPatch, product: FourBitProduct) -> None:
    """Let matrices be multiplied in this way, whichever is faster on this machine."""
    monkeypatch.setattr(packed_module, "fastest_product", lambda width, group: product)


both_products = pytest.mark.parametrize("product", [KERNEL, WIDENED], ids=["kernel", "widened"])


def prepared(packed: Packed) -> Packed:
    packed.prepare(lambda shape, dtype: torch.empty(shape, dtype=dtype))
    return packed


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def is_near(product: Tensor, x: Tensor, numbers: Tensor, bias: Tensor | float = 0.0) -> bool:
    """Whether every number of x · Wᵀ + b is within the rounding, of which the lengths of a row and
    of x decide how much it is.
    """
    x = x.double()
    numbers = numbers.double()
    lengths = x.norm(dim=-1, keepdim=True) * numbers.norm(dim=-1)
    return bool(((product - x @ numbers.T - bias).abs() < 2 * ROUNDING * lengths).all())


# Rows that are no multiple of 16, as a stack of an odd number of heads has them.
@both_products
@pytest.mark.parametrize("rows", [1, 16, 50, 130])
@pytest.mark.parametrize(("bits", "group"), [(4, 32), (3, 32), (5, 32), (6, 32), (8, 32), (6, 16)])
def test_numbers_are_scale_times_q_plus_offset_and_products_are_within_the_rounding(
    bits: int, group: int, rows: int, product: FourBitProduct, monkeypatch: pytest.MonkeyPatch
) -> None:
    multiply_by(monkeypatch, product)
    width = 96 if group == GROUP else 128
    matrix = held(rows, width, bits, group)
    numbers = looped(matrix)
    packed = prepared(Packed([matrix]))
    torch.testing.assert_close(packed.numbers(), numbers, rtol=1e-6, atol=1e-5)
    x = drawn(2, 3, width)
    bias = drawn(rows)
    result = times_packed(x, packed, bias)
    assert result.dtype == torch.float32
    assert result.shape == (2, 3, rows)
    assert is_near(result, x, numbers, bias)
    torch.testing.assert_close(
        times_exactly(x, packed, bias), x @ numbers.T + bias, rtol=1e-4, atol=1e-3
    )


@both_products
def test_the_faster_of_two_products_is_taken_and_measured_once(
    product: FourBitProduct, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    calls = []

    def timed(each: FourBitProduct, seconds: float) -> FourBitProduct:
        def times(*arguments: Any) -> Tensor:
            calls.append(each)
            clock[0] += seconds
            return each.times(*arguments)

        return each._replace(times=times)

    made = {
        name: timed(each, 1.0 if each is product else 2.0)
        for name, each in {"KERNEL": KERNEL, "WIDENED": WIDENED}.items()
    }
    for name, each in made.items():
        monkeypatch.setattr(packed_module, name, each)
    monkeypatch.setattr(packed_module, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    # The function without what it kept for the process.
    monkeypatch.setattr(packed_module, "fastest_product", cache(fastest_product.__wrapped__))
    for _ in range(2):
        assert (
            packed_module.fastest_product(96, GROUP)
            is made["KERNEL" if product is KERNEL else "WIDENED"]
        )
        assert len(calls) == 10


def test_rows_can_be_reordered_stacked_cut_and_turned_and_stay_packed() -> None:
    one = held(20, 64, 4)
    other = held(30, 64, 8, seed=1)
    a = looped(one)
    b = looped(other)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    stacked = torch.cat((Packed([one])[order], Packed([other])[5:]))
    numbers = torch.cat((a[order], b[5:]))
    assert isinstance(stacked, Packed)
    assert stacked.kinds == ["held"]
    assert torch.equal(stacked.numbers(), numbers)
    x = drawn(4, 64)
    assert is_near(times_packed(x, prepared(stacked), None), x, numbers)
    for packed, plain in (
        (stacked.T, numbers.T),
        (stacked.T.T, numbers),
        (stacked.transpose(0, 1), numbers.T),
        (stacked.split([10, 35])[1], numbers[10:]),
        (stacked.split(10)[4], numbers[40:]),
        (stacked.detach(), numbers),
    ):
        assert isinstance(packed, Packed)
        assert packed.shape == plain.shape
        assert torch.equal(packed.numbers(), plain)


def test_rows_that_are_multiplied_in_three_ways_stand_below_each_other() -> None:
    held_here = [
        held(16, 128, 4),
        held(16, 128, 8, seed=1),
        held(16, 128, 6, 16, seed=2),
        held(16, 128, 8, seed=3),
    ]
    packed = prepared(torch.cat([Packed([each]) for each in held_here]))
    x = drawn(4, 128)
    assert is_near(
        times_packed(x, packed, None), x, torch.cat([looped(each) for each in held_here])
    )


def test_laying_out_opening_and_multiplying_import_nothing_that_pytorch_has_for_compiling_and_distributed_tensors() -> (
    None
):
    code = (
        "import sys, torch; from tests.model.test_packed import held, prepared, Packed, "
        "times_packed;"
        "from gptviz.model import PRESETS, change_config, parameter_count;"
        "from gptviz.model.parts.positions import POSITIONS;"
        "kinds = [change_config(PRESETS['ladder'], positions=kind) for kind in POSITIONS];"
        "[parameter_count(config) for config in (*PRESETS.values(), *kinds)];"
        "assert 'torch._dynamo' not in sys.modules;"
        "packed = prepared(torch.cat([Packed([held(16, 64, 4)])[torch.arange(16)], "
        "Packed([held(16, 64, 8)])[3:]]));"
        "weight = torch.nn.Parameter(packed, requires_grad=False); times_packed(torch.ones(2, "
        "64), weight, None);"
        "print('torch.distributed.tensor' in sys.modules, 'sympy' in sys.modules); weight + 1; "
        "print('sympy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True"], (
        "the last one says whether PyTorch still needs this"
    )


def test_every_other_operation_gets_its_numbers() -> None:
    matrix = held(20, 64, 4)
    packed = Packed([matrix])
    numbers = looped(matrix)
    ids = torch.tensor([[3, 3], [0, 19]])
    for found, expected in (
        (packed * 2, numbers * 2),
        (packed[3], numbers[3]),
        (packed[:, 1:], numbers[:, 1:]),
        (packed.T @ numbers, numbers.T @ numbers),
        (packed.double().float(), numbers),
        (packed.clone(), numbers),
        (torch.from_numpy(packed.numpy()), numbers),
        (torch.nn.functional.embedding(ids, packed), numbers[ids]),
        (looked_up_packed(ids, packed), numbers[ids]),
        (torch.cat((packed, numbers)), torch.cat((numbers, numbers))),
    ):
        assert type(found) is Tensor
        assert torch.equal(found, expected)


@pytest.mark.parametrize("rows", [40, LARGEST_KEPT // 4 // 1024 + 40], ids=["kept", "in pieces"])
def test_a_gradient_goes_back_to_the_factor_through_the_numbers_of_the_file(rows: int) -> None:
    matrix = held(rows, 1024 if rows > 40 else 64, 4)
    packed = prepared(Packed([matrix]))
    numbers = packed.numbers()
    x = drawn(3, numbers.shape[1]).requires_grad_()
    down = drawn(3, rows)
    times_packed(x, packed, None).backward(down)
    torch.testing.assert_close(x.grad, down @ numbers, rtol=1e-3, atol=1e-1)


def test_a_matrix_larger_than_what_is_brought_back_at_once_is_whole() -> None:
    width = 256
    matrix = held(2 * AT_ONCE // width + 7, width, 4)
    packed = prepared(Packed([matrix]))
    assert len(packed.pieces()) == 3
    assert torch.equal(packed.numbers(), matrix.groups.numbers())
    x = drawn(2, width)
    assert is_near(times_packed(x, packed, None), x, packed.numbers())


def test_what_it_takes_in_memory_is_what_was_foretold() -> None:
    for bits, group in ((4, 32), (8, 32), (6, 16)):
        packed = prepared(Packed([held(64, 256, bits, group)]))
        assert packed.memory == bytes_of_number(bits, group) * packed.numel()


def test_its_numbers_cannot_be_changed() -> None:
    packed = Packed([held(20, 64, 4)])
    changes: list[Any] = [
        lambda: packed.mul_(2),
        lambda: packed.zero_(),
        lambda: packed.__setitem__(0, 1.0),
    ]
    for change in changes:
        with pytest.raises(
            TypeError, match="cannot be changed: open the model with precision float32"
        ):
            change()
    assert copy.deepcopy(packed) is packed


def test_a_number_that_is_none_is_found() -> None:
    matrix = held(20, 64, 4)
    assert Packed([matrix]).is_finite()
    matrix.groups.scale[7, 1] = float("nan")
    assert not Packed([matrix]).is_finite()


def test_it_can_be_used_inside_and_outside_of_inference_mode() -> None:
    matrix = held(20, 64, 4)
    with torch.inference_mode():
        packed = torch.nn.Parameter(prepared(Packed([matrix])), requires_grad=False)
        inside = times_packed(torch.ones(1, 64), packed, None)
    assert type(packed) is Packed
    assert isinstance(packed, torch.nn.Parameter)
    assert torch.equal(times_packed(torch.ones(1, 64), packed.detach(), None), inside)
    x = torch.ones(1, 64, requires_grad=True)
    (x @ packed.T).sum().backward()
    torch.testing.assert_close(x.grad, looped(matrix).sum(0)[None], rtol=1e-4, atol=1e-3)
