"""Activation patching: what a model answers to a corrupted prompt if a piece of what it computed
for the clean prompt is put in.

A piece that brings the answer back carries what the two prompts differ in. One pass computes many
patches: its first row is the clean prompt, and every other row is the corrupted prompt with one
patch, copied from the first row where the pass comes by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.machine.memory import FLOAT32
from gptviz.model import Config, Transformer

from ..trace import run
from .patchable import Quantity, quantity

# What a pass over many rows may take in memory, in bytes, and how many tokens it may read.
MOST_BYTES = 512 * 2**20
MOST_TOKENS = 4_096
# A pass over this many tokens takes hardly less than twice as long as one over half of them: it is
# worth its own beginning.
ENOUGH_TOKENS = 512
# Two answers that differ by a smaller share of themselves differ only by rounding.
ROUNDING = 1e-5
SHARE = "share of the answer restored"


@dataclass(frozen=True)
class PromptPair:
    """Two prompts and the two answers that are weighed against each other. A ValueError if the
    prompts differ in length.
    """

    clean: tuple[int, ...]  #: the ids [T] of the prompt that values are taken from
    corrupted: tuple[int, ...]  #: the ids [T] of the prompt that they are put into
    right: int  #: the answer to the clean prompt: a token; for a classifier, a label
    wrong: int  #: the answer to the corrupted prompt
    #: what an encoder reads with the clean prompt, [S] ids, or None for a model without an encoder
    clean_source: tuple[int, ...] | None = None
    corrupted_source: tuple[int, ...] | None = None  #: what it reads with the corrupted one

    def __post_init__(self) -> None:
        check_lengths(len(self.clean), len(self.corrupted))
        if (self.clean_source is None) != (self.corrupted_source is None):
            raise ValueError(
                "only one of the two prompts has a source for the encoder: give both, or none"
            )
        if self.clean_source is not None and self.corrupted_source is not None:
            check_lengths(len(self.clean_source), len(self.corrupted_source), "source")

    def ids(self, device: torch.device) -> Tensor:
        """Both prompts, [2, T], the clean one first."""
        return torch.tensor([self.clean, self.corrupted], device=device)

    def sources(self, device: torch.device) -> Tensor | None:
        """The ids that an encoder reads, [2, S]."""
        if self.clean_source is None:
            return None
        return torch.tensor([self.clean_source, self.corrupted_source], device=device)

    def answer(self, logits: Tensor) -> Tensor:
        """The logit of the right answer minus that of the wrong one, [B], in float64 on the CPU. It
        is taken from the logits [B, positions, vocab_size] at the last position, or of a classifier
        from [B, n_label].
        """
        last = logits if logits.dim() == 2 else logits[:, -1]
        # [B, 2]; not every device has float64
        both = last[:, [self.right, self.wrong]].cpu().double()
        return both[:, 0] - both[:, 1]

    @property
    def first_difference(self) -> int:
        """The first position at which the prompts differ; T where they are the same."""
        same = [one == other for one, other in zip(self.clean, self.corrupted, strict=True)]
        if False in same:
            return same.index(False)
        return len(same)


def check_lengths(clean: int, corrupted: int, what: str = "prompt") -> None:
    """Refuse two texts that are not of one length, in tokens. The message of the ValueError says
    both lengths.
    """
    if clean != corrupted:
        has = (
            f"the clean {what} has {clean:,} token{'s' * (clean != 1)} and the corrupted {what} "
            f"{corrupted:,}"
        )
        raise ValueError(
            f"{has}: a patch puts what was computed at a position into the same position, so both "
            "need the same number of tokens"
        )
    if not clean:
        raise ValueError(f"the clean {what} and the corrupted {what} have no tokens")


class PatchedPiece(NamedTuple):
    """A piece of a tensor that a patch replaces."""

    tap: str  #: what sees the tensor, as in `blocks.1.attention.z`
    #: an index of its second dimension: a position of what is [B, T, d_model], a head of what is
    #: [B, H, …]
    place: int


Patch = Sequence[PatchedPiece]


@dataclass(frozen=True)
class Patched:
    """The effect of each patch of a quantity on the answer."""

    quantity: Quantity  #: what was patched
    places: Axis  #: the pieces of a block
    #: [block, place], the answer to the corrupted prompt with the patch: a difference of logits
    answers: Float64Array
    clean: float  #: the answer to the clean prompt
    corrupted: float  #: the answer to the corrupted prompt
    first: int = field(default=0, kw_only=True)  #: the number of the first block

    @property
    def is_defined(self) -> bool:
        """Whether there is anything to restore: where both prompts have the same answer, no share
        of it is defined.
        """
        return is_difference(self.clean, self.corrupted)

    @property
    def shares(self) -> Float64Array:
        """How much of the answer each patch restores, [block, place]: 0 as without it, 1 as after
        the clean prompt; NaN where that is not defined. Below 0 a patch takes the answer even
        further away.
        """
        if not self.is_defined:
            return np.full(self.answers.shape, np.nan)
        return (self.answers - self.corrupted) / (self.clean - self.corrupted)

    @property
    def restored(self) -> LabelledArray:
        """`shares` with the names of blocks and places."""
        return LabelledArray(self.shares, self._axes, SHARE)

    @property
    def raw(self) -> LabelledArray:
        """The answers themselves, [block, place]."""
        return LabelledArray(self.answers, self._axes, "logit difference")

    @property
    def numbers(self) -> LabelledArray:
        """The shares restored, then the answers, [number, block, place]."""
        axes = Axis("number", ("share restored", "logit difference")), *self._axes
        return LabelledArray(np.stack((self.shares, self.answers)), axes, "value")

    @property
    def _axes(self) -> tuple[Axis, Axis]:
        blocks = range(self.first, self.first + len(self.answers))
        return Axis("block", tuple(map(str, blocks))), self.places

    def labelled(self, tokens: Sequence[str]) -> Self:
        """The same with the names of the tokens at the positions; heads keep their numbers."""
        if self.places.name != "position":
            return self
        return replace(self, places=Axis("position", tuple(tokens)))


def is_difference(clean: float, corrupted: float) -> bool:
    """Whether two answers differ by more than rounding; not where one of them is no number."""
    return abs(clean - corrupted) > ROUNDING * max(1.0, abs(clean), abs(corrupted))


def patch(
    model: Transformer,
    pair: PromptPair,
    what: str = "resid_pre",
    *,
    unpatched: tuple[float, float] | None = None,
) -> Patched:
    """Patch every piece of the quantity `what` in each block, one at a time; a ValueError if model
    or prompts do not fit.

    Args:
        unpatched: the answers to the clean and to the corrupted prompt, where another quantity of
            the same pair was patched before; computed unless given.
    """
    chosen = quantity(what, model.config)
    places = chosen.places(model.config, len(pair.clean), len(pair.clean_source or ()))
    cells = _cells(chosen, model.config, pair)
    clean, corrupted, patched = answers(
        model, pair, [[PatchedPiece(chosen.tap(block), index)] for block, index in cells], unpatched
    )
    values = np.full((chosen.blocks(model.config), len(places.labels)), corrupted)
    for cell, answer in zip(cells, patched, strict=True):
        values[cell] = answer
    return Patched(chosen, places, values, clean, corrupted)


def n_patches(config: Config, pair: PromptPair, what: str) -> int:
    """How many patches `patch` computes. A ValueError if the model has no such quantity."""
    return len(_cells(quantity(what, config), config, pair))


def _cells(chosen: Quantity, config: Config, pair: PromptPair) -> list[tuple[int, int]]:
    """The block and place of each piece that can make a difference. In a causal model nothing at an
    earlier position knows of the first token in which the prompts differ: to patch there changes
    nothing.
    """
    sees_nothing = chosen.by == "position" and config.mask == "causal" and pair.clean_source is None
    places = len(chosen.places(config, len(pair.clean), len(pair.clean_source or ())).labels)
    first = pair.first_difference if sees_nothing else 0
    return [
        (block, place) for block in range(chosen.blocks(config)) for place in range(first, places)
    ]


def answers(
    model: Transformer,
    pair: PromptPair,
    patches: Sequence[Patch],
    unpatched: tuple[float, float] | None = None,
) -> tuple[float, float, list[float]]:
    """The answer to the clean prompt, to the corrupted one, and to the corrupted one with each of
    the `patches`; the first two are `unpatched`, where they are known.

    A patch may replace many pieces at once. Patches that begin in the same or in neighbouring
    blocks share passes. A ValueError as in `patch`, or if the model does not compute what a patch
    replaces.
    """
    check_pair(model, pair)
    with progress.part(0, 1 + len(patches)):
        clean, corrupted = unpatched or _pass(model, pair, [[]])
    known: dict[int, float] = {}
    order = sorted(range(len(patches)), key=lambda index: _first_block(patches[index]))
    for some in _passes(
        order, [_first_block(patches[index]) for index in order], model.config, pair
    ):
        with progress.part(1 + len(known), 1 + len(patches), len(some)):
            known |= zip(
                some, _pass(model, pair, [patches[index] for index in some])[1:], strict=True
            )
    return clean, corrupted, [known[index] for index in range(len(patches))]


def _passes(
    order: Sequence[int], blocks: Sequence[int], config: Config, pair: PromptPair
) -> Iterator[list[int]]:
    """Which patches share a pass: those of a block and, as long as they are few, of the next
    blocks, as far as memory allows. `order` has the indices of the patches, early blocks first, and
    `blocks` the block in which each patch begins.
    """
    length = len(pair.clean)
    source = len(pair.clean_source or ())
    most = rows_at_once(config, length, source)
    together: list[int] = []
    for place, index in enumerate(order):
        begins_a_block = place > 0 and blocks[place] != blocks[place - 1]
        if len(together) == most or (
            begins_a_block and len(together) * max(length, source) >= ENOUGH_TOKENS
        ):
            yield together
            together = []
        together.append(index)
    if together:
        yield together


def check_pair(model: Transformer, pair: PromptPair) -> None:
    """Refuse a pair with a source for a model without an encoder, or the other way round, or with
    impossible answers.
    """
    config = model.config
    if (pair.clean_source is not None) != (config.n_encoder_layer > 0):
        raise ValueError("give a source to a model with an encoder, and to no other")
    count = config.n_label or config.vocab_size
    for which, token in (("right", pair.right), ("wrong", pair.wrong)):
        if not 0 <= token < count:
            raise ValueError(
                f"the {which} answer is {token}; this model's answers are numbered from 0 to "
                f"{count - 1:,}"
            )


def rows_at_once(config: Config, length: int, source: int = 0) -> int:
    """How many patches of such prompts one pass computes beside the clean row, within `MOST_BYTES`
    and `MOST_TOKENS`.
    """
    tokens = max(length, source)
    heads = config.n_head + 2 * config.key_heads
    # What lives at once in the widest places of a block, with the copies that patches are written
    # into.
    stream = tokens * (4 * config.d_model + 3 * heads * config.head_size + 3 * config.mlp_size)
    row = FLOAT32 * (stream + 5 * config.n_head * tokens * tokens + config.vocab_size)
    return max(1, min(MOST_BYTES // row, MOST_TOKENS // tokens) - 1)


def _first_block(patch: Patch) -> int:
    """The block in which a patch begins; -1 where it begins before the blocks, or in an encoder,
    which all of them read.
    """
    taps = [piece.tap.split(".") for piece in patch]
    return min((int(tap[1]) if tap[0] == "blocks" else -1 for tap in taps), default=0)


def _pass(model: Transformer, pair: PromptPair, patches: Sequence[Patch]) -> list[float]:
    """The answers of one pass: to the clean prompt, then to the corrupted one with each patch."""
    device = model.embed.weight.device
    ids = pair.ids(device)
    source = pair.sources(device)
    rows = [0] + [1] * len(patches)
    written: dict[str, list[tuple[int, int]]] = {}
    for row, patch in enumerate(patches, 1):
        for piece in patch:
            written.setdefault(piece.tap, []).append((row, piece.place))
    # The rows are the same as far as the first patch: until there, two of them will do.
    first = min(map(_first_block, patches))
    grows_at = f"blocks.{first}.resid_pre"
    config = model.config
    if (
        first < 0
        or source is not None
        or config.padding is not None
        or config.has_shortcuts
        or not config.n_layer
    ):
        # A mask that depends on the ids, an encoder's memory, and blocks that read earlier states
        # need every row from the start.
        ids = ids[rows]
        source = None if source is None else source[rows]
        grows_at = ""

    def edit(tap: str) -> Callable[[Tensor], Tensor]:
        def patch_value(value: Tensor) -> Tensor:
            value = value[rows] if tap == grows_at else value
            for row, index in written.get(tap, ()):
                value[row, index] = value[0, index]
            return value

        return patch_value

    edits = {tap: edit(tap) for tap in {*written, *filter(None, [grows_at])}}
    logits = run(model, ids, ["logits"], source=source, edits=edits, logits_at=slice(-1, None))[
        "logits"
    ]
    values: list[float] = pair.answer(logits).tolist()
    return values
