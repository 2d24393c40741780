"""Edits of the weights of a model: matrices that are kept in few bits (see
`gptviz.model.quantising`), and the strength of a LoRA adapter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Final

from torch import Tensor

from gptviz.machine import progress
from gptviz.machine.memory import FLOAT32, MOST_OF_MEMORY, in_bytes, room, way_out
from gptviz.model import Config, Transformer
from gptviz.model.edited import with_weights
from gptviz.model.lora import MergedTransformer
from gptviz.model.quantising import Quantiser, matrices, matrix_names, quantiser

from ..units.unit import Unit
from .edit import Edit, Words, parse_strength

# The unit that stands for all matrices, and the end of the name of one of them.
WEIGHTS: Final = "weights"
OF_MATRIX = ".weight"
ADAPTER: Final = "adapter"


class WeightsEdit(Edit):
    """One matrix, or all of them, in few bits: `weights=4bit.g32`, `blocks.0.mlp.up.weight=Q4_0`.
    What it becomes is the name of a quantiser.
    """

    becomes: ClassVar[Words] = {}
    is_of_weights = True
    is_of_values = False

    @classmethod
    def parse(cls, unit: Unit, text: str, config: Config) -> Edit:
        """As `Edit.parse`."""
        name = unit.called
        if name and name not in matrix_names(config):
            # A model of many blocks has many matrices with the same names.
            named = dict.fromkeys(
                re.sub(r"blocks\.[0-9]+", "blocks.N", one) for one in matrix_names(config)
            )
            raise ValueError(
                f"{name!r:.80} is no matrix of this model; there are {', '.join(named)}"
            )
        try:
            return cls(unit, quantiser(text.strip().partition("=")[2]).name)
        except ValueError as error:
            raise ValueError(f"{unit.name}: {error}") from None

    @property
    def quantiser(self) -> Quantiser:
        """How the numbers are kept."""
        return quantiser(str(self.to))

    def title_with(self, token: Callable[[int], str]) -> str:
        """As `Edit.title_with`."""
        what = f"Matrix {self.unit.called} is" if self.unit.called else "All matrices are"
        return f"{what} {self.quantiser.title} (simulated)"


class AdapterEdit(Edit):
    """The strength of a LoRA adapter: `adapter=0.5`."""

    becomes: ClassVar[Words] = {}
    set_to = " acts with strength {:g}: 0 is its base, 1 is as trained"
    is_of_values = False

    @classmethod
    def parse(cls, unit: Unit, text: str, config: Config) -> Edit:
        """As `Edit.parse`."""
        return cls(unit, parse_strength(text.strip(), "an adapter"))

    def require_fit(self, model: Transformer) -> None:
        """As `Edit.require_fit`."""
        self.apply_to(model)

    def apply_to(self, model: Transformer) -> Transformer:
        """The model with this strength; a ValueError if it has no adapter."""
        if not isinstance(model, MergedTransformer):
            raise ValueError(
                "adapter: this model is no LoRA adapter, so there is no strength to change"
            )
        return model.with_strength(self.number)


def unit_of_weights(name: str) -> Unit | None:
    """The unit of this name if it is of weights: all matrices, one matrix or the adapter."""
    if name == ADAPTER:
        return Unit(ADAPTER)
    if name == WEIGHTS or name.endswith(OF_MATRIX):
        return Unit(WEIGHTS, called="" if name == WEIGHTS else name)
    return None


def quantisers(edits: Iterable[Edit], config: Config) -> dict[str, Quantiser]:
    """For each matrix that some of `edits` keep in few bits, by name, how; an edit of one matrix
    counts more than that of all.
    """
    chosen = {one.unit.called: one.quantiser for one in edits if isinstance(one, WeightsEdit)}
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
    for name, each in progress.report_each(iter(kept.items()), len(kept), "matrix"):
        try:
            fresh[name] = each.brought_back(own[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return with_weights(model, fresh)
