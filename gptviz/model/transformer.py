"""The transformer: parts in a row. The builder decides which parts these are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from gptviz.machine import progress
from gptviz.machine.memory import LEAST_WITHIN_A_PASS, release_memory

from .config import Config
from .parts.attention import KVCache, Memory
from .parts.blocks import Block, ParallelBlock
from .parts.heads import Head
from .parts.masks import Mask
from .parts.norms import Norm
from .parts.part import Embedding
from .parts.positions import PositionEncoding
from .parts.residuals import Dropout
from .parts.shortcuts import Mix, Smear
from .tap import IDENTITY, Tap

# Over a text of this many tokens the large arrays of each block leave holes between the small ones
# that a tap keeps: in a pass of SmolLM2-135M over 2,048 tokens 300 MB of them, unless they are
# given back on the way.
LONG = 1_024


class Transformer(nn.Module):
    """head(block_n(… block_1(embed(ids) + positions))): ids → logits, of every next token or of the
    labels of the text.

    An encoder is a transformer too; its head leaves the stream as it is, and every block of the
    decoder reads its output.
    """

    def __init__(
        self,
        config: Config,
        embed: Embedding,
        positions: PositionEncoding,
        masks: Sequence[Mask],
        blocks: Iterable[Block | ParallelBlock],
        head: Head,
        encoder: Transformer | None = None,
        embed_norm: Norm | None = None,
        smear: Smear | None = None,
        backout: Mix | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.embed = embed
        self.embed_norm = embed_norm
        self.smear = smear
        self.positions = positions
        # One mask per block; blocks that see the same share one, which is computed once per pass.
        self.masks = nn.ModuleList(dict.fromkeys(masks))
        self.mask_of = [list(self.masks).index(mask) for mask in masks]
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(blocks)
        self.backout = backout
        self.head = head
        self.encoder = encoder

    def forward(
        self,
        ids: Tensor,
        source: Tensor | None = None,
        *,
        memory: Memory | None = None,
        cache: KVCache | None = None,
        tap: Tap = IDENTITY,
        logits_at: slice = slice(None),
        resume: tuple[int, Tensor] | None = None,
    ) -> Tensor:
        """ids [B, T] → logits [B, T, vocab_size], or [B, n_label] of a classifier.

        Args:
            ids: token ids, at most `context_length` of them (together with those in the cache).
            source: the token ids [B, S] that the encoder reads; for models that have one.
            memory: the result of `encode` on the source, given instead of it so that the encoder
                does not run again.
            cache: keys and values of the tokens before `ids`, in a causal model; those of `ids` are
                added to it.
            tap: sees the intermediates named in `tap.GLOSSARY`, and may replace them.
            logits_at: the positions to unembed; `slice(-1, None)` is only the last one. Unembedding
                every position is a large share of the work.
            resume: a block, and the stream [B, T, d_model] that enters it as another pass over the
                same ids computed it: what comes before that block is not computed again.

        Raises:
            ValueError: more tokens than the context holds, or nothing for the encoder to read.
        """
        start = 0 if cache is None else cache.length
        end = start + ids.shape[1]
        if end > self.config.context_length:
            raise ValueError(
                f"{end} tokens do not fit in a context of {self.config.context_length}"
            )
        if self.encoder is None:
            if source is not None or memory is not None:
                raise ValueError("this model has no encoder to read a source")
        elif memory is None:
            if source is None:
                raise ValueError("this model has an encoder: give it a source to read")
            memory = self.encode(source, tap)
        at = slice(start, end)
        padding = self.config.padding
        blocked = [mask(ids, at, padding) for mask in self.masks]  # [T, end] or [B, 1, 1, T] each
        if self.config.has_shortcuts:
            resume = None  # the blocks need more than the stream there
        first, x = (0, self.embed_stream(ids, at, cache, tap)) if resume is None else resume
        is_heard = not torch.compiler.is_compiling() and progress.is_heard()

        def run_block(index: int, block: nn.Module, x: Tensor) -> Tensor:
            layer_cache = None if cache is None else cache.layers[index]
            masked = blocked[self.mask_of[index]]
            inside = tap.for_part(f"blocks.{index}")
            x = block(x, ids, masked, at, memory, layer_cache, inside)
            if x.shape[1] >= LONG and x.is_cpu and not torch.is_grad_enabled():
                release_memory(LEAST_WITHIN_A_PASS)
            if is_heard:
                progress.report(index + 1, len(self.blocks), "block")
            return x

        x = self.run_blocks(x, run_block, first)
        if self.backout is not None:
            x = tap("backout", x)
        if cache is not None:
            cache.length = end
        return self.head(x, None if padding is None else ids == padding, logits_at, tap)

    def run_blocks(
        self, x: Tensor, through: Callable[[int, nn.Module, Tensor], Tensor], first: int = 0
    ) -> Tensor:
        """The stream [B, T, d_model] after all blocks from the `first` on, where `through` computes
        a block, of its number, the block and the stream that enters it. What stands between blocks
        is here: in some models a mix with the embedding `x`, and at the end with the stream of the
        middle.
        """
        embedded = x
        middle = x
        for index, block in enumerate(self.blocks):
            if index < first:
                continue
            if isinstance(block.mix, Mix):
                x = block.mix(x, embedded)
            x = through(index, block, x)
            if index == len(self.blocks) // 2:
                middle = x
        if self.backout is None:
            return x
        return self.backout(x, middle)

    def embed_stream(self, ids: Tensor, at: slice, cache: KVCache | None, tap: Tap) -> Tensor:
        """The stream [B, T, d_model] that enters the first block."""
        x = tap("embed", self.embed(ids))  # [B, T, d_model]
        x = self.positions.embed(x, at, tap)
        if self.embed_norm is not None:
            x = tap("embed_norm", self.embed_norm(x))
        if self.smear is not None:
            before = None
            if cache is not None:
                if at.start:
                    before = cache.vectors[:, at.start - 1 : at.start]
                else:
                    before = None
                cache.vectors = torch.cat((cache.vectors[:, : at.start], x), dim=1)
            x = tap("smear", self.smear(x, before))
        return self.dropout(x)

    def new_cache(self, batch: int = 1, room: int | None = None) -> KVCache:
        """An empty cache for `batch` rows, on the device of the weights, with room for so many
        tokens at first, where that is known; in float32 at least, for any type of weights.
        """
        weight = self.embed.weight
        return KVCache(
            self.config,
            batch,
            weight.device,
            torch.promote_types(weight.dtype, torch.float32),
            room,
        )

    def encode(self, source: Tensor, tap: Tap = IDENTITY) -> Memory:
        """The output of the encoder for the token ids `source` [B, S]; its intermediates are tapped
        as `encoder.…`.
        """
        if self.encoder is None:
            raise ValueError("this model has no encoder")
        # [B, 1, 1, S]
        blocked = self.encoder.masks[0](source, slice(0, source.shape[1]), self.config.padding)
        return Memory(tap("memory", self.encoder(source, tap=tap.for_part("encoder"))), blocked)


class Twin(Transformer):
    """A transformer that shares all parts with `like`, a transformer."""

    def __init__(self, like: Transformer) -> None:
        super().__init__(
            like.config,
            like.embed,
            like.positions,
            [like.masks[index] for index in like.mask_of],  # type: ignore[misc]
            like.blocks,  # type: ignore[arg-type]
            like.head,
            like.encoder,
            like.embed_norm,
            like.smear,
            like.backout,
        )
        self.train(like.training)
