"""What heads and MLPs do over a list of prompts: mean and spread of what patching, attribution and
switching off say of each.

One prompt shows what a head does there; whether it does so in general, only many prompts can say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.model import Transformer

from .changing.ablation import NOT_COUNTED, Rows, loss, loss_with_each
from .changing.edit import Inputs
from .changing.edits import edit_unit
from .changing.patching import PatchedPiece, PromptPair, answers, is_difference
from .explaining.attribution import attribute
from .trace import one_row
from .units.unit import Unit, heads_and_mlps

How = Literal["patch", "attribute", "switch off"]
# What each of them says of a head or an MLP.
SAYS: dict[How, str] = {
    "patch": "share of the answer restored",
    "attribute": "added to the difference of logits",
    "switch off": "rise of the loss of the right answer without it (nats)",
}


@dataclass(frozen=True)
class AskedPrompt:
    """A prompt of a decoder and its answers."""

    ids: tuple[int, ...]  #: the tokens [T]
    right: int  #: the token that is the right answer
    #: the one that is compared with it, or None where there is only the right answer
    wrong: int | None = None
    #: the tokens [T] of a prompt with the other answer, or None; to patch needs it, and `wrong`
    corrupted: tuple[int, ...] | None = None


def measure_prompt(model: Transformer, asked: AskedPrompt, how: How) -> dict[str, float]:
    """What one prompt says of every head and every MLP, by name, in the unit of `SAYS`.

    "patch": the share of the answer that comes back if what the head hands on, or what the MLP
    adds, is put at all positions into the pass over the corrupted prompt. "attribute": what it adds
    to the logit of the right answer, less that of the wrong one. "switch off": how much −ln of the
    probability of the right answer rises if it is replaced by zero. A ValueError as in `attribute`,
    or, to patch, if there is no corrupted prompt or both prompts have the same answer.
    """
    units = heads_and_mlps(model.config)
    if how == "patch":
        return _patch_units(model, asked, units)
    if how == "attribute":
        adds = attribute(model, asked.ids, asked.right, None, asked.wrong).values
        # not of a sublayer that an edit replaced
        return {unit.name: adds.get(unit.name, float("nan")) for unit in units}
    reading = Inputs(*one_row(model, asked.ids))
    targets = torch.full_like(reading.ids, NOT_COUNTED)
    targets[0, -1] = asked.right
    rows = [Rows(reading, targets)]
    before = loss(model, rows)
    return {
        edit.unit.name: value - before
        for edit, value in loss_with_each(model, rows, [edit_unit(unit) for unit in units])
    }


def _patch_units(model: Transformer, asked: AskedPrompt, units: Sequence[Unit]) -> dict[str, float]:
    if asked.corrupted is None or asked.wrong is None:
        raise ValueError("to patch takes a corrupted prompt, which has another answer")
    pair = PromptPair(asked.ids, asked.corrupted, asked.right, asked.wrong)

    def pieces(unit: Unit) -> list[PatchedPiece]:
        if unit.index is not None:
            return [PatchedPiece(f"{unit.layer}.z", unit.index)]
        return [PatchedPiece(f"{unit.layer}.out", place) for place in range(len(asked.ids))]

    clean, corrupted, patched = answers(model, pair, [pieces(unit) for unit in units])
    if not is_difference(clean, corrupted):
        raise ValueError("both prompts have the same answer, so there is nothing to restore")
    return {
        unit.name: (answer - corrupted) / (clean - corrupted)
        for unit, answer in zip(units, patched, strict=True)
    }


@dataclass(frozen=True)
class Spread:
    """What a list of prompts says of heads and MLPs."""

    how: How  #: what was measured
    units: tuple[str, ...]  #: their names
    values: Float64Array  #: [prompt, unit]; NaN where one says nothing of a unit

    @property
    def mean(self) -> Float64Array:
        """The mean over the prompts, [unit]."""
        return np.asarray(self.values.mean(0))

    @property
    def deviation(self) -> Float64Array:
        """The standard deviation of the prompts, [unit], by n − 1; NaN of a single one."""
        if len(self.values) < 2:
            return np.full(len(self.units), np.nan)
        return np.asarray(self.values.std(0, ddof=1))

    @property
    def same_sign(self) -> Float64Array:
        """The share of the prompts that have the sign of the mean, [unit]."""
        return np.asarray((np.sign(self.values) == np.sign(self.mean)).mean(0))

    def labelled(self) -> LabelledArray:
        """Mean, standard deviation and share of the same sign, [number, unit]."""
        numbers = Axis("number", ("mean", "standard deviation", "share of the same sign"))
        return LabelledArray(
            np.stack((self.mean, self.deviation, self.same_sign)),
            (numbers, Axis("unit", self.units)),
            "value",
        )


def spread(values_of_prompts: Sequence[Mapping[str, float]], how: How) -> Spread:
    """What `measure_prompt` says of all prompts together; of one at least."""
    units = tuple(values_of_prompts[0])
    return Spread(
        how, units, np.array([[values[name] for name in units] for values in values_of_prompts])
    )
