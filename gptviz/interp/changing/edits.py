"""Edits of a model: read from text, and as a model that runs with them.

An edit is a unit (see `units`) and what becomes of it, as in `blocks.1.attention.head.3` (switched
off: zero), `blocks.1.mlp=mean`, `blocks.0.attention.head.2=previous`, `blocks.0.mlp.neuron.17=4.2`,
`blocks.0.mlp.expert.3` (what it adds is left out; the others keep their weights) or
`positions=shuffled`. Of a LoRA adapter it is the strength, as in `adapter=0.5`. Of a direction in
the stream (see `directions`) it is how often its spread is added, as in
`direction.number-1f0c2a9b=2`; switched off, it is taken out of the stream. Of a feature of a
dictionary it is its activation, as in `dictionary.NAME.feature.17=4`. Of two tokens that change
places after a layer (see `swaps`) it is how far they do, as in `swap.blocks.1.mlp.17.42=1`. Weights
are edited too: `weights=4bit.g32` and `blocks.0.mlp.up.weight=Q4_0` keep all matrices, or one, in
few bits (see `gptviz.model.quantising`).

Each kind is a class (see `edit`), and all of them stand in `KINDS`. Text stands in addresses, in
links and on the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from torch import Tensor

from gptviz.model import Config, Transformer
from gptviz.model.edited import ENCODER, EditedTransformer, Pass, Replacement

from ..dictionaries.dictionary import FeatureEdit
from ..units.unit import Unit, unit
from .directions import DirectionEdit
from .edit import ZERO, Edit, Inputs, Values
from .swaps import SwapEdit
from .unit_edits import (
    AttentionEdit,
    CrossAttentionEdit,
    ExpertEdit,
    NeuronEdit,
    PositionsEdit,
    UnitEdit,
)
from .weight_edits import AdapterEdit, WeightsEdit, quantisers, unit_of_weights, with_fewer_bits

# The most edits of a set: what an address can carry, and a reader can follow.
MOST_EDITS = 200
# By the part of a model, or what a piece of it is called, how it is edited. Edits of one value act
# in this order.
KINDS: Final[Mapping[str, type[Edit]]] = {
    "weights": WeightsEdit,
    "adapter": AdapterEdit,
    "positions": PositionsEdit,
    "embed": UnitEdit,
    "attention": AttentionEdit,
    "cross_attention": CrossAttentionEdit,
    "mlp": UnitEdit,
    "neuron": NeuronEdit,
    "expert": ExpertEdit,
    "dictionary": FeatureEdit,
    "direction": DirectionEdit,
    "swap": SwapEdit,
}


def kind_of_edit(unit: Unit) -> type[Edit]:
    """The class of the edits of a unit."""
    return KINDS[unit.kind if unit.is_neuron else unit.part]


def edit_unit(unit: Unit, to: str | float = ZERO) -> Edit:
    """The edit of a unit that makes it what `to` says."""
    return kind_of_edit(unit)(unit, to)


def edit(text: str, config: Config) -> Edit:
    """The edit that `text` says; if it says none, or the model has no such unit, a ValueError names
    what is possible.
    """
    name = text.strip().partition("=")[0]
    part = unit_of_weights(name) or unit(name, config)
    return kind_of_edit(part).parse(part, text, config)


def edits(given: Iterable[str | Edit], config: Config) -> tuple[Edit, ...]:
    """The edits that are `given` as texts or objects, in the model's order; a ValueError as in
    `edit`, for a unit edited twice, or more than 200.
    """
    by_unit: dict[Unit, Edit] = {}
    for one in given:
        new = edit(str(one), config)
        # What an object has open is used.
        if isinstance(one, Edit) and one == new:
            new = one
        if by_unit.setdefault(new.unit, new) != new:
            raise ValueError(
                f"{new.unit.name} is edited twice: {by_unit[new.unit].text} and {new.text}"
            )
    if len(by_unit) > MOST_EDITS:
        raise ValueError(f"there are {len(by_unit):,} edits; the most are {MOST_EDITS}")
    return tuple(sorted(by_unit.values(), key=_place))


def _place(one: Edit) -> tuple[bool, bool, int, str, int, str]:
    part = one.unit
    numbers = (-1 if number is None else number for number in (part.block, part.index))
    return (
        not one.is_of_weights,
        not part.in_encoder,
        next(numbers),
        part.part,
        next(numbers),
        part.called,
    )


def edit_model(
    model: Transformer, edits: Sequence[Edit], reference: Sequence[Inputs] = ()
) -> Transformer:
    """`model` with these `edits`: it shares all weights that are not edited, and none is touched.
    Without edits, the same model.

    The strength of an adapter comes first: what other edits take of a text, the model with that
    strength computes.

    Args:
        model: what is edited. Edits that take something from a text take what this model computes
            of it, with the weights that are edited.
        edits: as `edits` gives them.
        reference: the pieces of the text that a mean is taken over; a pattern is that over the
            first of them.

    Raises:
        ValueError: an edit needs a reference text, and there is none; a matrix cannot be quantised,
            or memory is too small; the model has no adapter whose strength could change; or a
            direction, a dictionary or a lens is not here, or is that of another model.
    """
    for one in edits:
        if isinstance(one, AdapterEdit):
            model = one.apply_to(model)
    model = with_fewer_bits(model, quantisers(edits, model.config))
    others = [one for one in edits if one.is_of_values]
    if others:
        return _edit_values(others, Values(model, others, reference))
    return model


def edited_by_each(
    model: Transformer, edits: Sequence[Edit], reference: Sequence[Inputs] = ()
) -> Iterator[tuple[Edit, Transformer]]:
    """For each of `edits`, `model` with only that edit; the reference text is read once for all. A
    ValueError as in `edit_model`.
    """
    values = Values(model, [one for one in edits if one.is_of_values], reference)
    return (
        (one, _edit_values((one,), values) if one.is_of_values else edit_model(model, (one,)))
        for one in edits
    )


def _edit_values(edits: Sequence[Edit], values: Values) -> Transformer:
    """The model of `values` with edits of what it computes."""
    acts: dict[str, list[Replacement]] = {}
    for kind in dict.fromkeys(KINDS.values()):
        alike = [one for one in edits if type(one) is kind]
        for tap, act in kind.act(alike, values):
            acts.setdefault(tap, []).append(act)
    return EditedTransformer(
        values.model,
        {name: _one_after_the_other(each) for name, each in acts.items()},
        {
            (ENCODER if one.unit.in_encoder else ""): one.reposition(values.model.config)
            for one in edits
            if isinstance(one, PositionsEdit)
        },
    )


def _one_after_the_other(acts: list[Replacement]) -> Replacement:
    def all_of_them(value: Tensor, seen: Pass) -> Tensor:
        for act in acts:
            value = act(value, seen)
        return value

    return all_of_them


class Fitting(NamedTuple):
    """Edits of an address as far as they apply to a model."""

    edits: tuple[Edit, ...]  #: those that do, in the order of the model's parts
    rejected: tuple[str, ...]  #: for each other one, why it does not apply, in one line


def fitting(texts: Iterable[str], model: Transformer) -> Fitting:
    """The `texts` that are edits of this model, and why the others are not; 200 are read at
    most.
    """
    listed = list(texts)
    found = dict[Unit, Edit]()
    rejected = list[str]()
    for text in listed[:MOST_EDITS]:
        try:
            one = edit(text, model.config)
            one.require_fit(model)
        except ValueError as error:
            rejected.append(str(error))
            continue
        if found.setdefault(one.unit, one) != one:
            rejected.append(f"{text!r:.80}: {one.unit.name} is edited already")
    rejected += [
        f"{text!r:.80}: an address may have {MOST_EDITS} edits, and this one comes after them"
        for text in listed[MOST_EDITS:]
    ]
    return Fitting(edits(found.values(), model.config), tuple(rejected))
