"""Patterns of no model."""

from __future__ import annotations

import numpy as np

from gptviz.interp.reading.attention import Patterns


def random_patterns(n_block: int, n_head: int, n_tokens: int, causal: bool = True) -> Patterns:
    generator = np.random.default_rng(0)
    values = generator.random((n_block, n_head, n_tokens, n_tokens), np.float32)
    blocked = np.triu(np.ones((n_tokens, n_tokens), bool), 1) if causal else None
    if blocked is not None:
        values[:, :, blocked] = 0
    values /= values.sum(-1, keepdims=True)
    return Patterns(tuple(values), blocked)
