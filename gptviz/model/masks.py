"""Masks: which keys a query must not look at. A mask is a value, so causal and full attention are one code."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def causal(at: slice, device: torch.device) -> Tensor | None:
    """True at keys after the query, for queries at positions `at` and keys from 0 to its end: [queries, keys].

    None for a single query at the end, from which nothing is hidden.
    """
    if at.stop - at.start == 1:
        return None
    queries = torch.arange(at.start, at.stop, device=device)
    return torch.arange(at.stop, device=device) > queries[:, None]


def full(at: slice, device: torch.device) -> Tensor | None:
    """Nothing is hidden from anyone."""
    return None


MASKS: dict[str, Callable[[slice, torch.device], Tensor | None]] = {"causal": causal, "full": full}
