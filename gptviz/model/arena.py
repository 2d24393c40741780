"""Memory for the weights of an open model, in large pages where the system has them.

Every token that is written reads all weights, and a processor has to look up where each page of memory lies: with pages of
2 MiB instead of 4 KiB it does so 500 times less often. Linux gives such pages to memory that asks for them and is large enough;
elsewhere, the pages stay as they are.
"""

from __future__ import annotations

import math
import mmap
import sys
from contextlib import suppress

import torch
from torch import Tensor

HAS_LARGE_PAGES = sys.platform == "linux" and hasattr(mmap, "MADV_HUGEPAGE")
# Memory is taken in pieces of this size, or of one tensor that is larger.
PIECE = 64 * 2**20
# A tensor begins where one of a processor's cache lines does.
LINE = 64


class Arena:
    """Tensors that lie side by side in large pieces of memory. A piece is given back when the last tensor in it is gone.

    Args:
        expected: how many bytes all tensors are likely to take: a small model takes no more than it needs.
    """

    def __init__(self, expected: int) -> None:
        self._piece_size = min(PIECE, expected)
        self._piece: mmap.mmap | None = None
        self._used = 0

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """A tensor of this shape, whose numbers are still to be written."""
        count = math.prod(shape)
        size = count * dtype.itemsize
        if not (HAS_LARGE_PAGES and size):
            return torch.empty(shape, dtype=dtype)
        if self._piece is None or self._used + size > len(self._piece):
            self._piece, self._used = _piece(max(self._piece_size, size)), 0
        begin = self._used
        self._used += -(-size // LINE) * LINE
        return torch.frombuffer(self._piece, dtype=dtype, count=count, offset=begin).view(shape)


def _piece(size: int) -> mmap.mmap:
    """So many bytes of this process alone."""
    if sys.platform != "linux":  # where nobody asks for a piece
        return mmap.mmap(-1, size)
    piece = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system that was built without large pages
        piece.madvise(mmap.MADV_HUGEPAGE)
    return piece
