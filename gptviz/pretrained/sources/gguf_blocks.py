"""The ways in which GGUF files keep numbers of 4 to 8 bits: blocks of bytes, each with its scales and its whole numbers.

What a file has in other ways is brought back to float32 by the `gguf` library, which is also what tests hold these to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import torch
from torch import Tensor

from gptviz.model.packed import Groups


class OpenFile:
    """A file that is read in places, by several threads. It stays open, so that it may be deleted or replaced meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path, self._file, self._lock = path, path.open("rb", buffering=0), Lock()

    def read(self, start: int, size: int) -> Tensor:
        """Some bytes of it, [size] as uint8.

        Raises:
            OSError: there are fewer: it was cut while it was open.
        """
        data = bytearray(size)
        view, done = memoryview(data), 0
        with self._lock:
            self._file.seek(start)
            while done < size and (count := self._file.readinto(view[done:])):
                done += count
        if done < size:
            raise OSError(f"{self.path} was cut short while it was open: put it back, and open the model again")
        return torch.frombuffer(data, dtype=torch.uint8)

    def __del__(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class Kind:
    """A way to keep numbers.

    Attributes:
        numbers: how many a block has.
        size: its bytes.
        bits: of a whole number.
        read: blocks [n, size] → q [n, groups, numbers of a group], scale and offset [n, groups].
    """

    numbers: int
    size: int
    bits: int
    read: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]

    def groups(self, data: Tensor, rows: int) -> Groups:
        """The rows whose bytes these are."""
        q, scale, offset = self.read(data.view(-1, self.size))
        return Groups(q.reshape(rows, -1, q.shape[-1]), scale.reshape(rows, -1, 1), offset.reshape(rows, -1, 1))


@dataclass(frozen=True)
class Blocks:
    """A matrix of a GGUF file whose rows are blocks of one kind.

    Attributes:
        file: the file.
        start: where in it the matrix begins.
        shape: its rows, and the numbers of a row.
        kind: the name of the kind, one of `KINDS`.
    """

    file: OpenFile
    start: int
    shape: tuple[int, int]
    kind: str

    @property
    def bits(self) -> int:
        """The bits of a whole number."""
        return KINDS[self.kind].bits

    def read(self, rows: Tensor) -> Groups:
        """Some rows, by their numbers."""
        kind = KINDS[self.kind]
        size = self.shape[1] // kind.numbers * kind.size
        first, last = (int(end) for end in rows.aminmax())
        if last - first < 4 * len(rows):  # as a rule neighbours, in another order
            data = self.file.read(self.start + first * size, (last + 1 - first) * size).view(-1, size)
            data = data if len(data) == len(rows) and bool((rows.diff() == 1).all()) else data[rows - first]
        else:
            data = torch.cat([self.file.read(self.start + row * size, size) for row in rows.tolist()])
        return kind.groups(data.reshape(-1), len(rows))


def _half(data: Tensor) -> Tensor:
    """Pairs of bytes [n, 2 m] as numbers of the type float16: [n, m] in float32."""
    return data.contiguous().view(torch.float16).float()


def _nibbles(data: Tensor) -> Tensor:
    """The lower halves of bytes [..., m], then the upper ones: [..., 2, m]."""
    return torch.stack((data & 15, data >> 4), dim=-2)


def _bits(data: Tensor, shifts: range, mask: int) -> Tensor:
    """Of bytes [..., m], the bits of the mask after each shift: [..., shifts, m]."""
    return torch.stack([data >> shift & mask for shift in shifts], dim=-2)


def _q4_0(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    d = _half(blocks[:, :2])
    return _nibbles(blocks[:, 2:]).flatten(1)[:, None], d, -8 * d


def _q4_1(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    d, m = _half(blocks[:, :4]).split(1, dim=1)
    return _nibbles(blocks[:, 4:]).flatten(1)[:, None], d, m


def _fifth_bits(data: Tensor) -> Tensor:
    """The bits of 4 bytes [n, 4], the lowest first, each as 16: [n, 1, 32]."""
    return (_bits(data, range(8), 1).transpose(1, 2).flatten(1) << 4)[:, None]


def _q5_0(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    d = _half(blocks[:, :2])
    return _nibbles(blocks[:, 6:]).flatten(1)[:, None] | _fifth_bits(blocks[:, 2:6]), d, -16 * d


def _q5_1(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    d, m = _half(blocks[:, :4]).split(1, dim=1)
    return _nibbles(blocks[:, 8:]).flatten(1)[:, None] | _fifth_bits(blocks[:, 4:8]), d, m


def _q8_0(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    d = _half(blocks[:, :2])
    return (blocks[:, 2:] ^ 128)[:, None], d, -128 * d  # of a whole number with a sign: 128 more


def _scales_and_offsets(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Those of 8 groups, from the first 16 bytes of a block of Q4_K or Q5_K: each has 6 bits, the upper two of some elsewhere."""
    d, least = _half(blocks[:, :4]).split(1, dim=1)
    first, second, rest = blocks[:, 4:16].split(4, dim=1)
    scales = torch.cat((first & 63, rest & 15 | first >> 2 & 48), dim=1)
    offsets = torch.cat((second & 63, rest >> 4 | second >> 2 & 48), dim=1)
    return d * scales, -(least * offsets)


def _q4_k(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    q = _nibbles(blocks[:, 16:].unflatten(1, (4, 32))).flatten(1, 2)  # [n, 8, 32]
    return q, *_scales_and_offsets(blocks)


def _q5_k(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    lower = _nibbles(blocks[:, 48:].unflatten(1, (4, 32))).flatten(1, 2)  # [n, 8, 32]
    return lower | _bits(blocks[:, 16:48], range(8), 1) << 4, *_scales_and_offsets(blocks)


def _q6_k(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    lower = _nibbles(blocks[:, :128].unflatten(1, (2, 64)))  # [n, 2, 2, 64]
    upper = _bits(blocks[:, 128:192].unflatten(1, (2, 32)), range(0, 8, 2), 3)  # [n, 2, 4, 32]
    q = lower.reshape(-1, 16, 16) | upper.reshape(-1, 16, 16) << 4
    scale = _half(blocks[:, 208:]) * blocks[:, 192:208].contiguous().view(torch.int8)  # [n, 16]
    return q, scale, -32 * scale


# As the format names them.
KINDS = {
    "Q4_0": Kind(32, 18, 4, _q4_0),
    "Q4_1": Kind(32, 20, 4, _q4_1),
    "Q5_0": Kind(32, 22, 5, _q5_0),
    "Q5_1": Kind(32, 24, 5, _q5_1),
    "Q8_0": Kind(32, 34, 8, _q8_0),
    "Q4_K": Kind(256, 144, 4, _q4_k),
    "Q5_K": Kind(256, 176, 5, _q5_k),
    "Q6_K": Kind(256, 210, 6, _q6_k),
}


def blocks_of(file: OpenFile, start: int, shape: tuple[int, ...], kind: str) -> Blocks | None:
    """The matrix of this shape whose blocks begin there, or None if it is none, or its kind is not one of `KINDS`."""
    if len(shape) != 2 or kind not in KINDS or shape[1] % KINDS[kind].numbers or not math.prod(shape):
        return None
    return Blocks(file, start, (shape[0], shape[1]), kind)
