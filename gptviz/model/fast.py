"""Code that exists only for speed: the transformer and its parts compute the same without it.

Generation reads one token at a time. Then a matrix is multiplied with a single vector, and calls
and memory take more time than arithmetic: `make_fast` gives the parts of a model shorter ways for
that.

Every token that is written reads all weights, and a processor has to look up where each page of
memory lies: with pages of 2 MiB instead of 4 KiB it does so 500 times less often. Linux gives such
pages to memory that asks for them and is large enough (see `Arena`); elsewhere, the pages stay as
they are.
"""

from __future__ import annotations

import math
import mmap
import sys
from contextlib import suppress

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .parts.norms import RMSNorm
from .parts.part import Linear

HAS_LARGE_PAGES = sys.platform == "linux" and hasattr(mmap, "MADV_HUGEPAGE")
# Memory is taken in pieces of this size, or of one tensor that is larger.
PIECE = 64 * 2**20
# A tensor begins where one of a processor's cache lines does.
LINE = 64


def make_fast(model: nn.Module) -> None:
    """Let the linear layers and norms of a model take the shortest way to their numbers."""
    for part in model.modules():
        if isinstance(part, Linear):
            part.multiply = product
        elif isinstance(part, RMSNorm):
            part.normalise = ShortRMSNorm(part.eps)  # type: ignore[method-assign]


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x · Wᵀ + b: [..., in] → [..., out]."""
    if x.numel() != weight.shape[1] or x.requires_grad:
        return F.linear(x, weight, bias)
    # One token, as in every step of generation: `linear` comes to the same product by way of
    # several other operations.
    vector = x.reshape(-1)
    if bias is None:
        result = torch.mv(weight, vector)
    else:
        result = torch.addmv(bias, weight, vector)
    return result.view(*x.shape[:-1], -1)


class ShortRMSNorm:
    """`RMSNorm` in fewer operations: on a processor PyTorch has no kernel of its own for it, and
    takes twice as many.
    """

    def __init__(self, eps: float) -> None:
        # As numbers they would become tensors at every call.
        self.added = torch.tensor(eps)
        self.nothing = torch.tensor(0.0)

    def __call__(self, x: Tensor, gain: Tensor | None, eps: float) -> Tensor:
        """[..., size] → [..., size]."""
        if not x.is_cpu or x.dtype != torch.float32 or x.requires_grad:
            return RMSNorm.normalise(x, gain, eps)
        if gain is not None and x.numel() == gain.shape[0]:
            return self.of_one(x, gain, eps)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # [..., 1]
        normed = x * torch.addcmul(self.added, length, length, value=1 / x.shape[-1]).rsqrt()
        if gain is None:
            return normed
        return normed * gain

    def of_one(self, x: Tensor, gain: Tensor, eps: float) -> Tensor:
        """The norm of one token, [..., size]: its numbers are all multiplied with the same
        number.
        """
        vector = x.reshape(-1)
        scale = (float(torch.dot(vector, vector)) / gain.shape[0] + eps) ** -0.5
        return torch.addcmul(self.nothing, x, gain, value=scale)


class Arena:
    """Tensors that lie side by side in large pieces of memory. A piece is given back when the last
    tensor in it is gone. A small model takes no more than the bytes that are `expected`.
    """

    def __init__(self, expected: int) -> None:
        self._piece_size = min(PIECE, expected)
        self._piece: mmap.mmap | None = None
        self._used = 0

    def new_tensor(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """A tensor of this shape, whose numbers are still to be written."""
        count = math.prod(shape)
        size = count * dtype.itemsize
        if not (HAS_LARGE_PAGES and size):
            return torch.empty(shape, dtype=dtype)
        if self._piece is None or self._used + size > len(self._piece):
            self._piece = _piece(max(self._piece_size, size))
            self._used = 0
        begin = self._used
        self._used += -(-size // LINE) * LINE
        return torch.frombuffer(self._piece, dtype=dtype, count=count, offset=begin).view(shape)


def _piece(size: int) -> mmap.mmap:
    """`size` bytes that only this process uses."""
    if sys.platform != "linux":  # where nobody asks for a piece
        return mmap.mmap(-1, size)
    piece = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system that was built without large pages
        piece.madvise(mmap.MADV_HUGEPAGE)
    return piece
