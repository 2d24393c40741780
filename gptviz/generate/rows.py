"""Rows that a model writes side by side: a text to read where nobody knows what it learned from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gptviz.machine import progress
from gptviz.machine.cores import sharing
from gptviz.model import Transformer

from .sampling import Sampling, choose_tokens


@torch.inference_mode()
def write_rows(
    model: Transformer, starts: Tensor, length: int, seed: int = 0, never: Sequence[int] = ()
) -> Tensor:
    """Rows [row, length] that a decoder writes at temperature 1, each from one of the tokens
    `starts` [row]; they do not end where a text ends.

    Args:
        length: tokens of a row, its first one included; at most the context of the model.
        seed: decides what is drawn.
        never: tokens that are never drawn, as in `Generation`.
    """
    ids = starts.to(model.embed.weight.device)[:, None]
    sampling = Sampling(seed=seed)
    if model.config.mask == "causal":
        cache = model.new_cache(len(starts), length)
    else:
        cache = None
    with sharing() as share:
        for position in range(1, length):
            share()
            seen = ids if cache is None else ids[:, -1:]
            with progress.part(position, length, step="token of each row"):
                logits = model(seen, cache=cache, logits_at=slice(-1, None))[:, -1]
            drawn = choose_tokens(logits, sampling, position, never)
            ids = torch.cat((ids, drawn.to(ids.device)[:, None]), dim=1)
    return ids
