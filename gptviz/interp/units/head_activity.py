"""How much heads do at each token: how long the vector is that a head adds to the stream, and from
which tokens it comes.

A norm behind the attention counts by its linear part (see `through_norms`), so numbers of one block
can be compared.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gptviz.model import Transformer

from .activity import Observable, read_until
from .head_weights import matrices
from .unit import Unit

# Whether a head's number is at the token that reads, or at the token that is read.
HeadSide = Literal["query", "key"]


def observable_heads(model: Transformer, block: int, side: HeadSide = "query") -> Observable:
    """The heads of a block. The number of a head at a query is ‖W_O z‖, the length of the vector
    that it adds to the stream there. At a key it is ‖W_O v‖ times the attention that all queries of
    the text pay to it. A ValueError if the model has no such block.
    """
    config = model.config
    if block not in range(config.n_layer):
        raise ValueError(
            f"there are no heads in block {block!r:.40}: the model has {config.n_layer} blocks, "
            "counted from 0"
        )
    # ‖W_O z‖ = ‖R z‖, where W_O = Q R with orthonormal columns Q: a matrix of a head's own few
    # numbers takes the place of W_O.
    small = torch.linalg.qr(matrices(model, block).output).R  # [H, d_head or less, d_head]
    path = f"blocks.{block}.attention"
    group = config.n_head // config.key_heads

    def at_queries(ids: Tensor) -> Tensor:
        (z,) = read_until(model, ids, f"{path}.z")  # [B, H, T, d_head]
        return (z.float() @ small.mT).norm(dim=-1).transpose(1, 2).cpu()

    def at_keys(ids: Tensor) -> Tensor:
        v, pattern = read_until(model, ids, f"{path}.v", f"{path}.pattern")
        sizes = (v.float().repeat_interleave(group, 1) @ small.mT).norm(dim=-1)  # [B, H, T]
        return (sizes * pattern.float().sum(-2)).transpose(1, 2).cpu()

    values, number = (
        (at_queries, "length of what it adds")
        if side == "query"
        else (at_keys, "what is read of it")
    )
    lengths = torch.ones(config.n_head)
    width = config.n_head * config.head_size

    def room(length: int) -> int:
        return width + config.n_head * length  # the values of the heads, and their patterns

    return Observable(Unit("attention", block), number, lengths, config.vocab_size, values, room)
