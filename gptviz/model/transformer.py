"""The transformer: parts in a row. Which parts, the builder decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from .attention import KVCache
from .blocks import Block, Dropout
from .config import Config
from .heads import Unembed
from .positions import NoPositions
from .tap import IDENTITY, Tap


class Transformer(nn.Module):
    """head(block_n(… block_1(embed(ids) + positions))): ids → logits."""

    def __init__(
        self,
        config: Config,
        embed: nn.Embedding,
        positions: NoPositions,
        mask: Callable[[slice, torch.device], Tensor | None],
        blocks: Iterable[Block],
        head: Unembed,
    ) -> None:
        super().__init__()
        self.config = config
        self.embed = embed
        self.positions = positions
        self.mask = mask
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(blocks)
        self.head = head

    def forward(
        self, ids: Tensor, *, cache: KVCache | None = None, tap: Tap = IDENTITY, logits_at: slice = slice(None)
    ) -> Tensor:
        """ids [B, T] → logits [B, T, vocab_size].

        Args:
            ids: token ids, at most `context_length` of them (with those in the cache).
            cache: keys and values of the tokens before `ids`, in a causal model; it is extended by `ids`.
            tap: sees, and may replace, the intermediates named in `tap.GLOSSARY`.
            logits_at: the positions to unembed; `slice(-1, None)` for the last alone, since unembedding every
                position is a large share of the work.

        Raises:
            ValueError: more tokens than the context holds.
        """
        start = 0 if cache is None else cache.length
        end = start + ids.shape[1]
        if end > self.config.context_length:
            raise ValueError(f"{end} tokens do not fit in a context of {self.config.context_length}")
        at = slice(start, end)
        blocked = self.mask(at, ids.device)  # [T, end]
        x = tap("embed", self.embed(ids))  # [B, T, d_model]
        x = self.dropout(self.positions.embed(x, at, tap))
        for index, block in enumerate(self.blocks):
            layer_cache = None if cache is None else cache.layers[index]
            x = block(x, blocked, at, layer_cache, tap.at(f"blocks.{index}"))
        if cache is not None:
            cache.length = end
        return self.head(x[:, logits_at], tap)  # [B, T, vocab_size]
