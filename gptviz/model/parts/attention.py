"""Attention, written out in full: on CPUs this is fast too, so the same code trains, generates and
feeds the pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

import torch
from torch import Tensor

from ..config import Config
from ..tap import Tap
from .part import LightCall, Linear, SoftCap
from .positions import PositionEncoding
from .qk_norms import QK_NORMS
from .residuals import Dropout
from .shortcuts import ValueEmbedding

# Under a causal mask a block computes scores for at most this many queries at a time, with the keys
# up to the last of them: of 192 tokens that is two thirds of all scores.
MOST_QUERIES = 64
# Of a longer text a block computes about this many scores at a time, a few arrays of which are in
# memory together. Larger arrays are not faster, and leave larger holes in the memory of a server's
# threads: with four times as many, a pass of SmolLM2-135M over 2,048 tokens left 230 MB of them.
MOST_SCORES = 2**20
# Room for keys and values is taken for this many tokens at a time.
ROOM = 32


def queries_at_once(scores: int) -> int:
    """For how many queries a block computes scores at a time, if one query of all texts and heads
    has this many.
    """
    return max(1, min(MOST_QUERIES, MOST_SCORES // scores))


def room_for(length: int) -> int:
    """For how many tokens room is taken where it is needed for `length`: a quarter more, so that it
    is seldom taken again.
    """
    return -(-(length + length // 4) // ROOM) * ROOM


class Memory(NamedTuple):
    """The output of an encoder, which a decoder reads."""

    states: Tensor  #: [B, S, d_model], a vector per token of the source
    #: [B, 1, 1, S], true at padding, which no query reads, or None for a model without padding
    blocked: Tensor | None


class LayerCache:
    """The keys and values [B, n_kv_head, room, d_head] that one block has computed so far,
    allocated in advance.

    There is more room as soon as it is needed: a system hands out memory in pages, and where there
    is room for a long context a short text would write to thousands of them. Each block has its own
    tensors: torch.compile cannot handle writing into one tensor for all blocks well.
    """

    def __init__(
        self,
        rows: int,
        heads: int,
        room: int,
        size: int,
        device: torch.device | str,
        dtype: torch.dtype,
    ) -> None:
        # A query is multiplied with all keys number by number: the numbers of a place in a key lie
        # side by side.
        # what is allocated in that mode cannot be written to outside of it
        with torch.inference_mode(False):
            self.keys = torch.empty(rows, heads, size, room, device=device, dtype=dtype).transpose(
                -2, -1
            )
            self.values = torch.empty(rows, heads, room, size, device=device, dtype=dtype)
        #: keys and values of the memory, [B, n_kv_head, S, d_head] each, which stay the same while
        #: the output grows; None until they are computed, and in a model without an encoder
        self.cross: tuple[Tensor, Tensor] | None = None

    def copy(self, length: int) -> LayerCache:
        """A copy of the keys and values of the first `length` positions; unused room is not
        copied.
        """
        copied = self._with_room(self.keys.shape[2], length)
        copied.cross = self.cross
        return copied

    def _with_room(self, room: int, length: int) -> LayerCache:
        """The keys and values of the first `length` positions, in tensors with so much room."""
        rows, heads, _, size = self.keys.shape
        fresh = LayerCache(rows, heads, room, size, self.keys.device, self.keys.dtype)
        fresh.extend(self.keys[:, :, :length], self.values[:, :, :length], slice(0, length))
        return fresh

    def make_room(self, at: slice) -> None:
        """Have room for the positions `at`, the first that are not kept yet."""
        if at.stop > self.keys.shape[2]:
            larger = self._with_room(room_for(at.stop), at.start)
            self.keys = larger.keys
            self.values = larger.values

    def extend(self, k: Tensor, v: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Keep k and v [B, n_kv_head, T, d_head] of the positions `at`; return views of all up to
        there.
        """
        self.make_room(at)
        # `narrow` takes three quarters of the time of an index, and generation asks in every block
        # for every token.
        self.keys.narrow(2, at.start, k.shape[2]).copy_(k)
        self.values.narrow(2, at.start, v.shape[2]).copy_(v)
        return self.keys.narrow(2, 0, at.stop), self.values.narrow(2, 0, at.stop)


