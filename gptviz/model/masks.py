"""Masks: which keys a query must not look at. A mask is a value, so causal and full attention are one code."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Mask = Callable[[Tensor, slice, int | None], Tensor | None]


def causal(ids: Tensor, at: slice, padding: int | None) -> Tensor | None:
    """True at keys after the query, for queries `ids` at positions `at` and keys from 0 to its end: [queries, keys].

    None for a single query at the end, from which nothing is hidden. Padding stands at the end, after all that may read it.
    """
    if at.stop - at.start == 1:
        return None
    queries = torch.arange(at.start, at.stop, device=ids.device)
    return torch.arange(at.stop, device=ids.device) > queries[:, None]


def full(ids: Tensor, at: slice, padding: int | None) -> Tensor | None:
    """True at keys that are padding, [B, 1, 1, keys]; None where no token is. A row of nothing but padding has nothing to read:
    its numbers are none, so data never has such rows."""
    return None if padding is None else (ids == padding)[:, None, None, :]


MASKS: dict[str, Mask] = {"causal": causal, "full": full}
