"""How queries and keys are brought to one size, so that no score grows out of hand."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from .norms import new_norm
from .part import LightCall, Settings


class QKNorm:
    """A way to normalise queries and keys."""

    title: ClassVar[str]  #: what forms call it
    equation: ClassVar[str]  #: what it computes of the vector x of a head
    about: ClassVar[str]  #: what it does, in a sentence
    #: whether it can be used in cross-attention too, where queries and keys come from different
    #: texts
    crosses: ClassVar[bool] = False
    #: how its norms are called within the part: none, one for both ("qk", the part itself), or one
    #: for each
    names: ClassVar[tuple[str, ...]] = ()
    #: whether a norm runs over all heads of a token at once, instead of over each head
    is_whole: ClassVar[bool] = False

    #: makes the part that does it: [B, n_head + n_kv_head, T, d_head], first the queries, then the
    #: keys → the same shape
    new: ClassVar[staticmethod[[Settings], nn.Module]]


class _Unchanged(LightCall, nn.Identity):
    """Gives what it is given."""


class _Separate(LightCall):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.n_head = settings.n_head
        self.q, self.k = (
            new_norm(settings, self.size(settings, n))
            for n in (settings.n_head, settings.key_heads)
        )

    def size(self, settings: Settings, heads: int) -> int:
        """The number of numbers that the norm of this many `heads` is over."""
        return settings.head_size

    def forward(self, stacked: Tensor) -> Tensor:
        return torch.cat(
            (self.q(stacked[:, : self.n_head]), self.k(stacked[:, self.n_head :])), dim=1
        )


class _Whole(_Separate):
    def size(self, settings: Settings, heads: int) -> int:
        return heads * settings.head_size

    def forward(self, stacked: Tensor) -> Tensor:
        side_by_side = stacked.transpose(1, 2)  # [B, T, n_head + n_kv_head, d_head]
        q = side_by_side[:, :, : self.n_head]
        k = side_by_side[:, :, self.n_head :]
        # [B, T, (n_head + n_kv_head) · d_head]
        normed = torch.cat((self.q(q.flatten(2)), self.k(k.flatten(2))), dim=-1)
        return normed.view_as(side_by_side).transpose(1, 2)


class NoQKNorm(QKNorm):
    """Queries and keys stay as they are."""

    title = "None"
    equation = ""
    about = "Queries and keys stay as they are."
    crosses = True
    new = staticmethod(_Unchanged)


class SharedQKNorm(QKNorm):
    """One norm over the numbers of a head, for all queries and keys of a block (Henry et al.
    2020).
    """

    title = "Shared"
    equation = "norm(x)"
    names = ("qk",)
    about = (
        "One norm over the numbers of a head, with one gain for all queries and keys of a block."
    )
    crosses = True
    new = staticmethod(lambda settings: new_norm(settings, settings.head_size))


class SeparateQKNorm(QKNorm):
    """A norm over the numbers of a head for all queries of a block, and another for its keys (Qwen
    3, Gemma 3).
    """

    title = "Separate"
    equation = "norm_q(x) of a query, norm_k(x) of a key"
    names = ("q", "k")
    about = "A norm over the numbers of a head, with one gain for queries and another for keys."
    new = staticmethod(_Separate)


class WholeQKNorm(QKNorm):
    """A norm over the numbers of all queries of a token at once, and another for its keys (OLMo
    2).
    """

    title = "Whole"
    equation = "norm_q(all queries of a token), norm_k(all its keys)"
    names = ("q", "k")
    is_whole = True
    about = (
        "A norm over the numbers of all heads at once, with a gain for queries and another for "
        "keys."
    )
    new = staticmethod(_Whole)


QK_NORMS: dict[str, type[QKNorm]] = {
    "none": NoQKNorm,
    "shared": SharedQKNorm,
    "separate": SeparateQKNorm,
    "whole": WholeQKNorm,
}
