"""The patterns of a long text in several passes, each of which adds its keys and values to a cache.

Where nobody looks at patterns, attention itself computes them for some queries after the other
(`attention.Attention`). Here all blocks give theirs for the same queries, as many as a picture
needs together. What is computed of a token is the same in every number of passes, except for
rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gptviz.machine import progress

from .config import Config
from .tap import IDENTITY, Tap
from .transformer import Transformer

# About the most scores of a block in a pass. With fewer the weights would be read for few tokens at
# a time.
MOST_SCORES = 2**22


def passes(config: Config, length: int, *, batch: int = 1, multiple: int = 1) -> list[slice]:
    """The tokens of each pass over `batch` texts of this length: one pass if there are few enough
    scores, and for a model that looks ahead. Every pass except the last one has a `multiple` of
    this many tokens.
    """
    scores = batch * config.n_head * length
    if config.mask != "causal" or scores * length <= MOST_SCORES:
        return [slice(0, length)]
    rows = multiple * max(1, MOST_SCORES // (scores * multiple))
    return [slice(start, min(start + rows, length)) for start in range(0, length, rows)]


@torch.inference_mode()
def read_in_passes(
    model: Transformer, ids: Tensor, tap: Tap = IDENTITY, multiple: int = 1
) -> Tensor:
    """The logits [B, 1, vocab_size] after the last of the tokens `ids` [B, T] of a decoder.

    The `tap` sees the values of one pass after the other: the queries are those of the pass, the
    keys are all up to its end.
    """
    batch, length = ids.shape
    parts = passes(model.config, length, batch=batch, multiple=multiple)
    cache = model.new_cache(batch, length) if len(parts) > 1 else None
    for index, at in enumerate(parts):
        with progress.part(index, len(parts)):
            logits: Tensor = model(ids[:, at], cache=cache, tap=tap, logits_at=slice(-1, None))
    return logits
