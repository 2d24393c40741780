"""A circuit over features: the MLP of a block is drawn as the features of its transcoder (Ameisen
and others 2025, "Circuit Tracing").

What an MLP wrote at a position is the sum of the rows of the decoder of its active features, each
as
often as the feature is active, of the decoder's bias, and of what the transcoder misses: the error,
which is a unit of its own, so that the sums of a circuit stay exact. A feature that is active is a
linear function of what the MLP reads, the row of its encoder: nothing has to be kept from the run
but the norms. What the error reads, nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.trace import run
from gptviz.interp.units.unit import Unit
from gptviz.model import Transformer

from .circuit_reads import Frozen, Reads, Usual, inner_products
from .decomposition import Stream


@dataclass(frozen=True)
class _Split:
    """What an MLP wrote at all T positions, by the features of its transcoder."""

    dictionary: Dictionary
    features: list[int]  #: those that are active at some position
    active: Tensor  #: [T, features]
    missed: Tensor  #: [T, d_model]


class FrozenFeatures(Frozen):
    """A decoder's run over one text, as `Frozen`; the MLPs of some blocks are drawn as features."""

    def __init__(
        self,
        model: Transformer,
        ids: Tensor,
        position: int,
        usual: Usual,
        transcoders: Sequence[Dictionary],
    ) -> None:
        """As `Frozen`; `usual` is "its mean" or None. A ValueError for other averages."""
        if usual not in (None, "its mean"):
            raise ValueError("of features only the means over the text itself are known")
        self._transcoders = {f"blocks.{one.block}.mlp": one for one in transcoders}
        self._split: dict[str, _Split] = {}
        #: whether only that counts which features are active beyond their means over the text
        self._beyond_mean = usual == "its mean" and len(ids) > 1
        super().__init__(model, ids, position, usual)

    @torch.no_grad()
    def _units_of(self, layer: str) -> list[Unit]:
        dictionary = self._transcoders.get(layer)
        if dictionary is None or self.stream.is_replaced(layer):
            return super()._units_of(layer)
        here = dictionary.to(self.stream.device)
        active = here.encode(self.stream.inputs[layer][0].detach())  # [T, feature]
        some = (active > 0).any(0).nonzero()[:, 0]
        missed = self.stream.written[layer] - here.decode(active)
        self._split[layer] = _Split(here, some.tolist(), active[:, some], missed)
        units = [Unit("dictionary", index=one, called=here.name) for one in some.tolist()]
        return [*units, Unit("missed", called=here.name)]

    def _beyond_usual(self, stream: Stream, layer: str, direction: Tensor) -> Tensor:
        split = self._split.get(layer)
        if split is None:
            return super()._beyond_usual(stream, layer, direction)
        rows = list(stream.rows)
        active = split.active[rows]  # [N, features]
        missed = split.missed[rows]  # [N, d_model]
        if self._beyond_mean:
            active = active - split.active.mean(0)
            missed = missed - split.missed.mean(0)
        of_features = active * (direction @ split.dictionary.decoder[split.features].T)
        return torch.cat((of_features, inner_products(missed, direction)[:, None]), dim=1)

    @torch.no_grad()
    def inputs_of(self, reader: Unit, position: int, direction: Tensor) -> list[Reads]:
        """As `Frozen.inputs_of`: the inputs of a feature where it is active. It reads nothing where
        it is not, and nobody knows what the error reads.
        """
        if reader.part not in ("dictionary", "missed"):
            return super().inputs_of(reader, position, direction)
        layer = self.layers[self.place[reader]]
        split = self._split[layer]
        if reader.index is None:
            return []
        active = float(split.active[position, split.features.index(reader.index)])
        if not active:
            return []
        here = slice(position, position + 1)
        gain = float(split.dictionary.decoder[reader.index] @ direction)
        read = gain * split.dictionary.encoder[reader.index][None]
        constant = gain * float(split.dictionary.bias[reader.index])
        return [self._read_linear("mlp", layer, here, read, gain * active, constant)]


def active_units(
    model: Transformer, transcoders: Sequence[Dictionary], ids: Tensor
) -> dict[str, list[Unit]]:
    """By the name of an MLP what stands for it over the text `ids` [T]: the features that are
    active at some position, and the error.
    """
    if not transcoders:
        return {}
    read = run(model, ids[None], [one.tap for one in transcoders], logits_at=slice(-1, None))
    units = dict[str, list[Unit]]()
    for one in transcoders:
        is_active = (one.to(ids.device).encode(read[one.tap][0]) > 0).any(0)
        active = is_active.nonzero()[:, 0].tolist()
        units[f"blocks.{one.block}.mlp"] = [
            *(Unit("dictionary", index=feature, called=one.name) for feature in active),
            Unit("missed", called=one.name),
        ]
    return units


def features_outside(
    model: Transformer,
    transcoders: Sequence[Dictionary],
    nodes: Collection[tuple[Unit, int]],
    length: int,
    reference: Tensor,
) -> dict[str, Callable[[Tensor], Tensor]]:
    """Edits, for `trace.run`, that put all features and errors but these `nodes` (units at
    positions) of a text of this length at their means over the positions of the text `reference`
    [T].
    """
    edits: dict[str, Callable[[Tensor], Tensor]] = {}
    if not transcoders:
        return edits
    taps = [tap for one in transcoders for tap in (one.tap, one.target_tap)]
    usual = run(model, reference[None], taps, logits_at=slice(-1, None))
    for one in transcoders:
        edits |= _one_outside(one.to(reference.device), nodes, length, usual)
    return edits


def _one_outside(
    dictionary: Dictionary,
    nodes: Collection[tuple[Unit, int]],
    length: int,
    usual: Mapping[str, Tensor],
) -> dict[str, Callable[[Tensor], Tensor]]:
    """As `features_outside`, of one dictionary; `usual` has what it reads and is to give back."""
    active = dictionary.encode(usual[dictionary.tap][0])  # [T, feature]
    mean = active.mean(0)
    mean_missed = (usual[dictionary.target_tap][0] - dictionary.decode(active)).mean(0)
    kept = torch.zeros(length, len(mean), dtype=torch.bool, device=mean.device)
    keeps_error = torch.zeros(length, 1, dtype=torch.bool, device=mean.device)
    for unit, place in nodes:
        if unit.called == dictionary.name and unit.part == "missed":
            keeps_error[place] = True
        elif unit.called == dictionary.name and unit.index is not None:
            kept[place, unit.index] = True
    read: list[Tensor] = []

    def note(value: Tensor) -> Tensor:
        read[:] = [value]
        return value

    def replace(given: Tensor) -> Tensor:
        here = dictionary.encode(read[0])  # [1, T, feature]
        missed = torch.where(keeps_error, given - dictionary.decode(here), mean_missed)
        return dictionary.decode(torch.where(kept, here, mean)) + missed

    return {dictionary.tap: note, dictionary.target_tap: replace}
