"""Matrices that stay in memory at the bits of their file, and are multiplied so.

A file of 4 to 8 bits a number keeps a matrix in small groups: in a group a number is scale · q +
offset, with a whole number q. `Packed` is such a matrix as a tensor. A product with it is computed
by PyTorch's kernel for 4-bit weights, which reads an eighth of the bytes of float32; where that
kernel is slow, some rows at a time become float32 (`fastest_product`), and where the library of
`raw_blocks` is installed and faster, it multiplies. Whoever asks for the numbers of a matrix gets
them in float32, brought back from the file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from threading import Condition, Lock
from typing import Any, NamedTuple, Protocol

import torch
from cachetools import cached
from torch import Tensor
from torch.nn import functional as F

from gptviz.machine import memory
from gptviz.machine.byte_cache import byte_cache
from gptviz.machine.cores import sharing

from .fast import Arena, product
from .raw_blocks import FURTHEST, MANY, Product, furthest, multiplies, multiply

# What the kernel is made for: numbers of a group, and rows that it handles together (a matrix has a
# multiple of the smaller one). Smaller groups of a file become larger ones, whose scales take
# little memory.
GROUP = 32
REGROUPED = 128
ROWS = 64
LEAST_ROWS = 16
# How many rows of a matrix are multiplied to find out which way is faster; and how much more time
# one may take with many vectors before the same rows are in memory a second time.
ROWS_TIMED = 4 * ROWS
SLOWER = 1.1
# Numbers that are brought back to float32 at a time: few enough to stay in a processor's own
# memory.
AT_ONCE = 2**18
# Matrices that were brought back last are kept, up to so many bytes together and in each: many
# views ask for one again and again.
MOST_KEPT = 64 * 2**20
LARGEST_KEPT = 16 * 2**20
# From 5 to 8 bits a number is split in two of 4 bits, of which the upper one counts 16 times.
UPPER = 16
FIXED = (
    "this matrix stays as its file has it, and cannot be changed: open the model with precision "
    "float32"
)


class Groups(NamedTuple):
    """Rows of a matrix as a file keeps them: a number is scale · q + offset."""

    q: Tensor  #: [rows, groups, numbers of a group], whole numbers from 0 on, as uint8
    scale: Tensor  #: [rows, groups, 1], float32
    offset: Tensor  #: [rows, groups, 1], float32

    def numbers(self) -> Tensor:
        """The rows in float32: [rows, in]."""
        return (self.q * self.scale).add_(self.offset).flatten(1)


class StoredRows(Protocol):
    """A matrix in a file."""

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows, and the numbers of a row, which are a multiple of `GROUP`."""

    @property
    def kind(self) -> str:
        """What its format calls this way to keep numbers."""

    @property
    def bits(self) -> int:
        """The bits of a whole number `q`: 8 at most."""

    @property
    def group(self) -> int:
        """The numbers of a group: `GROUP` at most."""

    def read_rows(self, rows: Tensor) -> Groups:
        """Some rows, by their numbers [n]; an OSError if the file cannot be read any more."""

    def read_blocks(self, rows: Tensor) -> Tensor:
        """The bytes of some rows, [n, bytes of a row]; raises as `read_rows`."""

    def is_finite(self, rows: Tensor) -> bool:
        """Whether all numbers of some rows are; reads and raises as `read_rows`."""


Allocate = Callable[[tuple[int, ...], torch.dtype], Tensor]