class KVCache:
    """The values that generation does not have to compute again: a `LayerCache` per block.

    It is for causal models: under a full mask every new token changes the keys of all tokens before
    it.

    Of each token it holds 2 · n_layer · batch · n_kv_head · d_head numbers. It begins with room for
    `room` tokens at least, where that is given, and takes more when it is full.
    """

    def __init__(
        self,
        config: Config,
        batch: int = 1,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        room: int | None = None,
    ) -> None:
        room = min(config.context_length, room_for(room or 1))
        heads = config.key_heads
        size = config.head_size
        self.layers = [
            LayerCache(batch, heads, room, size, device, dtype) for _ in range(config.n_layer)
        ]
        self.length = 0  #: how many tokens it holds
        #: of the tokens, [B, at least `length`, d_model], in models that smear: there a token reads
        #: the one before it
        self.vectors = torch.empty(batch, 0, config.d_model, device=device, dtype=dtype)

    @property
    def bytes_by_block(self) -> list[int]:
        """The memory that the keys and values it holds now take, in bytes, of each block; those of
        a memory not counted.
        """
        return [
            sum(kept[:, :, : self.length].nbytes for kept in (layer.keys, layer.values))
            for layer in self.layers
        ]

    def copy(self) -> KVCache:
        """The same keys and values in their own tensors, with as much room."""
        copied = copy(self)
        copied.layers = [layer.copy(self.length) for layer in self.layers]
        return copied

    def truncate(self, length: int) -> None:
        """Drop the tokens from position `length` on."""
        self.length = min(length, self.length)

    def reorder(self, rows: Tensor) -> None:
        """Replace the batch by these rows of it, [B]: the beams that remain. A row may occur
        several times or not at all.

        Keys and values of a memory are reordered too, unless all rows share one memory.
        """
        self.vectors = self.vectors[rows]
        for layer in self.layers:
            for kept in (layer.keys, layer.values):
                kept[:, :, : self.length] = kept[rows, :, : self.length]
            if layer.cross is not None and len(layer.cross[0]) > 1:
                layer.cross = layer.cross[0][rows], layer.cross[1][rows]


