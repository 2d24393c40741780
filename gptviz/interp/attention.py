"""What each head looks at: the patterns of every head from one forward pass, pooled to thumbnails and summed up in facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.labelled import Axis, Labelled
from gptviz.model import Record, Transformer

UNIT = "attention (share of the row, 0 … 1)"
QUERY = "query (reads)"
KEY = "key (is read)"

# The cells of a picture of all heads, along its longer side: about the pixels it has on a page, since more of them would
# cost time and then be dropped by the screen.
CELLS_ACROSS = 264
SMALLEST_SIDE = 8


@dataclass(frozen=True)
class Patterns:
    """The attention of every head over one text.

    Attributes:
        blocks: for each block its patterns [n_head, query, key], each row sums to 1. Shared: not to be written to.
        blocked: where the model's mask forbids a query to look at a key [query, key]; None where all may look at all.
    """

    blocks: tuple[npt.NDArray[np.float32], ...]
    blocked: npt.NDArray[np.bool_] | None

    @property
    def n_tokens(self) -> int:
        """How many tokens were read."""
        return self.blocks[0].shape[-1]

    @property
    def n_head(self) -> int:
        """How many heads each block has."""
        return len(self.blocks[0])


@torch.inference_mode()
def patterns(model: Transformer, ids: Sequence[int], source: Sequence[int] | None = None) -> Patterns:
    """The patterns of self-attention of all heads over `ids`, from one forward pass of `model`.

    An encoder–decoder's decoder reads `ids` beside the `source`, which its encoder reads; the patterns of the encoder are
    those of `model.encoder` over the source. Padding is read by nobody, and its own rows mean nothing: both are masked.

    Raises:
        ValueError: the model has no block, hence no attention, or more ids than the context holds; or a source is lacking.
    """
    if not model.config.n_layer:
        raise ValueError("this model has no blocks, hence no attention")
    device = model.embed.weight.device
    batch = torch.tensor([ids], device=device)  # [1, T]
    beside = None if source is None else torch.tensor([source], device=device)  # [1, S]
    record = Record(["blocks.*.attention.pattern"])
    # The unembedding is a large share of the work, and no pattern depends on it.
    model(batch, beside, tap=record, logits_at=slice(-1, None))
    return Patterns(
        tuple(
            record.values[f"blocks.{block}.attention.pattern"][0].float().cpu().numpy() for block in range(model.config.n_layer)
        ),
        _blocked(model, batch.cpu()),
    )


def _blocked(model: Transformer, ids: Tensor) -> npt.NDArray[np.bool_] | None:
    """Where [query, key] the model's mask forbids to look, over `ids` [1, T], or where one of the two is padding."""
    padding = model.config.padding
    is_padding = torch.zeros_like(ids[0], dtype=torch.bool) if padding is None else ids[0] == padding  # [T]
    later = model.mask(ids, slice(0, ids.shape[1]), None)
    blocked = is_padding[:, None] | is_padding
    blocked = blocked if later is None else blocked | later
    return blocked.numpy() if blocked.any() else None


def one_head(patterns: Patterns, block: int, head: int, labels: Sequence[str]) -> Labelled:
    """The pattern of one head [query, key], its tokens called `labels`; NaN where the mask forbids to look."""
    values = patterns.blocks[block][head].copy()
    if patterns.blocked is not None:
        values[patterns.blocked] = np.nan
    return Labelled(values, (Axis(QUERY, tuple(labels)), Axis(KEY, tuple(labels))), UNIT)


def pooling(patterns: Patterns) -> int:
    """How many tokens a cell of a thumbnail stands for, down and across: 1 where all fit."""
    side = max(SMALLEST_SIDE, CELLS_ACROSS // max(len(patterns.blocks), patterns.n_head))
    return -(-patterns.n_tokens // side)


def thumbnails(patterns: Patterns) -> Labelled:
    """All heads [block, head, query, key], each pooled to a thumbnail.

    A cell is the largest value of the `pooling` × `pooling` it stands for, so that no bright spot is lost; it is NaN
    where the mask forbids all of them. The labels of a pooled axis are ranges of positions.
    """
    n_tokens, pool = patterns.n_tokens, pooling(patterns)
    values = np.stack([_largest(torch.from_numpy(block), pool).numpy() for block in patterns.blocks])
    if patterns.blocked is not None:
        open_to_any = _largest(torch.from_numpy(~patterns.blocked).float()[None], pool)[0].numpy()
        values[:, :, open_to_any == 0] = np.nan
    starts = range(0, n_tokens, pool)
    ranges = tuple(str(i) if pool == 1 else f"{i}–{min(i + pool, n_tokens) - 1}" for i in starts)
    numbers = [tuple(map(str, range(count))) for count in values.shape[:2]]
    axes = (Axis("block", numbers[0]), Axis("head", numbers[1]), Axis(QUERY, ranges), Axis(KEY, ranges))
    return Labelled(values, axes, UNIT if pool == 1 else f"{UNIT}, largest of {pool} × {pool}")


def _largest(values: Tensor, pool: int) -> Tensor:
    """[n, T, T] → [n, ⌈T / pool⌉, ⌈T / pool⌉], the largest of each square."""
    return F.max_pool2d(values, pool, ceil_mode=True) if pool > 1 else values


@dataclass(frozen=True)
class Facts:
    """Where each head looks on average: arrays [block, head] over all queries but the first, which has none before it.

    Attributes:
        previous: share of the row on the token just before the query.
        first: share on the first token of the text.
        itself: share on the query's own token.
        spread: among how many tokens a row is shared out: e to the mean entropy; 1 is a single token.
    """

    previous: npt.NDArray[np.float32]
    first: npt.NDArray[np.float32]
    itself: npt.NDArray[np.float32]
    spread: npt.NDArray[np.float32]

    def phrases(self, block: int, head: int) -> tuple[str, ...]:
        """The facts of one head in words, each to follow "on average"."""
        at = block, head
        return (
            f"spread over {self.spread[at]:.1f} tokens",
            f"{self.previous[at]:.0%} on the token before",
            f"{self.first[at]:.0%} on the first token",
            f"{self.itself[at]:.0%} on itself",
        )


def strongest(values: npt.NDArray[np.float32]) -> tuple[int, int]:
    """Block and head of the largest of `values` [block, head]."""
    block, head = np.unravel_index(values.argmax(), values.shape)
    return int(block), int(head)


def facts(patterns: Patterns) -> Facts | None:
    """The facts of every head; None for a single token, which has nothing else to look at."""
    if patterns.n_tokens < 2:
        return None

    def per_head(block: npt.NDArray[np.float32]) -> list[Tensor]:
        rows = torch.from_numpy(block)[:, 1:]  # [n_head, T - 1, T]
        previous, itself = rows.diagonal(0, 1, 2), rows.diagonal(1, 1, 2)  # [n_head, T - 1]
        entropy = torch.special.entr(rows).sum(-1)  # [n_head, T - 1]
        return [previous.mean(-1), rows[:, :, 0].mean(-1), itself.mean(-1), entropy.mean(-1).exp()]

    columns = zip(*(per_head(block) for block in patterns.blocks), strict=True)
    return Facts(*(torch.stack(column).numpy() for column in columns))