class Packed(Tensor):
    """A matrix [out, in] whose rows are rows of matrices in a file. Its numbers are fixed.

    Row orders, stacks and slices of rows of it are such matrices again. All other operations get
    its numbers in float32.
    """

    stored: tuple[StoredRows, ...]  #: the matrices of the file
    of: Tensor  #: [out], for each row the one that it is of
    row: Tensor  #: [out], which row it is there
    turned: bool  #: whether this is the transpose, [in, out]
    parts: tuple[Part | BlockPart, ...] | None
    _own: object

    @staticmethod
    def __new__(
        cls,
        stored: Sequence[StoredRows],
        of: Tensor | None = None,
        row: Tensor | None = None,
        *,
        turned: bool = False,
    ) -> Packed:
        """Rows of these matrices; by default all rows of the first."""
        row = torch.arange(stored[0].shape[0]) if row is None else row
        shape = len(row), stored[0].shape[1]
        with torch.inference_mode(False):  # a tensor of that mode can have no alias outside of it
            packed: Packed = Tensor._make_wrapper_subclass(
                cls, shape[::-1] if turned else shape, dtype=torch.float32
            )
        packed.stored = tuple(stored)
        packed.row = row
        packed.turned = turned
        if of is None:
            packed.of = torch.zeros(len(row), dtype=torch.int64)
        else:
            packed.of = of
        packed.parts = None
        packed._own = object()
        return packed

    # Tests and messages show a tensor: this one by what it is, and not by its numbers.
    def __repr__(self) -> str:  # type: ignore[override]
        return f"Packed({tuple(self.shape)}, {' and '.join(self.kinds)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Packed:
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(FIXED)

    def float(self) -> Tensor:
        """Its numbers in a tensor that is nothing but numbers."""
        return self.numbers()

    def numpy(self, *, force: bool = False) -> Any:
        """As `Tensor.numpy`."""
        return self.numbers().numpy()

    @property
    def kinds(self) -> list[str]:
        """What its format calls the ways in which its numbers are kept."""
        return sorted({stored.kind for stored in self.stored})

    @property
    def memory(self) -> int:
        """The bytes that it takes in memory."""
        return sum(part.memory for part in self.parts or ())

    def rows(self, index: Tensor | slice) -> Packed:
        """Some of its rows, or all in another order; `index` is of the rows, not of a
        transpose's.
        """
        return Packed(self.stored, self.of[index], self.row[index])

    def row_of(self, index: int) -> Tensor:
        """The numbers of one of its rows, [1, in] in float32."""
        return self.stored[int(self.of[index])].read_rows(self.row[index : index + 1]).numbers()

    def numbers(self) -> Tensor:
        """All its numbers in float32. They may be kept for the next who asks: do not change
        them.
        """
        is_small = self.numel() * torch.float32.itemsize <= LARGEST_KEPT
        rows = _kept(self) if is_small else self._unpack_all()
        if self.turned:
            return rows.t()
        return rows

    @torch.inference_mode(False)
    @torch.no_grad()
    def _unpack_all(self) -> Tensor:
        if self.numel() <= AT_ONCE:
            return self._read_rows()
        rows = torch.empty(len(self.row), self.stored[0].shape[1])
        for at in self.pieces():
            rows[at] = self.rows(at)._read_rows()
        return rows

    def _read_rows(self) -> Tensor:
        first = int(self.of[0]) if len(self.of) else 0
        if bool((self.of == first).all()):
            return self.stored[first].read_rows(self.row).numbers()
        rows = torch.empty(len(self.row), self.stored[0].shape[1])
        for number in self.of.unique().tolist():
            mine = self.of == number
            rows[mine] = self.stored[number].read_rows(self.row[mine]).numbers()
        return rows

    def pieces(self) -> list[slice]:
        """Its rows, `AT_ONCE` numbers at a time."""
        rows = max(ROWS, AT_ONCE // self.stored[0].shape[1] // ROWS * ROWS)
        return [
            slice(start, min(start + rows, len(self.row)))
            for start in range(0, len(self.row), rows)
        ]

    def is_finite(self) -> bool:
        """Whether all its numbers are."""
        pieces = (self.rows(at) for at in self.pieces())
        return all(
            piece.stored[int(piece.of[run.start])].is_finite(piece.row[run])
            for piece in pieces
            for run in _runs(piece.of)
        )

    def prepare(self, allocate: Allocate) -> None:
        """Bring it to the form in which it is multiplied, in memory that `allocate` gives."""
        ways = [
            stored.kind if multiplies(stored.kind) else _way(stored.bits, stored.group)
            for stored in self.stored
        ]
        of = torch.tensor([ways.index(way) for way in ways])[self.of]
        self.parts = tuple(_make_part(self.rows(at), allocate) for at in _runs(of))

    def times(self, x: Tensor) -> Tensor:
        """x · Wᵀ, of x [..., in] in float32: [..., out] in float32, where x and what is added up
        was rounded to bfloat16, or x to 8 bits.
        """
        assert self.parts is not None
        flat = x.reshape(-1, x.shape[-1])  # [n, in]
        [part, *others] = self.parts
        result = part.times(flat)  # [n, rows]
        if others:
            result = torch.cat([result, *(other.times(flat) for other in others)], dim=1)
        return result.view(*x.shape[:-1], result.shape[1])

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        handler = _FUNCTIONS.get(func)
        if handler is not None and (result := handler(*args, **(kwargs or {}))) is not None:
            return result
        return torch._C._disabled_torch_function_impl(func, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        handler = _HANDLERS.get(func)
        if handler is not None and (result := handler(*args, **(kwargs or {}))) is not None:
            return result
        if func._schema.is_mutable and isinstance(args[0], Packed):
            raise TypeError(FIXED)
        plain = torch.utils._pytree.tree_map_only(Packed, Packed.numbers, (args, kwargs or {}))
        return func(*plain[0], **plain[1])


class Part(NamedTuple):
    """Neighbouring rows that are multiplied in one way."""

    rows: int  #: how many there are
    product: FourBitProduct  #: how a layer is multiplied
    #: one for 4 bits, else two: numbers of 4 bits in the order that the product wants, and [groups,
    #: rows, 2] the scale of each group, and what it adds to 8 · scale
    layers: tuple[tuple[Tensor, Tensor], ...]

    @property
    def memory(self) -> int:
        """The bytes that it takes."""
        return sum(tensor.nbytes for layer in self.layers for tensor in layer)

    @classmethod
    def from_packed(cls, packed: Packed, allocate: Allocate) -> Part:
        """The part of these rows, which all are multiplied in the same way."""
        rows, width = packed.shape
        first = packed.stored[int(packed.of[0])]
        count, group = _way(first.bits, first.group)
        product = fastest_product(width, group)
        padded = -(-rows // LEAST_ROWS) * LEAST_ROWS
        layers = [
            (
                allocate((padded, width // 2), torch.uint8),
                allocate((width // group, padded, 2), torch.bfloat16),
            )
            for _ in range(count)
        ]
        for at in packed.pieces():
            to = slice(at.start, padded if at.stop == rows else at.stop)
            some = packed.rows(at)
            runs = [
                _split(some.stored[int(some.of[rows.start])], some.row[rows])
                for rows in _runs(some.of)
            ]
            for (numbers, scales), layer in zip(layers, zip(*runs, strict=True), strict=True):
                q, scale, added = (
                    F.pad(torch.cat(parts), (0, 0, 0, 0, 0, to.stop - at.stop))
                    for parts in zip(*layer, strict=True)
                )
                numbers[to] = product.order(q.flatten(1))
                scales[:, to] = torch.cat((scale, added), dim=2).transpose(0, 1)
        return cls(rows, product, tuple(layers))

    def times(self, x: Tensor) -> Tensor:
        """x · Wᵀ, of x [n, in] in float32: [n, rows] in float32."""
        x = x.bfloat16()
        [(numbers, scales), *lower] = self.layers
        group = x.shape[1] // len(scales)
        result = self.product.times(x, numbers, group, scales).float()
        for numbers, scales in lower:
            result += self.product.times(x, numbers, group, scales)
        if result.shape[1] == self.rows:
            return result
        return result[:, : self.rows]


class BlockPart(NamedTuple):
    """Neighbouring rows of one kind that stay the blocks of their file (see `raw_blocks`)."""

    kind: str  #: what their format calls it
    blocks: Tensor  #: [rows, bytes of a row]
    #: the same rows as PyTorch multiplies them, where that is faster with many vectors
    for_many: Part | None = None

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.blocks)

    @property
    def memory(self) -> int:
        """The bytes that it takes."""
        return self.blocks.nbytes + (self.for_many.memory if self.for_many else 0)

    @classmethod
    def from_packed(cls, packed: Packed, allocate: Allocate) -> BlockPart:
        """The part of these rows, which all have the same kind."""
        stored = packed.stored[int(packed.of[0])]
        size = stored.read_blocks(packed.row[:1]).shape[1]
        blocks = allocate((len(packed.row), size), torch.uint8)
        for at in packed.pieces():
            some = packed.rows(at)
            for run in _runs(some.of):
                blocks[at][run] = some.stored[int(some.of[run.start])].read_blocks(some.row[run])
        return cls(stored.kind, blocks)

    def times(self, x: Tensor) -> Tensor:
        """x · Wᵀ, of x [n, in] in float32: [n, rows] in float32."""
        if self.for_many and len(x) >= MANY:
            return self.for_many.times(x)
        return multiply(self.kind, self.blocks, x)

    def times_one(self, width: int, result: Tensor) -> Callable[[Tensor], None]:
        """What writes x · Wᵀ, of x with so many numbers, to `result` [1, rows] again and again."""
        product = Product(self.kind, self.blocks, 1, width)
        return lambda x: product.write(x, result)


class FourBitProduct(NamedTuple):
    """A way to multiply with numbers of 4 bits."""

    #: brings whole numbers from 0 to 15 [rows, in], as uint8, to the order in which they are kept:
    #: [rows, in / 2]
    order: Callable[[Tensor], Tensor]
    #: x [n, in] in bfloat16, numbers in that order, how many of them have one scale, and scales
    #: [groups, rows, 2] → x · Wᵀ [n, rows]
    times: Callable[[Tensor, Tensor, int, Tensor], Tensor]


def _multiply_wide(x: Tensor, numbers: Tensor, group: int, scales: Tensor) -> Tensor:
    """x · Wᵀ [n, rows] in float32, of numbers two of which are kept in a byte: some rows at a time
    become float32.
    """
    products = []
    rows = max(1, AT_ONCE // x.shape[1])
    for some, of_some in zip(numbers.split(rows), scales.split(rows, dim=1), strict=True):
        q = torch.cat((some & 15, some >> 4), dim=1).float()  # [rows, in]
        scale, added = of_some.float().transpose(0, 1).unsqueeze(3).unbind(2)  # [rows, groups, 1]
        q.unflatten(1, (-1, group)).mul_(scale).add_(added - 8 * scale)
        products.append(F.linear(x.float(), q))
    return torch.cat(products, dim=1)


# PyTorch has fast code for processors with AVX2 or AVX-512, and only on Linux; elsewhere this is a
# loop over single numbers.
KERNEL = FourBitProduct(
    lambda q: torch._convert_weight_to_int4pack_for_cpu(q.int(), 1),
    torch._weight_int4pack_mm_for_cpu,
)
WIDENED = FourBitProduct(
    lambda q: q[:, : q.shape[1] // 2] | q[:, q.shape[1] // 2 :] << 4, _multiply_wide
)


@cache
def fastest_product(width: int, group: int) -> FourBitProduct:
    """What multiplies rows of this width with one vector in the shortest time, measured here and
    kept for the process.
    """
    q = torch.zeros(ROWS, width, dtype=torch.uint8)
    scales = torch.ones(width // group, ROWS, 2, dtype=torch.bfloat16)
    x = torch.ones(1, width, dtype=torch.bfloat16)
    ways = KERNEL, WIDENED
    seconds = _time_each([partial(way.times, x, way.order(q), group, scales) for way in ways])
    return ways[seconds.index(min(seconds))]


def _time_each(acts: Sequence[Callable[[], object]], turns: int = 5) -> list[float]:
    """The seconds that each takes."""
    seconds = [float("inf")] * len(acts)
    # The first turn warms up, and the fastest of each counts: other work on this machine makes a
    # single one slow.
    for _ in range(turns):
        for place, act in enumerate(acts):
            begun = time.perf_counter()
            act()
            seconds[place] = min(seconds[place], time.perf_counter() - begun)
    return seconds


def _make_part(packed: Packed, allocate: Allocate) -> Part | BlockPart:
    """The part of these rows that is multiplied in the shortest time."""
    kind = packed.stored[int(packed.of[0])].kind
    rows, width = packed.shape
    if not multiplies(kind) or furthest(kind, ROWS_TIMED + rows % ROWS, width) > FURTHEST:
        return Part.from_packed(packed, allocate)
    with_one, with_many = _library_is_faster(packed)
    if not with_one:
        return Part.from_packed(packed, allocate)
    part = BlockPart.from_packed(packed, allocate)
    if with_many:
        return part
    return part._replace(for_many=Part.from_packed(packed, allocate))


@cached({}, key=lambda it: (it.stored[int(it.of[0])].kind, it.shape[1]), lock=Lock())
def _library_is_faster(packed: Packed) -> tuple[bool, bool]:
    """Whether rows of one kind and width are multiplied in less time by the library for raw blocks
    than by PyTorch: with one vector, and with many, where it may take a tenth more. Measured here
    with some of them and one thread, and kept for the process.
    """
    width = packed.shape[1]
    some = packed.rows(slice(ROWS_TIMED))
    allocate = Arena(0).new_tensor
    blocks = BlockPart.from_packed(some, allocate)
    part = Part.from_packed(some, allocate)
    one = torch.ones(1, width)
    many = torch.ones(2 * MANY, width)
    write = blocks.times_one(width, torch.empty(1, blocks.rows))
    with sharing(1) as use_one_thread:
        use_one_thread()
        of_one = _time_each([lambda: write(one), lambda: part.times(one)], turns=50)
        of_many = _time_each([lambda: blocks.times(many), lambda: part.times(many)], turns=15)
    return of_one[0] < of_one[1], of_many[0] < SLOWER * of_many[1]


def _runs(values: Tensor) -> list[slice]:
    """Where neighbours [n] are equal."""
    starts = [0, *(torch.nonzero(values.diff()).flatten() + 1).tolist(), len(values)]
    return [slice(start, stop) for start, stop in pairwise(starts)]


def _way(bits: int, group: int) -> tuple[int, int]:
    """In how many layers of 4 bits numbers are multiplied, and how many neighbours then share their
    scales.
    """
    if group < GROUP:
        return 2, REGROUPED
    return 1 if bits <= 4 else 2, GROUP


def bytes_of_number(bits: int, group: int) -> float:
    """What a number takes in memory that a file keeps so: 4 bits in each layer, and its share of
    two numbers of 2 bytes.
    """
    layers, group = _way(bits, group)
    return layers * (1 / 2 + 4 / group)


def _split(stored: StoredRows, rows: Tensor) -> list[Groups]:
    """The layers of 4 bits whose sum these rows are; `offset` is what is added to scale · (q - 8).

    The scales are rounded to bfloat16. So that this rounds no number by more than itself, the upper
    layer is 0 where q is in the middle of its range.
    """
    groups = stored.read_rows(rows)
    bits = stored.bits
    if stored.group < GROUP:
        groups = _regroup_rows(groups)
        bits = 8
    q, scale, offset = groups
    if bits <= 4:
        return [Groups(q, scale, offset + 8 * scale)]
    raised = q + (128 - 2 ** (bits - 1))  # at most 255
    middle = offset + 2 ** (bits - 1) * scale
    return [Groups(raised >> 4, UPPER * scale, middle), Groups(raised & 15, scale, 8 * scale)]


def _regroup_rows(groups: Groups) -> Groups:
    """The same numbers in groups of `REGROUPED` and in 8 bits, by the largest number of each group:
    that rounds a number by up to 0.4 % of the largest one, about as much as bfloat16 does.
    """
    numbers = groups.numbers().unflatten(1, (-1, REGROUPED))
    scale = numbers.abs().amax(2, keepdim=True) / 127
    q = (numbers / scale.clamp(min=torch.finfo(torch.float32).tiny)).round() + 128
    return Groups(q.to(torch.uint8), scale, -128 * scale)


class _Times(torch.autograd.Function):
    """x · Wᵀ, whose gradient goes back to x through the numbers of the file, some rows at a
    time.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Packed) -> Tensor:
        ctx.weight = weight
        return weight.times(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        weight: Packed = ctx.weight
        if weight.numel() * torch.float32.itemsize <= LARGEST_KEPT:
            return gradient @ weight.numbers(), None
        of_x = gradient.new_zeros(*gradient.shape[:-1], weight.shape[1])
        for at in weight.pieces():
            of_x += gradient[..., at] @ weight.rows(at)._read_rows()
        return of_x, None


def times_packed(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x · Wᵀ + b, of a `Packed` matrix as it is kept, of any other one in float32."""
    if type(weight) is not Packed:
        return product(x, weight, bias)
    result: Tensor = _Times.apply(x, weight) if x.requires_grad else weight.times(x)
    if bias is None:
        return result
    return result + bias


def times_exactly(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x · Wᵀ + b in float32, of a `Packed` matrix some rows of which are brought back at a time."""
    if type(weight) is not Packed:
        return product(x, weight, bias)
    result = torch.cat([x @ weight.rows(at)._read_rows().t() for at in weight.pieces()], dim=-1)
    if bias is None:
        return result
    return result + bias


def looked_up_packed(ids: Tensor, table: Tensor) -> Tensor:
    """The rows `ids` [...] of a table [rows, width]: [..., width] in float32."""
    if type(table) is not Packed:
        return F.embedding(ids, table)
    if ids.numel() == 1:  # the token of a step of generation
        return table.row_of(int(ids)).view(*ids.shape, -1)
    distinct, places = ids.unique(return_inverse=True)
    return table.rows(distinct)._read_rows()[places]


def _transpose_packed(packed: Packed) -> Packed:
    turned = Packed(packed.stored, packed.of, packed.row, turned=not packed.turned)
    turned._own = packed._own
    return turned


def _index_packed(packed: Packed, index: Any) -> Packed | None:
    is_rows = isinstance(index, slice) or (isinstance(index, Tensor) and index.ndim == 1)
    if is_rows and not packed.turned:
        return packed.rows(index)
    return None


def _split_rows(packed: Packed, size: Any, dim: int = 0) -> list[Packed] | None:
    if dim or packed.turned:
        return None
    return [
        Packed(packed.stored, of, row)
        for of, row in zip(packed.of.split(size), packed.row.split(size), strict=True)
    ]


def _stack_packed(tensors: list[Tensor], dim: int = 0) -> Packed | None:
    """One below the other, if all are such matrices of one width."""
    if dim or not all(isinstance(tensor, Packed) and not tensor.turned for tensor in tensors):
        return None
    packed: list[Packed] = tensors  # type: ignore[assignment]
    if len({part.shape[1] for part in packed}) > 1:
        return None
    before = [sum(len(part.stored) for part in packed[:index]) for index in range(len(packed))]
    of = torch.cat([part.of + count for part, count in zip(packed, before, strict=True)])
    return Packed(
        [layer for part in packed for layer in part.stored],
        of,
        torch.cat([part.row for part in packed]),
    )


def _same_packed(packed: Packed) -> Packed:
    same = Packed(packed.stored, packed.of, packed.row, turned=packed.turned)
    same.parts = packed.parts
    same._own = packed._own
    return same


_kept_numbers = byte_cache(lambda numbers: numbers.nbytes, MOST_KEPT)
_kept = cached(_kept_numbers, key=lambda packed: packed._own, condition=Condition())(
    Packed._unpack_all
)
memory.gives_way(_kept.cache_clear)
# Opening a model needs only these, and they do not ask PyTorch's dispatcher: the first operation
# that does imports 500 modules of distributed tensors and of sympy, 40 MB.
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    torch.cat: _stack_packed,
    Tensor.__getitem__: _index_packed,
    Tensor.detach: _same_packed,
}
_aten = torch.ops.aten
_HANDLERS: dict[Any, Callable[..., Any]] = {
    _aten.detach.default: _same_packed,
    _aten.alias.default: _same_packed,
    _aten.t.default: _transpose_packed,
    _aten.transpose.int: lambda packed, one, other: (
        _same_packed(packed) if one % 2 == other % 2 else _transpose_packed(packed)
    ),
    _aten.permute.default: lambda packed, dims: (
        _transpose_packed(packed) if list(dims) in ([1, 0], [-1, -2]) else _same_packed(packed)
    ),
    _aten.slice.Tensor: lambda packed, dim=0, start=None, end=None, step=1: (
        packed.rows(slice(start, end, step)) if dim == 0 and not packed.turned else None
    ),
    _aten.select.int: lambda packed, dim, index: (
        packed.rows(torch.tensor([index]))._read_rows()[0]
        if dim == 0 and not packed.turned
        else None
    ),
    _aten.split.Tensor: _split_rows,
    _aten.split_with_sizes.default: _split_rows,
    _aten.embedding.default: lambda table, ids, *_: looked_up_packed(ids, table),
}