class AttentionBase(LightCall):
    """softmax(mask(q kᵀ / √d_head)) v, per head, projected back to the stream (Vaswani et al. 2017,
    section 3.2).

    Self-attention and cross-attention share this class; they differ in where q, k and v come from.
    Where there are fewer key heads than heads, each key head serves a group of n_head / n_kv_head
    neighbouring heads (Ainslie et al. 2023). In training, dropout may leave out weights of the
    softmax; the pattern that is recorded is the one before that.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.head_size = config.head_size
        self.scale = config.scale
        self.output = Linear(
            config.n_head * config.head_size, config.d_model, bias=config.output_bias
        )
        self.qk_norm = QK_NORMS[config.qk_norm].new(config)
        if config.score_cap is None:
            self.cap = None
        else:
            self.cap = SoftCap(config.score_cap)
        self.dropout = Dropout(config.attention_dropout)

    def heads(self, stacked: Tensor) -> Tensor:
        """[B, T, n · d_head] → [B, n, T, d_head]."""
        return stacked.view(*stacked.shape[:2], -1, self.head_size).transpose(1, 2)

    def multiply_grouped(self, rows: Tensor, shared: Tensor) -> Tensor:
        """Rows [B, H, T, n] times the matrix [B, n_kv_head, n, m] of the key head that serves each
        head → [B, H, T, m].
        """
        batch, heads, length, inner = rows.shape
        # `bmm` is what `matmul` comes to after some microseconds, which are many for a single
        # token.
        # one memory for all rows
        if len(shared) < batch:
            shared = shared.expand(batch, -1, -1, -1)
        else:
            shared = shared
        # [B · n_kv_head, H / n_kv_head · T, n]
        together = rows.reshape(batch * shared.shape[1], -1, inner)
        return torch.bmm(together, shared.flatten(0, 1)).view(batch, heads, length, -1)

    def shares(self, scores: Tensor, blocked: Tensor | None, tap: Tap) -> Tensor:
        """Scores → the pattern, both [B, H, T, keys]; `blocked` is as in `forward`."""
        scores = tap("scores", scores if self.cap is None else self.cap(scores))
        if blocked is None:
            return scores.softmax(-1)
        # `masked_fill` takes three times as long as a sum, so it is done only for one head.
        hidden = scores.new_zeros(blocked.shape).masked_fill_(blocked, float("-inf"))
        return (scores + hidden).softmax(-1)

    def read_values(self, pattern: Tensor, v: Tensor, tap: Tap) -> Tensor:
        """A pattern [B, H, T, keys] and values v [B, n_kv_head, keys, d_head] → `z` [B, H, T,
        d_head].
        """
        return self.multiply_grouped(self.dropout(tap("pattern", pattern)), v)

    def write(self, z: Tensor, tap: Tap) -> Tensor:
        """From the values that the heads read, `z` [B, H, T, d_head] → the output [B, T, d_model],
        by W_O.
        """
        z = tap("z", z)
        return tap("out", self.output(z.transpose(1, 2).flatten(2)))  # [B, T, d_model]


class Attention(AttentionBase):
    """Self-attention: queries, keys and values all come from the stream.

    W_Q, W_K and W_V are stacked in one matrix of (n_head + 2 n_kv_head) · d_head rows, so that one
    product projects a token.

    Every head has a score for every pair of tokens: over 8,192 tokens they take 270 MB a head.
    Under a causal mask they are computed for some queries after the other, with the keys up to the
    last of them, unless a tap needs all scores at once. Where a tap needs the whole pattern, that
    is put together of its parts: the scores are never all in memory in addition to it.
    """

    def __init__(
        self, config: Config, positions: PositionEncoding, *, embeds_values: bool = False
    ) -> None:
        super().__init__(config)
        self.qkv = Linear(
            config.d_model,
            (config.n_head + 2 * config.key_heads) * config.head_size,
            bias=config.qkv_bias,
        )
        self.n_head = config.n_head
        self.key_heads = config.key_heads
        self.looks_ahead = config.mask != "causal"
        self.positions = positions
        self.value_embed = ValueEmbedding(config) if embeds_values else None

    def forward(
        self,
        x: Tensor,
        ids: Tensor,
        blocked: Tensor | None,
        at: slice,
        cache: LayerCache | None,
        tap: Tap,
    ) -> Tensor:
        """x [B, T, d_model] → [B, T, d_model].

        Args:
            ids: the tokens [B, T], which embeddings of values read.
            blocked: true where a query must not look at a key, to be broadcast to [B, H, T, keys],
                or None if every query may look at every key.
            at: the positions of the tokens of x.
            cache: keys and values of all tokens before them; those of x are added to it.
        """
        stacked = self.heads(self.qkv(x))  # [B, H + 2 n_kv_head, T, d_head]
        n_head = self.n_head
        key_heads = self.key_heads
        unturned, v = stacked.split_with_sizes((n_head + key_heads, key_heads), dim=1)
        turned = self.positions.turn(self.qk_norm(unturned), at)  # [B, H + n_kv_head, T, d_head]
        q, k = turned.split_with_sizes((n_head, key_heads), dim=1)
        if self.value_embed is not None:
            v = v + self.value_embed(ids, x)
        q = tap("q", q)  # [B, H, T, d_head]
        k = tap("k", k)  # [B, n_kv_head, T, d_head]
        v = tap("v", v)  # [B, n_kv_head, T, d_head]
        if cache is not None:
            held = cache.extend(k, v, at)
            # else k and v are all there are, and the numbers are those of a pass without a cache to
            # the last digit
            if at.start:
                k, v = held  # [B, n_kv_head, keys, d_head]
        scaled = q * self.scale
        rows = queries_at_once(len(x) * n_head * k.shape[2])
        if x.shape[1] > rows and self._may_be_parted(tap):
            return self.write(
                self._read_parts(self._in_parts(scaled, k, blocked, at, rows, tap), scaled, v, tap),
                tap,
            )
        scores = self.multiply_grouped(scaled, k.transpose(-2, -1))  # [B, H, T, keys]
        return self.write(
            self.read_values(
                self.shares(self.positions.weigh(scores, scaled, at), blocked, tap), v, tap
            ),
            tap,
        )

    def _may_be_parted(self, tap: Tap) -> bool:
        if self.training or self.looks_ahead or tap.needs_whole("scores"):
            return False
        # The derivative of a whole that was put together of parts would be as large as the whole,
        # for each of the parts.
        return not (torch.is_grad_enabled() and tap.needs_whole("pattern"))

    def _read_parts(
        self, parts: Iterator[tuple[slice, Tensor]], q: Tensor, v: Tensor, tap: Tap
    ) -> Tensor:
        """The `z` [B, H, T, d_head] of the queries q [B, H, T, d_head], whose pattern [B, H,
        queries, end] comes in parts, of values v [B, n_kv_head, keys, d_head].
        """
        if not tap.needs_whole("pattern"):
            # A token's heads are put side by side, as `write` wants them.
            read = [
                self.read_values(part, v[:, :, : part.shape[3]], tap).transpose(1, 2)
                for _, part in parts
            ]
            return torch.cat(read, dim=1).transpose(1, 2)
        pattern = q.new_zeros(*q.shape[:3], v.shape[2])  # [B, H, T, keys]
        for queries, part in parts:
            pattern[:, :, queries, : part.shape[3]] = part
        return self.read_values(pattern, v, tap)

    def _in_parts(
        self, q: Tensor, k: Tensor, blocked: Tensor | None, at: slice, each: int, tap: Tap
    ) -> Iterator[tuple[slice, Tensor]]:
        """Some queries after the other, `each` in a part, with their pattern [B, H, queries, end],
        which has no key after the last query of the part; q [B, H, T, d_head] is already times the
        scale, k is [B, n_kv_head, keys, d_head].
        """
        length = q.shape[2]
        for start in range(0, length, each):
            stop = min(start + each, length)
            end = at.start + stop
            rows = q[:, :, start:stop]
            scores = self.multiply_grouped(
                rows, k[:, :, :end].transpose(-2, -1)
            )  # [B, H, queries, end]
            scores = self.positions.weigh(scores, rows, slice(at.start + start, end))
            hidden = None if blocked is None else blocked[start:stop, :end]
            yield slice(start, stop), self.shares(scores, hidden, tap)


class CrossAttention(AttentionBase):
    """Queries come from the stream, keys and values from an encoder's memory.

    These are two different texts, so a token of one has no distance to a token of the other:
    positions that act on queries, keys or scores do nothing here.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.q = Linear(config.d_model, config.n_head * config.head_size, bias=config.qkv_bias)
        self.kv = Linear(
            config.d_model, 2 * config.key_heads * config.head_size, bias=config.qkv_bias
        )

    def forward(self, x: Tensor, memory: Memory, cache: LayerCache | None, tap: Tap) -> Tensor:
        """x [B, T, d_model] → [B, T, d_model].

        Args:
            memory: of [B, S, d_model], or of [1, S, d_model] for all rows.
            cache: keeps the keys and values of the memory once they are computed.
        """
        q = tap("q", self.qk_norm(self.heads(self.q(x))))  # [B, H, T, d_head]
        if cache is None or cache.cross is None:
            # [B, n_kv_head, S, d_head] each
            k, v = self.heads(self.kv(memory.states)).chunk(2, dim=1)
            k = self.qk_norm(k)
            if cache is not None:
                cache.cross = k, v
        else:
            k, v = cache.cross
        k = tap("k", k)
        v = tap("v", v)
        scores = self.multiply_grouped(q * self.scale, k.transpose(-2, -1))  # [B, H, T, S]
        return self.write(self.read_values(self.shares(scores, memory.blocked, tap), v, tap), tap)
