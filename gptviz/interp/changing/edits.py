"""Edits: pieces of a model that are switched off or replaced, as text, in words, and as a model
that runs with them.

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
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import torch
from torch import Tensor

from gptviz.machine import progress
from gptviz.machine.memory import FLOAT32, MOST_OF_MEMORY, in_bytes, room, way_out
from gptviz.model import Config, Transformer, Watch
from gptviz.model.edited import (
    ENCODER,
    EditedTransformer,
    Pass,
    Replacement,
    Reposition,
    with_weights,
)
from gptviz.model.lora import MergedTransformer
from gptviz.model.parts.positions import POSITIONS
from gptviz.model.quantising import Quantiser, matrices, matrix_names, quantiser
from gptviz.settings import address_values

from ..dictionaries import dictionary
from ..units.unit import Unit, unit
from . import directions, swaps

ZERO = "zero"
MEAN = "mean"
UNIFORM = "uniform"
PREVIOUS = "previous"
FROM = "from"
SHUFFLED = "shuffled"
PATTERNS = (UNIFORM, PREVIOUS, FROM)
# The unit that stands for all matrices, and the end of the name of one of them.
WEIGHTS: Final = "weights"
OF_MATRIX = ".weight"
ADAPTER: Final = "adapter"
DIRECTION: Final = "direction"
DICTIONARY: Final = "dictionary"
SWAP: Final = "swap"
# The strengths of an adapter and of a swap in edits: beyond them a model says nothing that could be
# read.
MOST_STRENGTH = 10.0
# All other numbers of edits: beyond them products overflow, and nothing is left to be read.
MOST_NUMBER = 100_000.0
# The most edits of a set: what an address can carry, and a reader can follow.
MOST_EDITS = 200
# The places of the context in a random order, which is the same in every run.
SHUFFLE_SEED = 0


@dataclass(frozen=True)
class UnitEdit:
    """A unit and what becomes of it."""

    unit: Unit  #: which piece of the model
    #: "zero", "mean", "uniform", "previous", "from" or "shuffled"; of a neuron, an adapter, a
    #: direction, a feature and a swap, a number; of weights, the name of a quantiser
    to: str | float = ZERO

    @property
    def text(self) -> str:
        """Its form in an address, on the command line and in the library, which `edit` reads."""
        if self.to == ZERO:
            return self.unit.name
        return f"{self.unit.name}={self.to if isinstance(self.to, str) else f'{self.to:.6g}'}"

    @property
    def title(self) -> str:
        """The change of the unit, as a sentence without its full stop, with the ids of tokens."""
        return self.titled(str)

    def titled(self, token: Callable[[int], str]) -> str:
        """As `title`, with the name of each `token` in place of its id."""
        if self.unit.part == SWAP:
            return swaps.title(self.unit.called, float(self.to), token)
        name = self.unit.title[0].upper() + self.unit.title[1:]
        if self.unit.part == ADAPTER:
            return f"{name} acts with strength {self.to:g}: 0 is its base, 1 is as trained"
        if self.unit.part == DIRECTION:
            if self.to == ZERO:
                added = ""
            else:
                added = f"added to the stream, {float(self.to):g} times its spread"
            return f"{name} is {added or 'taken out of the stream'}"
        are = "are" if self.unit.part == "positions" else "is"
        if not isinstance(self.to, str):
            return f"{name} is set to {self.to:.6g}"
        if self.is_of_weights:
            return (
                f"{name} {'is' if self.unit.called else 'are'} {quantiser(self.to).title} "
                "(simulated)"
            )
        if self.unit.is_head:
            pattern = "its pattern"
        else:
            pattern = "the pattern of all its heads"
        return {
            ZERO: f"{name} {are} switched off (zero)",
            MEAN: f"{name} is replaced by its mean over the reference text",
            UNIFORM: f"{name}: {pattern} is uniform, every token it may read weighs the same",
            PREVIOUS: f"{name}: {pattern} is only on the previous token",
            FROM: f"{name}: {pattern} is that over the reference text",
            SHUFFLED: f"{name} are told in a random order",
        }[self.to]

    @property
    def needs_text(self) -> bool:
        """Whether it takes something from a reference text."""
        return self.to in (MEAN, FROM)

    @property
    def is_of_weights(self) -> bool:
        """Whether it keeps weights in fewer bits."""
        return self.unit.part == WEIGHTS

    @property
    def is_in_stream(self) -> bool:
        """Whether it acts on the stream, along a direction, on features or on tokens."""
        return self.unit.part in (DIRECTION, DICTIONARY, SWAP)

    @property
    def is_of_values(self) -> bool:
        """Whether it changes what is computed, and not the weights that it is computed with."""
        return self.unit.part not in (WEIGHTS, ADAPTER)


def becomes(part: Unit) -> tuple[str, ...]:
    """The possible changes of a unit, in words; a neuron, a direction and a feature also take a
    number, an adapter and a swap nothing else.
    """
    if part.part in (ADAPTER, SWAP):
        return ()
    if part.part == "positions":
        return ZERO, SHUFFLED
    if part.part in ("expert", DIRECTION, DICTIONARY):
        return (ZERO,)
    if part.part in ("embed", "mlp"):
        return ZERO, MEAN
    if part.part == "attention":
        return (ZERO, MEAN, UNIFORM, PREVIOUS, FROM)
    return (ZERO, MEAN, UNIFORM, FROM)


def edit(text: str, config: Config) -> UnitEdit:
    """The edit that `text` says; if it says none, or the model has no such unit, a ValueError names
    what is possible.
    """
    name, equals, to = text.strip().partition("=")
    if name == WEIGHTS or name.endswith(OF_MATRIX):
        matrix = "" if name == WEIGHTS else name
        if matrix and matrix not in matrix_names(config):
            # A model of many blocks has many matrices with the same names.
            named = dict.fromkeys(
                re.sub(r"blocks\.[0-9]+", "blocks.N", one) for one in matrix_names(config)
            )
            raise ValueError(
                f"{name!r:.80} is no matrix of this model; there are {', '.join(named)}"
            )
        try:
            return UnitEdit(Unit(WEIGHTS, called=matrix), quantiser(to).name)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if name == ADAPTER:
        return UnitEdit(Unit(ADAPTER), _strength(text.strip(), "an adapter"))
    part = unit(name, config)
    if part.part == SWAP:
        return UnitEdit(
            Unit(SWAP, called=swaps.swap(part.called, config).called),
            _strength(text.strip(), "a swap") if equals else 1.0,
        )
    kind = POSITIONS[config.positions]
    if part.part == "positions" and kind.acts_on == "nothing":
        raise ValueError(f"{name}: this model has no positions")
    if not equals or to == ZERO:
        return UnitEdit(part)
    if to in becomes(part):
        return UnitEdit(part, to)
    takes_number = part.is_neuron or part.part in (DIRECTION, DICTIONARY)
    choices = ", ".join(becomes(part)) + (f" or {_allowed(MOST_NUMBER)}" if takes_number else "")
    number = _number(to, MOST_NUMBER) if takes_number else None
    if number is None:
        raise ValueError(f"{text!r:.80}: {part.title} cannot become {to!r:.40}, but {choices}")
    return UnitEdit(part, number)


def strength(text: str) -> float | None:
    """The strength of an adapter, a direction or a swap that an edit such as "adapter=0.5" says;
    None if none is possible.
    """
    to = text.partition("=")[2]
    if to in ("", ZERO):
        return 0.0
    return _number(to, MOST_STRENGTH)


def _strength(text: str, of: str) -> float:
    if (number := strength(text)) is None:
        raise ValueError(f"{text!r:.80}: the strength of {of} is {_allowed(MOST_STRENGTH)}")
    return number


def turned_round(text: str) -> str:
    """The edit that takes a direction away as often as this one adds it; of another edit the same
    one.
    """
    unit, _, to = text.partition("=")
    if unit.startswith(f"{DIRECTION}."):
        number = _number(to, MOST_NUMBER)
    else:
        number = None
    if number:
        return f"{unit}={-number:g}"
    return text


def _number(text: str, most: float) -> float | None:
    """The number that a text is, from -`most` to `most`; None if it is no such number."""
    number = address_values.number(text)
    if abs(number) <= most:
        return float(f"{number:.6g}")
    return None


def _allowed(most: float) -> str:
    return f"a number from -{most:,.0f} to {most:,.0f}"


def edits(texts: Iterable[str], config: Config) -> tuple[UnitEdit, ...]:
    """The edits that `texts` say, in the model's order; a ValueError as in `edit`, for a unit
    edited twice, or more than 200.
    """
    by_unit: dict[Unit, UnitEdit] = {}
    for text in texts:
        new = edit(text, config)
        if by_unit.setdefault(new.unit, new) != new:
            raise ValueError(
                f"{new.unit.name} is edited twice: {by_unit[new.unit].text} and {new.text}"
            )
    if len(by_unit) > MOST_EDITS:
        raise ValueError(f"there are {len(by_unit):,} edits; the most are {MOST_EDITS}")
    return tuple(sorted(by_unit.values(), key=_place))


def _place(one: UnitEdit) -> tuple[bool, bool, int, str, int, str]:
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


class Inputs(NamedTuple):
    """A piece of a reference text, or several, as a model reads it."""

    ids: Tensor  #: [B, T], the tokens; padding counts in no mean
    source: Tensor | None = None  #: [B, S], what the encoder reads, or None if there is no encoder

    @property
    def before_answer(self) -> Inputs:
        """What is read before the first guess: the whole text; of an encoder–decoder, the source
        and the start token.
        """
        if self.source is None:
            return self
        return self._replace(ids=self.ids[:, :1])


def edited(
    model: Transformer, edits: Sequence[UnitEdit], reference: Sequence[Inputs] = ()
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
        if one.unit.part == ADAPTER:
            model = _adapted(model).at(float(one.to))
    model = with_fewer_bits(model, quantisers(edits, model.config))
    others = [one for one in edits if one.is_of_values]
    if others:
        return _with(model, others, _Values(model, others, reference))
    return model


def _adapted(model: Transformer) -> MergedTransformer:
    if not isinstance(model, MergedTransformer):
        raise ValueError(
            "adapter: this model is no LoRA adapter, so there is no strength to change"
        )
    return model


def quantisers(edits: Iterable[UnitEdit], config: Config) -> dict[str, Quantiser]:
    """For each matrix that some of `edits` keep in few bits, by name, how; an edit of one matrix
    counts more than that of all.
    """
    chosen = {one.unit.called: quantiser(str(one.to)) for one in edits if one.is_of_weights}
    every = {name: chosen.get(name, chosen.get("")) for name in matrix_names(config)}
    return {name: each for name, each in every.items() if each is not None}


def with_fewer_bits(model: Transformer, kept: Mapping[str, Quantiser]) -> Transformer:
    """A twin of `model` whose matrices are `kept` in few bits, by name, and brought back to
    float32; without any, the model. A ValueError if a matrix has numbers that are not finite, or
    there is too little memory for it in float32.
    """
    if not kept:
        return model
    own = matrices(model)
    needed = FLOAT32 * sum(own[name].numel() for name in kept)
    if needed > MOST_OF_MEMORY * (free := room(needed, model.embed.weight.device)):
        raise ValueError(
            f"weights with fewer bits are computed with as float32, for which {in_bytes(needed)} "
            "are needed beside the model, "
            f"and {in_bytes(free)} is free: {way_out()}, or quantise only one matrix"
        )
    fresh: dict[str, Tensor] = {}
    for name, each in progress.each(iter(kept.items()), len(kept), "matrix"):
        try:
            fresh[name] = each.brought_back(own[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return with_weights(model, fresh)


def edited_by_each(
    model: Transformer, edits: Sequence[UnitEdit], reference: Sequence[Inputs] = ()
) -> Iterator[tuple[UnitEdit, Transformer]]:
    """For each of `edits`, `model` with only that edit; the reference text is read once for all. A
    ValueError as in `edited`.
    """
    values = _Values(model, [one for one in edits if one.is_of_values], reference)
    return (
        (one, _with(model, (one,), values) if one.is_of_values else edited(model, (one,)))
        for one in edits
    )


def _with(model: Transformer, edits: Sequence[UnitEdit], values: _Values) -> Transformer:
    acts: dict[str, list[Replacement]] = {}
    repositions: dict[str, Reposition] = {}
    for one in edits:
        if one.unit.part == "positions":
            repositions[ENCODER if one.unit.in_encoder else ""] = _reposition(model.config, one.to)
        elif not one.is_in_stream:
            acts.setdefault(_tap(one), []).append(_replacement(one, values))
    for tap, act in _in_stream(edits, model):
        acts.setdefault(tap, []).append(act)
    return EditedTransformer(
        model, {name: _one_after_the_other(each) for name, each in acts.items()}, repositions
    )


def _in_stream(edits: Sequence[UnitEdit], model: Transformer) -> Iterator[tuple[str, Replacement]]:
    """What the edits of directions, features and swaps do, with the tap where they do it; those of
    one dictionary act together. A ValueError if one of them is not here, or does not fit the model.
    """
    of_each: dict[Unit, dict[int | None, str | float]] = {}
    for one in edits:
        if one.is_in_stream:
            of_each.setdefault(replace(one.unit, index=None), {})[one.unit.index] = one.to
    for kept, to in of_each.items():
        if kept.part == DIRECTION:
            for block, vector in directions.kept(kept.called, model.config).items():
                yield f"blocks.{block}.resid_post", _along(vector, to[None])
        elif kept.part == SWAP:
            swap = swaps.swap(kept.called, model.config)
            yield swap.layer.tap, _less(swaps.difference(model, swap), 2 * float(to[None]))
        else:
            activations = {
                index or 0: 0.0 if number == ZERO else float(number) for index, number in to.items()
            }
            yield from dictionary.setting(kept.called, activations, model.config).items()


def _taken(one: UnitEdit) -> str:
    if one.to == MEAN:
        return "mean"
    return "pattern"


def _one_after_the_other(acts: list[Replacement]) -> Replacement:
    def all_of_them(value: Tensor, seen: Pass) -> Tensor:
        for act in acts:
            value = act(value, seen)
        return value

    return all_of_them


def _tap(one: UnitEdit) -> str:
    """The name of the value that an edit replaces."""
    part = one.unit
    if one.to in PATTERNS:
        return f"{part.layer}.pattern"
    if part.block is None:
        return part.layer
    if part.is_head:
        kind = "z"
    elif part.is_neuron:
        kind = "neurons"
    elif part.part == "expert":
        kind = "experts"
    else:
        kind = "out"
    return f"{part.layer}.{kind}"


class _Values:
    """The values that edits take from a reference text, computed in one run of the unedited model
    over each piece of it. A ValueError if an edit needs such a text, and there is none.
    """

    def __init__(
        self, model: Transformer, edits: Sequence[UnitEdit], reference: Sequence[Inputs]
    ) -> None:
        if not reference and (waiting := [one for one in edits if one.needs_text]):
            raise ValueError(
                f"{waiting[0].text} needs a reference text to take the {_taken(waiting[0])} from: "
                "give a text"
            )
        #: by tap name, over all tokens: of z [n_head, d_head], of other values [size]
        self.means: dict[str, Tensor] = {}
        #: by tap name, [n_head, query, key] over the first row of the first piece
        self.patterns: dict[str, Tensor] = {}
        averaged = {_tap(one) for one in edits if one.to == MEAN}
        copied = {_tap(one) for one in edits if one.to == FROM}
        counts = dict.fromkeys(averaged, 0)
        if not averaged and not copied:
            return
        for before, piece in enumerate(reference):
            real = {"": _real(model, piece.ids)} | (
                {} if piece.source is None else {ENCODER: _real(model, piece.source)}
            )

            def see(name: str, value: Tensor, real: dict[str, Tensor] = real) -> None:
                if name in copied:
                    self.patterns.setdefault(name, value[0].clone())
                if name in averaged:
                    by_token = value.transpose(1, 2) if name.endswith(".z") else value  # [B, T, …]
                    # [tokens, …]
                    tokens = by_token[real[ENCODER if name.startswith(ENCODER) else ""]]
                    self.means[name] = self.means.get(name, 0.0) + tokens.sum(0)
                    counts[name] += len(tokens)

            with torch.no_grad(), progress.part(before, len(reference)):
                model(
                    piece.ids,
                    piece.source,
                    tap=Watch(sorted(averaged | copied), see),
                    logits_at=slice(-1, None),
                )
        self.means = {name: total / counts[name] for name, total in self.means.items()}


def _real(model: Transformer, ids: Tensor) -> Tensor:
    """Where `ids` [B, T] are no padding. The first token counts always: some models begin with the
    token that pads.
    """
    if model.config.padding is None:
        real = torch.ones_like(ids, dtype=torch.bool)
    else:
        real = ids != model.config.padding
    real[:, 0] = True
    return real


def _replacement(one: UnitEdit, values: _Values) -> Replacement:
    """The function that puts the edit in the place of what the model computed."""
    part = one.unit
    name = _tap(one)
    if one.to in PATTERNS:
        return _pattern(part, one.to, values.patterns.get(name))
    if part.index is None:
        heads_or_neuron = slice(None)
    else:
        heads_or_neuron = slice(part.index, part.index + 1)
    if one.to == MEAN:
        mean = values.means[name][heads_or_neuron]  # [d_model], [1, d_head] or [1]
        put = mean[:, None] if part.is_head else mean
    else:
        put = torch.tensor(0.0 if one.to == ZERO else float(one.to))

    def replace(value: Tensor, seen: Pass) -> Tensor:
        (value[:, heads_or_neuron] if part.is_head else value[..., heads_or_neuron])[:] = put.to(
            value
        )
        return value

    return replace


def _along(vector: Tensor, to: str | float) -> Replacement:
    """The stream [B, T, d_model] with `to` times the `vector` added; with "zero", without its part
    along the vector.
    """
    if to == ZERO:
        return _less(vector, 1)
    return lambda value, seen: value + float(to) * vector.to(value) if to else value


def _less(vector: Tensor, share: float) -> Replacement:
    """The stream [B, T, d_model] less a `share` of its part along the `vector`: 1 leaves nothing of
    it, 2 mirrors the stream.
    """

    def replace(value: Tensor, seen: Pass) -> Tensor:
        along = vector.to(value) / vector.to(value).norm()
        if share:
            return value - share * (value @ along)[..., None] * along
        return value

    return replace


def _pattern(part: Unit, to: str | float, stored: Tensor | None) -> Replacement:
    if part.index is None:
        heads = slice(None)
    else:
        heads = slice(part.index, part.index + 1)
    block = part.block or 0
    crosses = part.part == "cross_attention"

    def replace(value: Tensor, seen: Pass) -> Tensor:
        """The pattern [B, H, query, key] with other rows; those that cannot be replaced stay."""
        at = seen.queries(value, crosses=crosses)
        hidden = seen.hidden(block, at, crosses=crosses)
        if hidden is None:
            open_to = torch.ones_like(value[:1, :1])
        else:
            open_to = (~hidden).to(value).expand_as(value[:, :1])
        if to == UNIFORM:
            rows = open_to
        elif to == PREVIOUS:
            # The pattern [1, 1, query, key] in which every token reads the one before it, and the
            # first one itself.
            previous = torch.arange(at.start, at.stop, device=value.device).sub(1).clamp(min=0)
            rows = (
                torch.nn.functional.one_hot(previous, value.shape[-1]).to(value)[None, None]
                * open_to
            )
        else:
            assert stored is not None
            rows = _of_reference(value, at, stored[heads]) * open_to
        total = rows.sum(-1, keepdim=True)
        # Where nothing was hidden or cut, the rows of another text add up to 1 except for rounding,
        # and do not change at all.
        whole = (total - 1).abs() < WHOLE
        rows = torch.where(whole, rows, rows / total.clamp(min=torch.finfo(rows.dtype).tiny))
        value[:, heads] = torch.where(total > 0, rows, value[:, heads])
        return value

    return replace


WHOLE = 1e-4


def _of_reference(value: Tensor, at: slice, stored: Tensor) -> Tensor:
    """The rows [1, heads, query, key] of a pattern over another text, cut to these keys; zeros
    beyond its length.
    """
    rows = value.new_zeros(1, len(stored), value.shape[-2], value.shape[-1])
    held = stored[:, at.start : at.stop, : value.shape[-1]]
    rows[0, :, : held.shape[1], : held.shape[2]] = held
    return rows


def _reposition(config: Config, to: str | float) -> Reposition:
    if to == ZERO:
        return lambda positions: positions.without_effect()
    order = torch.randperm(
        config.context_length, generator=torch.Generator().manual_seed(SHUFFLE_SEED)
    )
    return lambda positions: positions.in_order(order)


class Fitting(NamedTuple):
    """Edits of an address as far as they apply to a model."""

    edits: tuple[UnitEdit, ...]  #: those that do, in the order of the model's parts
    rejected: tuple[str, ...]  #: for each other one, why it does not apply, in one line


def fitting(texts: Iterable[str], model: Transformer) -> Fitting:
    """The `texts` that are edits of this model, and why the others are not; 200 are read at
    most.
    """
    listed = list(texts)
    found = dict[Unit, UnitEdit]()
    rejected = list[str]()
    for text, one in _tried(listed[:MOST_EDITS], model):
        if isinstance(one, str):
            rejected.append(one)
        elif found.setdefault(one.unit, one) != one:
            rejected.append(f"{text!r:.80}: {one.unit.name} is edited already")
    rejected += [
        f"{text!r:.80}: an address may have {MOST_EDITS} edits, and this one comes after them"
        for text in listed[MOST_EDITS:]
    ]
    return Fitting(edits([one.text for one in found.values()], model.config), tuple(rejected))


def _tried(texts: Iterable[str], model: Transformer) -> Iterator[tuple[str, UnitEdit | str]]:
    for text in texts:
        try:
            new = edit(text, model.config)
            if new.unit.part == ADAPTER:
                _adapted(model)
            list(_in_stream([new], model))
            yield text, new
        except ValueError as error:
            yield text, str(error)
