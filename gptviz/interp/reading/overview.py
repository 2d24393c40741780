"""All heads at a glance: a small picture of each, and where it looks on average.

They are computed block by block while the model runs, so that the patterns of all blocks need never
be in memory together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.labelled_array import Axis, Float32Array, LabelledArray, number_axis
from gptviz.model import Transformer

from ..units import head_scores
from .attention import (
    KEY,
    NOTHING,
    QUERY,
    UNIT,
    AttentionPart,
    Midway,
    Patterns,
    blocked_everywhere,
    padding_mask,
    watch,
    windows,
)

# The number of cells along the longer side of a picture of all heads. It is about the number of
# pixels that the picture has on a page: more cells would cost time, and the screen could not show
# them.
CELLS_ACROSS = 264
# A page of many blocks scrolls rather than show less than this of each head.
SMALLEST_SIDE = 16
# About this many numbers of a pattern are computed with at a time.
AT_ONCE = 2**18


def pooling(n_block: int, n_head: int, n_tokens: int) -> int:
    """How many tokens one cell of a thumbnail stands for, with so many heads and tokens; 1 where
    every token has a cell.
    """
    side = max(SMALLEST_SIDE, CELLS_ACROSS // max(n_block, n_head))
    return -(-n_tokens // side)


@dataclass(frozen=True)
class Facts:
    """Where each head looks on average over all queries but the first, which has no token before
    it. Arrays are [block, head].
    """

    previous: Float32Array  #: the share of the row on the token just before the query
    first: Float32Array  #: the share on the first token of the text
    itself: Float32Array  #: the share on the query's own token
    #: over how many tokens a row is spread: e to the mean entropy (in nats); 1 is a single token
    spread: Float32Array
    #: the share on tokens that followed the query's token where it stood earlier in the text, over
    #: the queries whose token did, or None if no token of the text comes back. In "the cat sat;
    #: the", the last "the" has "cat".
    followed: Float32Array | None


@dataclass(frozen=True)
class Overview:
    """All heads of a stack over one text."""

    #: every head [block, head, query, key], pooled: a cell is the largest of the `pooling` ×
    #: `pooling` values it stands for, so that no bright spot is lost. It is NaN where the mask
    #: forbids all of them. The labels of a pooled axis are ranges of positions.
    thumbnails: LabelledArray
    #: the same of the shares of what a row has left without the first token, which is NaN; None for
    #: cross-attention, and for texts too short
    without_first: Float32Array | None
    #: how many tokens a cell of a thumbnail stands for along each axis; 1 where every token has a
    #: cell
    pooling: int
    #: over how many keys a head spreads its attention: e to the mean entropy (in nats) of its rows,
    #: [block, head]
    spread: Float32Array
    #: None for cross-attention, and for a text of one token, which can look only at itself
    facts: Facts | None
    #: what `Facts.followed` would be if every query shared its attention evenly; NaN where that is
    #: None
    evenly: float
    #: the share that a query would then give to each key that it may read, averaged as `Facts` are;
    #: NaN where `facts` is None
    alike: float
    last: Float32Array  #: [block, head, key], what the last token looks at
    n_queries: int  #: how many tokens look
    #: where the pass can go on to read one of its blocks, or None if all patterns are in memory
    midway: Midway | None = None


@torch.inference_mode()
def overview(
    model: Transformer,
    ids: Sequence[int],
    source: Sequence[int] | None = None,
    part: AttentionPart = "attention",
) -> Overview:
    """All heads over a text, from one pass that holds the patterns of one block; arguments and
    errors as in `attention.read`.
    """
    alone = part == "attention"
    if alone:
        hidden = blocked_everywhere(model, ids)
    else:
        hidden = padding_mask(model, source or ())
    far = windows(model) if alone else ()
    n_keys = len(ids) if alone else len(source or ())
    looks = _Looks(
        pooling(model.config.n_layer, model.config.n_head, max(len(ids), n_keys)),
        ids if alone else None,
    )

    midway = Midway(model, len(ids), part)

    def see(block: int, name: str, value: Tensor) -> None:
        if name == "pattern":
            looks.add(Patterns((value[0].float().cpu().numpy(),), hidden, far[block : block + 1]))
        midway.see(block, name, value)

    names = [f"blocks.*.{part}.pattern", "blocks.*.resid_post"]
    watch(model, ids, source, names, see, f"blocks.{model.config.n_layer - 1}.{part}.pattern")
    return replace(looks.overview(), midway=midway)


def overview_of(patterns: Patterns, ids: Sequence[int] | None) -> Overview:
    """The same, from patterns in memory, of the blocks shown; `ids` are the tokens that were read,
    None for cross-attention.
    """
    looks = _Looks(
        pooling(len(patterns.blocks), patterns.n_head, max(patterns.blocks[0].shape[1:])), ids
    )
    for block, values in enumerate(patterns.blocks):
        looks.add(Patterns((values,), patterns.blocked, patterns.windows[block : block + 1]))
    return looks.overview()


class _Looks:
    """An overview that grows block by block."""

    def __init__(self, pool: int, ids: Sequence[int] | None) -> None:
        self.pool = pool  # how many tokens a cell stands for
        self.has_facts = ids is not None and len(ids) > 1
        if ids is None:
            followers = None
        else:
            followers = head_scores.followers(torch.tensor(ids))
        self.followers = followers if followers is not None and followers.any() else None
        self.sizes = 0, 0  # queries, keys
        self.visible: Tensor | None = None  # [query, key], in the first block
        self.columns: dict[str, list[Tensor]] = {}

    def add(self, block: Patterns) -> None:
        """Look at the patterns of the next block. Head by head: a long text has large ones."""
        hidden = block.blocked_in(0)
        self.sizes = block.blocks[0].shape[1], block.blocks[0].shape[2]
        if hidden is None:
            seen = None
        else:
            seen = torch.from_numpy(~np.broadcast_to(hidden, self.sizes))
        if self.visible is None:
            if seen is None:
                self.visible = torch.ones(self.sizes, dtype=torch.bool)
            else:
                self.visible = seen
        heads = [self._head(values, seen) for values in torch.from_numpy(block.blocks[0])]
        for name in heads[0]:
            self.columns.setdefault(name, []).append(torch.stack([head[name] for head in heads]))

    def _head(self, values: Tensor, seen: Tensor | None) -> dict[str, Tensor]:
        """The facts about one head, from its pattern [query, key] and where its mask lets it look
        [query, key].
        """
        rows = self.pool * max(1, AT_ONCE // (self.pool * values.shape[1]))
        parts = [
            self._rows(values, seen, slice(start, start + rows))
            for start in range(0, len(values), rows)
        ]
        of = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        facts = {
            "small": of["small"],
            "spread": of["entropy"].mean().exp(),
            "last": values[-1].clone(),
        }
        if not self.has_facts:
            return facts
        looks = {
            "previous": head_scores.previous_token,
            "first": head_scores.first_token,
            "itself": head_scores.own_token,
        }
        facts |= {name: of_queries(values).mean() for name, of_queries in looks.items()}
        facts |= {"alone": of["entropy"][1:].mean().exp(), "rest": of["rest"]}
        if self.followers is not None:
            facts["followed"] = of["followed"][self.followers.any(-1)].mean()
        return facts

    def _rows(self, values: Tensor, seen: Tensor | None, at: slice) -> dict[str, Tensor]:
        """The same of some rows. Only they are computed with at a time: large arrays that come and
        go leave holes in the memory of a server's threads, which the machine does not get back.
        """
        rows = values[at]
        visible = None if seen is None else seen[at]
        facts = {
            "entropy": torch.special.entr(rows).sum(-1),
            "small": pool_pattern(rows, visible, self.pool),
        }
        if not self.has_facts:
            return facts
        if self.followers is not None:
            facts["followed"] = (rows * self.followers[at]).sum(-1)
        if visible is None:
            left = torch.ones_like(rows, dtype=torch.bool)
        else:
            left = visible.clone()
        left[:, 0] = False
        # more exact than 1 minus the first share, where that is nearly 1
        others = rows[:, 1:].sum(-1, keepdim=True)
        left &= others > NOTHING
        rest = (rows / others.clamp(min=NOTHING)).masked_fill(~left, 0)
        return facts | {"rest": pool_pattern(rest, left, self.pool)}

    def overview(self) -> Overview:
        """The overview of all blocks that were seen."""
        of = {name: torch.stack(values).numpy() for name, values in self.columns.items()}
        pool, (queries, keys) = self.pool, self.sizes
        ranges = [
            [
                str(start) if pool == 1 else f"{start}–{min(start + pool, size) - 1}"
                for start in range(0, size, pool)
            ]
            for size in (queries, keys)
        ]
        places = [
            Axis(name, tuple(labels)) for name, labels in zip((QUERY, KEY), ranges, strict=True)
        ]
        axes = (*map(number_axis, ("block", "head"), of["small"].shape), *places)
        facts = None
        if self.has_facts:
            facts = Facts(
                of["previous"], of["first"], of["itself"], of["alone"], of.get("followed")
            )
        if pool == 1:
            unit = UNIT
        else:
            unit = f"{UNIT}, largest of {pool} × {pool}"
        assert self.visible is not None, "no block was added"
        even = math.nan
        if self.followers is not None:
            share = (self.followers & self.visible).sum(-1) / self.visible.sum(-1).clamp(min=1)
            even = float(share[self.followers.any(-1)].mean())
        if self.has_facts:
            alike = float((1 / self.visible[1:].sum(-1).clamp(min=1)).mean())
        else:
            alike = math.nan
        small = LabelledArray(of["small"], axes, unit)
        return Overview(
            small,
            of.get("rest") if keys > 2 else None,
            pool,
            of["spread"],
            facts,
            even,
            alike,
            of["last"],
            queries,
        )


def pool_pattern(values: Tensor, seen: Tensor | None, pool: int) -> Tensor:
    """The largest value of each square of `pool` × `pool` of `values` [query, key], NaN where
    nothing of it may be `seen`.
    """
    small = _pool_largest(values, pool).clone()
    if seen is not None:
        small[~_pool_largest(seen, pool)] = math.nan
    return small


def _pool_largest(values: Tensor, pool: int) -> Tensor:
    """The largest of each square. It takes half the time of `max_pool2d`, and numbers that are true
    or false too.
    """
    if pool == 1:
        return values
    least = False if values.dtype == torch.bool else -math.inf
    rows, columns = values.shape
    down = F.pad(values, (0, 0, 0, -rows % pool), value=least).unflatten(0, (-1, pool)).amax(1)
    return F.pad(down, (0, -columns % pool), value=least).unflatten(1, (-1, pool)).amax(-1)


def largest_head(values: Float32Array) -> tuple[int, int]:
    """The block and the head with the largest of `values` [block, head]."""
    block, head = np.unravel_index(values.argmax(), values.shape)
    return int(block), int(head)


def read_most(seen: Overview) -> Float32Array:
    """What the last token looks at, [block, head, key], where that says something: without the
    first token, on which heads rest that find nothing to read, and without the token itself, unless
    nothing else is read. In cross-attention all keys count.
    """
    shares = np.nan_to_num(seen.last)
    others = shares.copy()
    if seen.facts is not None:
        others[..., [0, -1]] = 0
    return others if others.any() else shares


def clearest_head(seen: Overview) -> tuple[int, int]:
    """The block and the head whose last token gives most to a single other one, see `read_most`."""
    return largest_head(read_most(seen).max(-1))
