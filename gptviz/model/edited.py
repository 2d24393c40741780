"""A model with edits: a twin that shares every weight, and puts other values in the place of some
that it computes.

The weights are never touched, so the model itself stays as it is to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from torch import Tensor, nn

from .fast import product
from .parts.attention import Attention, KVCache, Memory
from .parts.part import Linear, holding, sharing
from .parts.positions import PositionEncoding
from .tap import IDENTITY, Edit, Tap
from .transformer import Transformer, Twin

ENCODER = "encoder."


@dataclass(frozen=True)
class Pass:
    """The facts that an edit may know about the forward pass that it acts in."""

    model: Transformer  #: the stack of blocks that runs
    ids: Tensor  #: [B, T], the tokens it reads
    at: slice  #: the positions they hold
    memory: Memory | None  #: what a decoder reads of its encoder
    #: what edits keep for those that act later in the same pass, by the name of a tap
    kept: dict[str, Tensor] = field(default_factory=dict)

    def queries(self, pattern: Tensor, *, crosses: bool = False) -> slice:
        """The positions of the queries of a pattern [B, H, query, key] of a block: those of the
        pass, or of a long text some of them. In self-attention the last query is also the last key;
        one that `crosses` is of cross-attention, whose keys are the memory's.
        """
        if crosses:
            return self.at
        return slice(pattern.shape[-1] - pattern.shape[-2], pattern.shape[-1])

    def hidden_keys(self, block: int, at: slice, *, crosses: bool = False) -> Tensor | None:
        """True where a query of this block must not look at a key, to be broadcast to [B, H, query,
        key], or None if all may; `at` are the positions of the queries, as `queries` gives them.
        """
        if crosses:
            if self.memory is None:
                return None
            return self.memory.blocked
        return cast(
            Tensor | None,
            self.model.masks[self.model.mask_of[block]](self.ids, at, self.model.config.padding),
        )


# From a value (a copy, which may be changed in place) and the pass to what takes its place. A
# pattern over a long text comes in parts, of some queries after the other (`Tap.needs_whole`).
Replacement = Callable[[Tensor, Pass], Tensor]
Reposition = Callable[[PositionEncoding], PositionEncoding]


class EditedTransformer(Twin):
    """A transformer that shares all parts with `original`, and replaces what it computes.

    Taps that a pass is given see the replaced values. The encoder of an encoder–decoder is a
    separate twin, so that it is edited wherever it runs: inside of a pass, in `encode`, or alone.

    Args:
        original: the model; it stays as it is.
        replacements: by tap name.
        repositions: by the path of a stack of blocks ("" or "encoder."), what its positions become.
    """

    def __init__(
        self,
        original: Transformer,
        replacements: Mapping[str, Replacement],
        repositions: Mapping[str, Reposition],
    ) -> None:
        stand_ins: dict[nn.Module, nn.Module] = {}
        if original.encoder is not None:
            inside = {
                name.removeprefix(ENCODER): act
                for name, act in replacements.items()
                if name.startswith(ENCODER)
            }
            if ENCODER in repositions:
                moved = {"": repositions[ENCODER]}
            else:
                moved = {}
            if inside or moved:
                stand_ins[original.encoder] = EditedTransformer(original.encoder, inside, moved)
        if "" in repositions:
            # Blocks that share positions go on sharing them.
            attentions = (cast(Attention, block.attention) for block in original.blocks)
            for positions in {
                original.positions,
                *(attention.positions for attention in attentions),
            }:
                stand_ins[positions] = repositions[""](positions)
        super().__init__(holding(original, stand_ins))
        self.replacements = {
            name: act for name, act in replacements.items() if not name.startswith(ENCODER)
        }

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
        """As `Transformer.forward`, with the edits."""
        if self.encoder is not None and memory is None and source is not None:
            memory = self.encode(source, tap)
            source = None
        start = 0 if cache is None else cache.length
        seen = Pass(self, ids, slice(start, start + ids.shape[1]), memory)
        edits = {name: _in_pass(act, seen) for name, act in self.replacements.items()}
        edited = Edit(edits, tap, in_parts=True)
        return super().forward(
            ids, source, memory=memory, cache=cache, tap=edited, logits_at=logits_at, resume=resume
        )


def _in_pass(act: Replacement, seen: Pass) -> Callable[[Tensor], Tensor]:
    return lambda value: act(value, seen)


def with_weights(model: Transformer, weights: Mapping[str, Tensor]) -> Transformer:
    """A twin of `model`, which stays as it is, that multiplies with these matrices, in float32, in
    the place of its own. They are by the names of the model's parameters; tied parts both get the
    one of their common name.
    """
    own = dict(model.named_parameters())
    fresh = {
        own[name]: nn.Parameter(value, own[name].requires_grad) for name, value in weights.items()
    }
    stand_ins: dict[nn.Module, nn.Module] = {}
    for part in model.modules():
        changed: dict[str, object] = {
            name: fresh[old] for name, old in part._parameters.items() if old in fresh
        }
        if changed and isinstance(part, Linear):
            changed["multiply"] = product
        if changed:
            stand_ins[part] = sharing(part, **changed)
    return holding(model, stand_ins)
