"""Attention: the patterns of every head from one forward pass, and the numbers they are computed
from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float32Array, LabelledArray
from gptviz.machine.memory import FLOAT32
from gptviz.model import EnoughError, Transformer, Watch
from gptviz.model.parts.attention import Attention
from gptviz.model.parts.norms import Norm

from ..explaining.through_norms import norm_behind, written_through
from ..trace import one_row

AttentionPart = Literal["attention", "cross_attention"]
RESIDUAL_OF: dict[AttentionPart, str] = {
    "attention": "attention_residual",
    "cross_attention": "cross_residual",
}

UNIT = "attention (share of the row, 0 … 1)"
QUERY = "query (reads)"
KEY = "key (is read)"

# The most bytes that `Midway` holds of a text.
MOST_MIDWAY = 128 * 2**20
# A row that leaves less than this to all tokens but the first has too little left to say how it is
# shared.
NOTHING = 1e-6


@dataclass(frozen=True)
class Patterns:
    """The attention of every head over one text."""

    #: for each block its patterns [n_head, query, key]; each row sums to 1. Shared: do not write to
    #: them.
    blocks: tuple[npt.NDArray[np.float32], ...]
    #: [query, key], true where the masks of all blocks forbid a query to look at a key, or None if
    #: nothing is forbidden
    blocked: npt.NDArray[np.bool_] | None
    #: for each block how many keys its window leaves a query, or None for no window; empty if no
    #: block has one
    windows: tuple[int | None, ...] = ()

    def blocked_in(self, block: int) -> npt.NDArray[np.bool_] | None:
        """Where the mask of this block forbids a query to look at a key [query, key], or None if
        nothing is forbidden.
        """
        window = self.windows[block] if self.windows else None
        if window is None:
            return self.blocked
        far = np.arange(self.n_tokens)[:, None] - np.arange(self.n_tokens) >= window
        if self.blocked is None:
            return far
        return self.blocked | far

    @property
    def n_tokens(self) -> int:
        """The number of keys: of tokens that can be looked at."""
        return self.blocks[0].shape[-1]

    @property
    def n_head(self) -> int:
        """How many heads each block has."""
        return len(self.blocks[0])


@torch.inference_mode()
def patterns(
    model: Transformer, ids: Sequence[int], source: Sequence[int] | None = None
) -> Patterns:
    """The patterns of self-attention of all heads over `ids`, from one forward pass of `model`.

    For the patterns of an encoder, call this with `model.encoder` and the ids of the source. No
    token looks at padding, and the rows of padding mean nothing: both are masked. A ValueError if
    the model has no blocks and so no attention, there are more ids than the context holds, or an
    encoder–decoder was given no source.
    """
    blocks: list[Float32Array] = []
    watch(
        model,
        ids,
        source,
        ["blocks.*.attention.pattern"],
        lambda _block, _name, value: blocks.append(_numbers(value[0])),
    )
    return Patterns(tuple(blocks), blocked_everywhere(model, ids), windows(model))


@torch.inference_mode()
def pattern(
    model: Transformer,
    ids: Sequence[int],
    block: int,
    head: int,
    source: Sequence[int] | None = None,
    part: AttentionPart = "attention",
) -> Float32Array:
    """The pattern [query, key] of one head over `ids`, NaN where masked, by a pass up to its block.
    See `read_attention`.
    """
    name = f"blocks.{block}.{part}.pattern"
    shares: list[Float32Array] = []
    watch(
        model,
        ids,
        source,
        [name],
        lambda _block, _name, value: shares.append(_numbers(value[0, head])),
        name,
    )
    if part == "attention":
        hidden = blocked_everywhere(model, ids)
    else:
        hidden = padding_mask(model, source or ())
    far = windows(model)[block : block + 1] if part == "attention" else ()
    forbidden = Patterns((shares[0][None],), hidden, far).blocked_in(0)
    if forbidden is None:
        return shares[0]
    return np.where(forbidden, np.float32(np.nan), shares[0])


def windows(model: Transformer) -> tuple[int | None, ...]:
    """For each block how many keys its window leaves a query, or None for no window."""
    return tuple(
        model.config.window if model.config.has_window(block) else None
        for block in range(model.config.n_layer)
    )


def watch(
    model: Transformer,
    ids: Sequence[int],
    source: Sequence[int] | None,
    names: Sequence[str],
    see: Callable[[int, str, Tensor], object],
    last: str = "",
    resume: tuple[int, Tensor] | None = None,
) -> None:
    """One forward pass over `ids`, in which `see` is given the values called `names` as soon as
    each is computed.

    Args:
        names: of values inside blocks, as in `Watch`.
        see: gets the number of the block, the value's own name, such as "pattern", and the value.
            What it does not keep is gone when the block has ended.
        last: the full name of the last value that is needed: the pass ends there. Empty for a whole
            pass.
        resume: as in `Transformer.forward`.
    """
    if not model.config.n_layer:
        raise ValueError("this model has no blocks and therefore no attention")

    def note_value(name: str, value: Tensor) -> None:
        _, block, *_, own = name.split(".")
        see(int(block), own, value)
        if name == last:
            raise EnoughError

    with suppress(EnoughError):
        # No pattern depends on the unembedding, which is a large share of the work: it is computed
        # for one token only.
        model(
            *one_row(model, ids, source),
            tap=Watch(names, note_value),
            logits_at=slice(-1, None),
            resume=resume,
        )


def _numbers(tensor: Tensor) -> Float32Array:
    return tensor.float().cpu().numpy()


def blocked_everywhere(model: Transformer, ids: Sequence[int]) -> npt.NDArray[np.bool_] | None:
    """The mask [query, key] over `ids` [T]: true where the masks of all blocks forbid to look, or
    where either is padding. None where nothing is forbidden.

    Where only some blocks have a window, their patterns are 0 beyond it.
    """
    padding = model.config.padding
    device = model.embed.weight.device
    text = torch.tensor(ids)
    # [T]
    if padding is None:
        is_padding = torch.zeros_like(text, dtype=torch.bool)
    else:
        is_padding = text == padding
    seen = torch.zeros(len(text), len(text), dtype=torch.bool)
    for mask in model.masks:
        hidden = mask(text[None].to(device), slice(0, len(text)), None)
        hidden = None if hidden is None else hidden.cpu()
        seen = torch.ones_like(seen) if hidden is None else seen | ~hidden
    forbidden = is_padding[:, None] | is_padding | ~seen
    if forbidden.any():
        return forbidden.numpy()
    return None


def one_head(patterns: Patterns, block: int, head: int, labels: Sequence[str]) -> LabelledArray:
    """The pattern of one head [query, key], with `labels` on both axes; NaN where the mask forbids
    to look.
    """
    values = patterns.blocks[block][head].copy()
    if (blocked := patterns.blocked_in(block)) is not None:
        values[blocked] = np.nan
    return LabelledArray(values, (Axis(QUERY, tuple(labels)), Axis(KEY, tuple(labels))), UNIT)


@dataclass(frozen=True)
class AttentionReading:
    """The values from which the patterns of a stack's heads over one text are computed, and the
    length of what each key adds.

    It holds all blocks, or some that follow each other; its methods take the number that a block
    has in the model.
    """

    patterns: Patterns  #: what every head looks at, of the blocks held
    #: [n_block, n_head, queries, d_head], the queries after rotation and normalisation, as the
    #: scores use them
    q: Float32Array
    #: [n_block, n_head, keys, d_head], the keys, likewise; heads that share keys have equal ones
    k: Float32Array
    #: [n_block, n_head, queries, keys], what positions add to the scores, or None if they act
    #: elsewhere
    position: Float32Array | None
    #: [n_block, n_head, keys], ‖v W_O‖: the length of the vector that a head adds to the stream
    #: when it looks only at this key, without the bias; where a norm stands behind attention, of
    #: what is linear in that norm, with its gain
    moved: Float32Array
    scale: float  #: what q · k is multiplied by: 1 / √d_head unless the model says otherwise
    cap: float | None = None  #: where a model caps its scores s, they are cap · tanh(s / cap)
    first: int = 0  #: the number in the model of the first block that is held: arrays begin with it
    #: the attention rollout up to each block held [n_block, query, key], where not all before it
    #: are held; else None
    rolled: Float32Array | None = None
    #: [n_block, queries], what the norm behind attention multiplies `moved` by; None where there is
    #: no such norm
    scaled: Float32Array | None = None

    def _mask_values(self, values: Float32Array, block: int) -> Float32Array:
        """The values [query, key] of a block, NaN where its mask forbids to look."""
        blocked = self.patterns.blocked_in(block - self.first)
        if blocked is None:
            return values
        return np.where(blocked, np.float32(np.nan), values)

    def pattern(self, block: int, head: int | None) -> Float32Array:
        """The pattern [query, key] of a head, or the mean over the heads of the block where `head`
        is None.

        Here and in the methods below, values are NaN where the mask forbids to look.
        """
        of = self.patterns.blocks[block - self.first]
        return self._mask_values(of.mean(0) if head is None else of[head], block)

    def without_first(self, block: int, head: int | None) -> Float32Array:
        """The shares [query, key] of what each row of `pattern` leaves without the first key, which
        is NaN, as is a row that leaves nothing: many heads rest on the first token of a text where
        they find nothing to read.
        """
        of = self.pattern(block, head)
        left = np.nansum(of[:, 1:], axis=1, keepdims=True)
        rest = of / np.where(left > NOTHING, left, np.float32(np.nan))
        rest[:, 0] = np.nan
        return np.asarray(rest, np.float32)

    def scores(self, block: int, head: int) -> Float32Array:
        """The scores [query, key]: scale · q · k, plus what positions add. The softmax of a row is
        a row of the pattern.
        """
        at = block - self.first
        scores = self.q[at, head] @ self.k[at, head].T * np.float32(self.scale)
        if self.position is None:
            scores = scores
        else:
            scores = scores + self.position[at, head]
        return self._mask_values(
            scores
            if self.cap is None
            else np.float32(self.cap) * np.tanh(scores / np.float32(self.cap)),
            block,
        )

    def value_weighted(self, block: int, head: int | None) -> Float32Array:
        """‖pattern · v W_O‖ [query, key]: the length of the vector that a key adds to the stream at
        a query.

        Where a norm stands behind attention, it is the length behind that norm, with the scale that
        the norm has at the query. Where `head` is None, the mean of these lengths over the heads of
        the block.

        Source: Kobayashi et al. 2020, "Attention is not only a weight".
        """
        some = slice(None) if head is None else slice(head, head + 1)
        at = block - self.first
        lengths = (self.patterns.blocks[at][some] * self.moved[at, some, None]).mean(0)
        return self._mask_values(
            lengths if self.scaled is None else lengths * self.scaled[at, :, None], block
        )

    def rollout(self, block: int) -> Float32Array:
        """Attention rollout up to this block [query, key]: see the function `rollout`. Through
        several blocks it reaches farther than the window of one: NaN only where no way leads.
        """
        shares = (rollout(self.patterns) if self.rolled is None else self.rolled)[
            block - self.first
        ]
        blocked = self.patterns.blocked
        if blocked is None:
            return shares
        return np.where(blocked & (shares == 0), np.float32(np.nan), shares)


class Midway:
    """Where a pass over a long text can go on later, so that another block can be read without all
    blocks before it.

    Before the first block of every few, it holds the stream that enters it and the rollout up to
    there: of all blocks, where `MOST_MIDWAY` bytes are enough.
    """

    def __init__(
        self, model: Transformer, n_tokens: int, part: AttentionPart = "attention"
    ) -> None:
        size = (
            FLOAT32 * n_tokens * (model.config.d_model + (n_tokens if part == "attention" else 0))
        )
        self._every = -(-model.config.n_layer * size // MOST_MIDWAY)
        self._through: Tensor | None = None
        self._rolls = part == "attention"
        self.streams: dict[int, Tensor] = {}  #: by block, the stream [1, T, d_model] that enters it
        #: by block, the rollout [query, key] up to the block before it; empty for cross-attention
        self.rolled: dict[int, Tensor] = {}

    def see(self, block: int, name: str, value: Tensor) -> None:
        """Hold what is needed of the "pattern" and then of the "resid_post" of the next `block` of
        the pass.
        """
        if name == "pattern" and self._rolls:
            self._through = _roll_out(value[0], self._through)
        elif name == "resid_post" and (block + 1) % self._every == 0:
            self.streams[block + 1] = value
            if self._through is not None:
                self.rolled[block + 1] = self._through

    def before_block(self, block: int) -> tuple[tuple[int, Tensor] | None, Tensor | None]:
        """For `Transformer.forward`, where to go on to come to this block soonest, and the rollout
        up to there, or None.
        """
        first = max((held for held in self.streams if held <= block), default=None)
        if first is None:
            return (None, None)
        return ((first, self.streams[first]), self.rolled.get(first))


@torch.inference_mode()
def read_attention(
    model: Transformer,
    ids: Sequence[int],
    source: Sequence[int] | None = None,
    part: AttentionPart = "attention",
    blocks: range | None = None,
    midway: Midway | None = None,
) -> AttentionReading:
    """The patterns of all heads with the queries, keys and values they are computed from, in one
    forward pass; `ids` and `source` are as in `patterns`.

    Args:
        part: self-attention, or the cross-attention of a decoder, whose keys are the tokens of the
            `source`.
        blocks: which blocks are held, all by default. The pass ends with the last of them. All
            blocks of a large model over a long text take more memory than most machines have.
        midway: of an earlier pass of the same model over the same text, where only some blocks are
            held.

    Raises:
        ValueError: as in `patterns`, or the model has no cross-attention.
    """
    if part == "cross_attention" and model.encoder is None:
        raise ValueError("this model has no cross-attention: it has no encoder to look into")

    # what is kept of the pass
    held = range(model.config.n_layer) if blocks is None else blocks
    norms = [norm_behind(getattr(model.blocks[block], RESIDUAL_OF[part])) for block in held]
    is_normed = bool(norms) and norms[0][0] is not None
    stream = "resid_pre" if part == "attention" else "resid_self"
    of_part = ("q", "k", "v", "pattern", *(["out"] if is_normed else []))
    names = [
        *([f"blocks.*.{stream}"] if is_normed else []),
        *(f"blocks.*.{part}.{tap}" for tap in of_part),
    ]
    # in the order of the pass
    tapped: dict[str, list[Tensor]] = {name.rpartition(".")[2]: [] for name in names}

    # the forward pass; it goes on from an earlier one where that is kept
    resume, through = (
        (None, None) if midway is None or blocks is None else midway.before_block(held.start)
    )
    rolled: list[Tensor] = [] if through is None else [through]

    def see(block: int, name: str, value: Tensor) -> None:
        if name == "pattern" and part == "attention" and blocks is not None:
            through = _roll_out(value[0], rolled[-1] if rolled else None)
            rolled[:] = [*rolled, through] if block > held.start else [through]
        if block in held:
            tapped[name].append(value[0])

    last = f"blocks.{held[-1]}.{part}.{of_part[-1]}" if len(held) else ""
    watch(model, ids, source, names, see, last, resume)

    # what the patterns are made of, and what becomes of the values
    if part == "cross_attention":
        hidden = padding_mask(model, source or ())
    else:
        hidden = blocked_everywhere(model, ids)
    group = model.config.n_head // model.config.key_heads  # heads that share keys and values
    outputs = [getattr(model.blocks[block], part).output.weight for block in held]
    values = [v.repeat_interleave(group, dim=0) for v in tapped["v"]]
    if part == "attention":
        far = windows(model)[held.start : held.stop]
    else:
        far = ()
    scaled = None
    # the scale of the norm that attention's output goes through, perhaps added to the stream
    if is_normed:
        each = zip(norms, tapped[stream], tapped["out"], strict=True)
        entering = [(norm, x + out if adds_first else out) for (norm, adds_first), x, out in each]
        scaled = np.stack(
            [_numbers(norm.scale(x)[..., 0]) for norm, x in entering if norm is not None]
        )
    return AttentionReading(
        Patterns(tuple(map(_numbers, tapped["pattern"])), hidden, far),
        _numbers(torch.stack(tapped["q"])),
        _numbers(torch.stack(tapped["k"]).repeat_interleave(group, dim=1)),
        _position_terms(model, held, tapped["q"]) if part == "attention" else None,
        np.stack(
            [
                _moved_lengths(output, v, norm)
                for output, v, (norm, _) in zip(outputs, values, norms, strict=True)
            ]
        ),
        model.config.scale,
        model.config.score_cap,
        held.start,
        _numbers(torch.stack(rolled)) if rolled else None,
        scaled,
    )


def padding_mask(model: Transformer, source: Sequence[int]) -> npt.NDArray[np.bool_] | None:
    """The mask [1, S] of a source: true where it is padding, or None if it has no padding."""
    padded = np.array([source]) == model.config.padding
    if padded.any():
        return padded
    return None


def _position_terms(
    model: Transformer, held: range, queries: Sequence[Tensor]
) -> Float32Array | None:
    """What positions add to scores of the blocks held, [n_block, n_head, T, T], or None; `queries`
    [n_head, T, d_head] each.
    """
    parts = [cast(Attention, model.blocks[block].attention).positions for block in held]
    if any(part.acts_on != "scores" for part in parts):
        return None
    n_head, n_tokens, _ = queries[0].shape
    none = queries[0].new_zeros(1, n_head, n_tokens, n_tokens)
    each = zip(parts, queries, strict=True)
    return _numbers(
        torch.cat(
            [part.weigh(none, q[None] * model.config.scale, slice(0, n_tokens)) for part, q in each]
        )
    )


def _moved_lengths(output: Tensor, v: Tensor, norm: Norm | None) -> Float32Array:
    """‖v W_O‖ [n_head, keys] for the values `v` [n_head, keys, d_head]; with a norm behind it, of
    what is linear in the norm. `output` is W_O, [d_model, n_head · d_head]: each head has its own
    columns in it.
    """
    n_head, _, d_head = v.shape
    # [n_head, d_head, d_model]
    slices = output.to(v.dtype).view(-1, n_head, d_head).permute(1, 2, 0)
    written = [written_through(norm, of_head.T).T for of_head in slices]
    return _numbers((v @ torch.stack(written).to(v.dtype)).norm(dim=-1))


def rollout(patterns: Patterns) -> Float32Array:
    """Attention rollout [block, query, key]: how much of each key's token a query's position holds
    after each block, if nothing but attention moved information. Rows sum to 1. Only for
    self-attention.

    For each block, the mean of its heads and the identity (the residual connection) count one half
    each; these matrices are multiplied from the first block up.

    Source: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers".
    """
    rollouts: list[Tensor] = []
    for block in patterns.blocks:
        rollouts.append(_roll_out(torch.from_numpy(block), rollouts[-1] if rollouts else None))
    return torch.stack(rollouts).numpy()


def _roll_out(block: Tensor, before: Tensor | None) -> Tensor:
    """The rollout [query, key] up to a block with these patterns [n_head, query, key], from that up
    to the block before it.
    """
    step = block.float().mean(0).div_(2)
    step.diagonal().add_(0.5)
    if before is None:
        return step
    return step @ before
