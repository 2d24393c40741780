"""Attention: the patterns of every head from one forward pass, the numbers they are computed from, and summaries of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Record, Transformer
from gptviz.model.attention import Attention

Part = Literal["attention", "cross_attention"]
Numbers = npt.NDArray[np.float32]

UNIT = "attention (share of the row, 0 … 1)"
QUERY = "query (reads)"
KEY = "key (is read)"

# The number of cells along the longer side of a picture of all heads. It is about the number of pixels that the picture has on
# a page: more cells would cost time, and the screen could not show them.
CELLS_ACROSS = 264
SMALLEST_SIDE = 8


@dataclass(frozen=True)
class Patterns:
    """The attention of every head over one text.

    Attributes:
        blocks: for each block its patterns [n_head, query, key]; each row sums to 1. Shared: do not write to them.
        blocked: [query, key], true where the masks of all blocks forbid a query to look at a key; None where nothing is
            forbidden.
        windows: for each block how many keys its window leaves a query, None for no window; empty where no block has one.
    """

    blocks: tuple[npt.NDArray[np.float32], ...]
    blocked: npt.NDArray[np.bool_] | None
    windows: tuple[int | None, ...] = ()

    def blocked_in(self, block: int) -> npt.NDArray[np.bool_] | None:
        """Where the mask of this block forbids a query to look at a key [query, key]; None where nothing is forbidden."""
        window = self.windows[block] if self.windows else None
        if window is None:
            return self.blocked
        far = np.arange(self.n_tokens)[:, None] - np.arange(self.n_tokens) >= window
        return far if self.blocked is None else self.blocked | far

    @property
    def n_tokens(self) -> int:
        """The number of keys: of tokens that can be looked at."""
        return self.blocks[0].shape[-1]

    @property
    def n_head(self) -> int:
        """How many heads each block has."""
        return len(self.blocks[0])


@torch.inference_mode()
def patterns(model: Transformer, ids: Sequence[int], source: Sequence[int] | None = None) -> Patterns:
    """The patterns of self-attention of all heads over `ids`, from one forward pass of `model`.

    For the patterns of an encoder, call this with `model.encoder` and the ids of the source. No token looks at padding, and the
    rows of padding mean nothing: both are masked.

    Args:
        ids: the tokens that the model reads; in an encoder–decoder, those that its decoder reads.
        source: the tokens that the encoder of an encoder–decoder reads.

    Raises:
        ValueError: the model has no blocks and so no attention, there are more ids than the context holds, or an
            encoder–decoder was given no source.
    """
    record, blocked = _recorded(model, ids, source, ["blocks.*.attention.pattern"])
    names = [f"blocks.{block}.attention.pattern" for block in range(model.config.n_layer)]
    return Patterns(tuple(_numbers(record.values[name][0]) for name in names), blocked, _windows(model))


def _windows(model: Transformer) -> tuple[int | None, ...]:
    """For each block how many keys its window leaves a query; None for no window."""
    return tuple(model.config.window if model.config.windowed(block) else None for block in range(model.config.n_layer))


def _recorded(
    model: Transformer, ids: Sequence[int], source: Sequence[int] | None, names: Sequence[str]
) -> tuple[Record, npt.NDArray[np.bool_] | None]:
    """The values called `names` from one forward pass, and the mask [query, key] of self-attention over `ids`: true where a
    query may not look.
    """
    if not model.config.n_layer:
        raise ValueError("this model has no blocks and therefore no attention")
    device = model.embed.weight.device
    batch = torch.tensor([ids], device=device)  # [1, T]
    beside = None if source is None else torch.tensor([source], device=device)  # [1, S]
    record = Record(names)
    # No pattern depends on the unembedding, which is a large share of the work: it is computed for one token only.
    model(batch, beside, tap=record, logits_at=slice(-1, None))
    return record, _blocked(model, batch.cpu())


def _numbers(tensor: Tensor) -> Numbers:
    return tensor.float().cpu().numpy()


def _blocked(model: Transformer, ids: Tensor) -> npt.NDArray[np.bool_] | None:
    """The mask [query, key] over `ids` [1, T]: true where the masks of all blocks forbid to look, or where either is padding.

    Where only some blocks have a window, their patterns are 0 beyond it.
    """
    padding = model.config.padding
    is_padding = torch.zeros_like(ids[0], dtype=torch.bool) if padding is None else ids[0] == padding  # [T]
    seen = torch.zeros(len(is_padding), len(is_padding), dtype=torch.bool)
    for mask in model.masks:
        hidden = mask(ids, slice(0, ids.shape[1]), None)
        seen = torch.ones_like(seen) if hidden is None else seen | ~hidden
    blocked = is_padding[:, None] | is_padding | ~seen
    return blocked.numpy() if blocked.any() else None


def one_head(patterns: Patterns, block: int, head: int, labels: Sequence[str]) -> LabelledArray:
    """The pattern of one head [query, key], with `labels` on both axes; NaN where the mask forbids to look."""
    values = patterns.blocks[block][head].copy()
    if (blocked := patterns.blocked_in(block)) is not None:
        values[blocked] = np.nan
    return LabelledArray(values, (Axis(QUERY, tuple(labels)), Axis(KEY, tuple(labels))), UNIT)


@dataclass(frozen=True)
class Reading:
    """What the patterns of a stack's heads over one text are computed from, and the length of what each key adds.

    Attributes:
        patterns: what every head looks at.
        q: [n_block, n_head, queries, d_head], the queries after rotation and normalisation, as the scores use them.
        k: [n_block, n_head, keys, d_head], the keys, likewise; heads that share keys have equal ones.
        position: [n_block, n_head, queries, keys], what positions add to the scores; None where they act elsewhere.
        moved: [n_block, n_head, keys], ‖v W_O‖: the length of the vector that a head adds to the stream when it looks at this
            key alone, without the bias.
        scale: what q · k is multiplied by: 1 / √d_head unless the model says otherwise.
        cap: where a model caps its scores s, they are cap · tanh(s / cap).
    """

    patterns: Patterns
    q: Numbers
    k: Numbers
    position: Numbers | None
    moved: Numbers
    scale: float
    cap: float | None = None

    def _seen(self, values: Numbers, block: int) -> Numbers:
        """The values [query, key] of a block, NaN where its mask forbids to look."""
        blocked = self.patterns.blocked_in(block)
        return values if blocked is None else np.where(blocked, np.float32(np.nan), values)

    def pattern(self, block: int, head: int | None) -> Numbers:
        """The pattern [query, key] of a head, or the mean over the heads of the block where `head` is None.

        Here and in the methods below, values are NaN where the mask forbids to look.
        """
        of = self.patterns.blocks[block]
        return self._seen(of.mean(0) if head is None else of[head], block)

    def scores(self, block: int, head: int) -> Numbers:
        """The scores [query, key]: scale · q · k, plus what positions add. The softmax of a row is a row of the pattern."""
        scores = self.q[block, head] @ self.k[block, head].T * np.float32(self.scale)
        scores = scores if self.position is None else scores + self.position[block, head]
        return self._seen(scores if self.cap is None else np.float32(self.cap) * np.tanh(scores / np.float32(self.cap)), block)

    def value_weighted(self, block: int, head: int | None) -> Numbers:
        """‖pattern · v W_O‖ [query, key]: the length of the vector that a key adds to the stream at a query.

        Where `head` is None, the mean of these lengths over the heads of the block.

        Source: Kobayashi et al. 2020, "Attention is not only a weight".
        """
        some = slice(None) if head is None else slice(head, head + 1)
        return self._seen((self.patterns.blocks[block][some] * self.moved[block, some, None]).mean(0), block)

    def rollout(self, block: int) -> Numbers:
        """Attention rollout up to this block [query, key]: see the function `rollout`."""
        far = rollout(self.patterns)[block]  # through several blocks more than the window of one
        return far if self.patterns.blocked is None else np.where(self.patterns.blocked, np.float32(np.nan), far)


@torch.inference_mode()
def read(model: Transformer, ids: Sequence[int], source: Sequence[int] | None = None, part: Part = "attention") -> Reading:
    """The patterns of all heads with the queries, keys and values they are computed from, in one forward pass.

    Args:
        ids: as in `patterns`.
        source: as in `patterns`.
        part: self-attention, or the cross-attention of a decoder, whose keys are the tokens of the `source`.

    Raises:
        ValueError: as in `patterns`, or the model has no cross-attention.
    """
    if part == "cross_attention" and model.encoder is None:
        raise ValueError("this model has no cross-attention: it has no encoder to look into")
    taps = ("pattern", "q", "k", "v")
    record, blocked = _recorded(model, ids, source, [f"blocks.*.{part}.{tap}" for tap in taps])
    tapped = {tap: [record.values[f"blocks.{i}.{part}.{tap}"][0] for i in range(model.config.n_layer)] for tap in taps}
    if part == "cross_attention":
        blocked = _padded(model, source or ())
    group = model.config.n_head // model.config.key_heads  # heads that share keys and values
    values = [v.repeat_interleave(group, dim=0) for v in tapped["v"]]
    return Reading(
        Patterns(tuple(map(_numbers, tapped["pattern"])), blocked, _windows(model) if part == "attention" else ()),
        _numbers(torch.stack(tapped["q"])),
        _numbers(torch.stack(tapped["k"]).repeat_interleave(group, dim=1)),
        _position_terms(model, tapped["q"]) if part == "attention" else None,
        np.stack([_moved(getattr(block, part).output.weight, v) for block, v in zip(model.blocks, values, strict=True)]),
        model.config.scale,
        model.config.score_cap,
    )


def _padded(model: Transformer, source: Sequence[int]) -> npt.NDArray[np.bool_] | None:
    """The mask [1, S] of a source: true where it is padding; None where it has no padding."""
    padded = np.array([source]) == model.config.padding
    return padded if padded.any() else None


def _position_terms(model: Transformer, q: Sequence[Tensor]) -> Numbers | None:
    """What positions add to the scores, [n_block, n_head, T, T]; None where they add nothing.

    Args:
        q: for each block its queries [n_head, T, d_head].
    """
    parts = [cast(Attention, block.attention).positions for block in model.blocks]
    if any(part.acts_on != "scores" for part in parts):
        return None
    n_tokens, scale = q[0].shape[-2], model.config.scale
    none = q[0].new_zeros(1, len(q[0]), n_tokens, n_tokens)
    terms = [part.weigh(none, one[None] * scale, slice(0, n_tokens)) for part, one in zip(parts, q, strict=True)]
    return _numbers(torch.cat(terms))


def _moved(output: Tensor, v: Tensor) -> Numbers:
    """‖v W_O‖ [n_head, keys] for the values `v` [n_head, keys, d_head].

    Args:
        output: W_O, [d_model, n_head · d_head]. Each head has its own columns in it.
    """
    n_head, _, d_head = v.shape
    slices = output.view(-1, n_head, d_head).permute(1, 2, 0)  # [n_head, d_head, d_model]
    return _numbers((v @ slices).norm(dim=-1))


def rollout(patterns: Patterns) -> Numbers:
    """Attention rollout [block, query, key]: how much of each key's token a query's position holds after each block, if nothing
    but attention moved information. Rows sum to 1. Only for self-attention.

    For each block, the mean of its heads and the identity (the residual connection) count one half each; these matrices are
    multiplied from the first block up.

    Source: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers".
    """
    itself = np.eye(patterns.n_tokens)
    through, rollouts = itself, []
    for block in patterns.blocks:
        through = (block.mean(0, dtype=np.float64) / 2 + itself / 2) @ through
        rollouts.append(through.astype(np.float32))
    return np.stack(rollouts)


def spread(patterns: Patterns) -> Numbers:
    """Over how many keys a head spreads its attention: e to the mean entropy (in nats) of its rows, [block, head]."""
    entropy = [torch.special.entr(torch.from_numpy(block)).sum(-1).mean(-1) for block in patterns.blocks]
    return torch.stack(entropy).exp().numpy()


def pooling(patterns: Patterns) -> int:
    """How many tokens one cell of a thumbnail stands for along each axis; 1 where every token has a cell."""
    side = max(SMALLEST_SIDE, CELLS_ACROSS // max(len(patterns.blocks), patterns.n_head))
    return -(-max(patterns.blocks[0].shape[1:]) // side)


def thumbnails(patterns: Patterns) -> LabelledArray:
    """All heads [block, head, query, key], each pooled to a thumbnail.

    A cell is the largest of the `pooling` × `pooling` values it stands for, so that no bright spot is lost. It is NaN where the
    mask forbids all of them. The labels of a pooled axis are ranges of positions.
    """
    pool = pooling(patterns)
    values = np.stack([_largest(torch.from_numpy(block), pool).numpy() for block in patterns.blocks])
    sizes = patterns.blocks[0].shape[1:]
    for block, shown in enumerate(values):
        if (blocked := patterns.blocked_in(block)) is not None:
            visible = torch.from_numpy(~np.broadcast_to(blocked, sizes))
            shown[:, _largest(visible.float()[None], pool)[0].numpy() == 0] = np.nan
    queries, keys = ([_range(start, pool, size) for start in range(0, size, pool)] for size in sizes)
    numbers = [tuple(map(str, range(count))) for count in values.shape[:2]]
    axes = (Axis("block", numbers[0]), Axis("head", numbers[1]), Axis(QUERY, tuple(queries)), Axis(KEY, tuple(keys)))
    return LabelledArray(values, axes, UNIT if pool == 1 else f"{UNIT}, largest of {pool} × {pool}")


def _range(start: int, pool: int, size: int) -> str:
    """The positions that a cell of a thumbnail stands for."""
    return str(start) if pool == 1 else f"{start}–{min(start + pool, size) - 1}"


def _largest(values: Tensor, pool: int) -> Tensor:
    """The largest value of each square of `pool` × `pool`: [n, T, T] → [n, ⌈T / pool⌉, ⌈T / pool⌉]."""
    return F.max_pool2d(values, pool, ceil_mode=True) if pool > 1 else values


@dataclass(frozen=True)
class Facts:
    """Where each head looks on average over all queries but the first, which has no token before it. Arrays are [block, head].

    Attributes:
        previous: the share of the row on the token just before the query.
        first: the share on the first token of the text.
        itself: the share on the query's own token.
        spread: over how many tokens a row is spread: e to the mean entropy (in nats); 1 is a single token.
    """

    previous: npt.NDArray[np.float32]
    first: npt.NDArray[np.float32]
    itself: npt.NDArray[np.float32]
    spread: npt.NDArray[np.float32]


def strongest(values: npt.NDArray[np.float32]) -> tuple[int, int]:
    """The block and the head with the largest of `values` [block, head]."""
    block, head = np.unravel_index(values.argmax(), values.shape)
    return int(block), int(head)


def facts(patterns: Patterns) -> Facts | None:
    """The facts about every head; None for a text of one token, which can look only at itself."""
    if patterns.n_tokens < 2:
        return None

    def per_head(block: npt.NDArray[np.float32]) -> list[Tensor]:
        rows = torch.from_numpy(block)[:, 1:]  # [n_head, T - 1, T]
        previous, itself = rows.diagonal(0, 1, 2), rows.diagonal(1, 1, 2)  # [n_head, T - 1]
        entropy = torch.special.entr(rows).sum(-1)  # [n_head, T - 1]
        return [previous.mean(-1), rows[:, :, 0].mean(-1), itself.mean(-1), entropy.mean(-1).exp()]

    columns = zip(*(per_head(block) for block in patterns.blocks), strict=True)
    return Facts(*(torch.stack(column).numpy() for column in columns))
