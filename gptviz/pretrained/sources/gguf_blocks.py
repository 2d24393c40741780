"""The ways in which GGUF files keep numbers of 4 to 8 bits: blocks of bytes, each with its scales
and its whole numbers.

What a file has in other ways is brought back to float32 by the `gguf` library, which is also what
tests hold these to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock

import torch
from torch import Tensor

from gptviz.model.packed import GROUP, Groups


class OpenFile:
    """A file that is read in places, by several threads. It stays open, so that it may be deleted
    or replaced meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb", buffering=0)
        self._lock = Lock()

    def read_bytes(self, start: int, size: int) -> Tensor:
        """Some bytes of it, [size] as uint8. An OSError if there are fewer, since the file was cut
        while it was open.
        """
        data = bytearray(size)
        view = memoryview(data)
        done = 0
        with self._lock:
            self._file.seek(start)
            while done < size and (count := self._file.readinto(view[done:])):
                done += count
        if done < size:
            raise OSError(
                f"{self.path} was cut short while it was open: put it back, and open the model "
                "again"
            )
        return torch.frombuffer(data, dtype=torch.uint8)

    def __del__(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class Kind:
    """A way to keep numbers."""

    numbers: int  #: how many a block has
    size: int  #: its bytes
    bits: int  #: of a whole number
    #: blocks [n, size] → the whole numbers [n, groups, numbers of a group]
    q: Callable[[Tensor], Tensor]
    #: blocks [n, size] → scale and offset [n, groups]
    scales: Callable[[Tensor], tuple[Tensor, Tensor]]
    group: int = GROUP  #: the numbers of a group


@dataclass(frozen=True)
class Blocks:
    """A matrix of a GGUF file whose rows are blocks of one kind."""

    file: OpenFile  #: the file
    start: int  #: where in it the matrix begins
    shape: tuple[int, int]  #: its rows, and the numbers of a row
    kind: str  #: the name of the kind, one of `KINDS`

    @property
    def bits(self) -> int:
        """The bits of a whole number."""
        return KINDS[self.kind].bits

    @property
    def group(self) -> int:
        """The numbers of a group."""
        return KINDS[self.kind].group

    def read_rows(self, rows: Tensor) -> Groups:
        """Some rows, by their numbers."""
        data = self._blocks(rows)
        kind = KINDS[self.kind]
        q = kind.q(data)
        scale, offset = kind.scales(data)
        return Groups(
            q.reshape(len(rows), -1, q.shape[-1]),
            *(numbers.reshape(len(rows), -1, 1) for numbers in (scale, offset)),
        )

    def read_blocks(self, rows: Tensor) -> Tensor:
        """The bytes of some rows: [n, bytes of a row]."""
        return self._blocks(rows).reshape(len(rows), -1)

    def is_finite(self, rows: Tensor) -> bool:
        """Whether all numbers of some rows are: they are if their scales and offsets are."""
        return all(
            bool(numbers.isfinite().all())
            for numbers in KINDS[self.kind].scales(self._blocks(rows))
        )

    def _blocks(self, rows: Tensor) -> Tensor:
        """The bytes of some rows: [blocks, bytes of a block]."""
        kind = KINDS[self.kind]
        size = self.shape[1] // kind.numbers * kind.size
        first, last = (int(end) for end in rows.aminmax())
        if last - first < 4 * len(rows):  # as a rule neighbours, in another order
            data = self.file.read_bytes(self.start + first * size, (last + 1 - first) * size).view(
                -1, size
            )
            if len(data) == len(rows) and bool((rows.diff() == 1).all()):
                data = data
            else:
                data = data[rows - first]
        else:
            data = torch.cat(
                [self.file.read_bytes(self.start + row * size, size) for row in rows.tolist()]
            )
        return data.reshape(-1, kind.size)


def _half(data: Tensor) -> Tensor:
    """Pairs of bytes [n, 2 m] as numbers of the type float16: [n, m] in float32."""
    return data.contiguous().view(torch.float16).float()


def _nibbles(data: Tensor) -> Tensor:
    """The lower halves of bytes [..., m], then the upper ones: [..., 2, m]."""
    return torch.stack((data & 15, data >> 4), dim=-2)


def _bits(data: Tensor, shifts: range, mask: int) -> Tensor:
    """Of bytes [..., m], the bits of the mask after each shift: [..., shifts, m]."""
    return torch.stack([data >> shift & mask for shift in shifts], dim=-2)


def _centred_scale(blocks: Tensor, times: int) -> tuple[Tensor, Tensor]:
    """One scale, at the beginning, of numbers from -times on."""
    d = _half(blocks[:, :2])
    return d, -times * d


def _with_least(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """One scale, then the least number."""
    d, m = _half(blocks[:, :4]).split(1, dim=1)
    return d, m


def _four_bits(blocks: Tensor) -> Tensor:
    """Of blocks that end with halves of bytes."""
    return _nibbles(blocks[:, -16:]).flatten(1)[:, None]


def _five_bits(blocks: Tensor) -> Tensor:
    """Of blocks that end with the fifth bits, in 4 bytes, the lowest first, and the lower four."""
    fifth = _bits(blocks[:, -20:-16], range(8), 1).transpose(1, 2).flatten(1)[:, None]
    return _four_bits(blocks) | fifth << 4


def _q8_0(blocks: Tensor) -> Tensor:
    return (blocks[:, 2:] ^ 128)[:, None]  # of a whole number with a sign: 128 more


def _scales_and_offsets(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Those of 8 groups, from the first 16 bytes of a block of Q4_K or Q5_K: each has 6 bits, the
    upper two of some elsewhere.
    """
    d, least = _half(blocks[:, :4]).split(1, dim=1)
    first, second, rest = blocks[:, 4:16].split(4, dim=1)
    scales = torch.cat((first & 63, rest & 15 | first >> 2 & 48), dim=1)
    return d * scales, -(least * torch.cat((second & 63, rest >> 4 | second >> 2 & 48), dim=1))


def _q4_k(blocks: Tensor) -> Tensor:
    return _nibbles(blocks[:, -128:].unflatten(1, (4, 32))).flatten(1, 2)  # [n, 8, 32]


def _q5_k(blocks: Tensor) -> Tensor:
    return _q4_k(blocks) | _bits(blocks[:, 16:48], range(8), 1) << 4


def _q6_k(blocks: Tensor) -> Tensor:
    lower = _nibbles(blocks[:, :128].unflatten(1, (2, 64)))  # [n, 2, 2, 64]
    upper = _bits(blocks[:, 128:192].unflatten(1, (2, 32)), range(0, 8, 2), 3)  # [n, 2, 4, 32]
    return lower.reshape(-1, 16, 16) | upper.reshape(-1, 16, 16) << 4


def _scales_of_16(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Those of the 16 groups of a block of Q6_K."""
    scale = _half(blocks[:, 208:]) * blocks[:, 192:208].contiguous().view(torch.int8)  # [n, 16]
    return scale, -32 * scale


# As the format names them.
KINDS = {
    "Q4_0": Kind(32, 18, 4, _four_bits, partial(_centred_scale, times=8)),
    "Q4_1": Kind(32, 20, 4, _four_bits, _with_least),
    "Q5_0": Kind(32, 22, 5, _five_bits, partial(_centred_scale, times=16)),
    "Q5_1": Kind(32, 24, 5, _five_bits, _with_least),
    "Q8_0": Kind(32, 34, 8, _q8_0, partial(_centred_scale, times=128)),
    "Q4_K": Kind(256, 144, 4, _q4_k, _scales_and_offsets),
    "Q5_K": Kind(256, 176, 5, _q5_k, _scales_and_offsets),
    "Q6_K": Kind(256, 210, 6, _q6_k, _scales_of_16, group=16),
}


def blocks_of(file: OpenFile, start: int, shape: tuple[int, ...], kind: str) -> Blocks | None:
    """The matrix of this shape whose blocks begin there, or None if it is none, or its kind is not
    one of `KINDS`.
    """
    if (
        len(shape) != 2
        or kind not in KINDS
        or shape[1] % KINDS[kind].numbers
        or not math.prod(shape)
    ):
        return None
    return Blocks(file, start, (shape[0], shape[1]), kind)
