"""Edits of what a model computes: heads, MLPs, neurons, experts, embeddings and positions that are
switched off or replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Self

import torch
from torch import Tensor

from gptviz.model import Config
from gptviz.model.edited import Pass, Replacement, Reposition
from gptviz.model.parts.positions import POSITIONS

from ..units.unit import Unit
from .edit import FROM, MEAN, ZERO, Acts, Edit, Values, Words

UNIFORM: Final = "uniform"
PREVIOUS: Final = "previous"
SHUFFLED: Final = "shuffled"
PATTERNS = (UNIFORM, PREVIOUS, FROM)
# The places of the context in a random order, which is the same in every run.
SHUFFLE_SEED = 0
# A row of a pattern adds up to 1 except for rounding.
WHOLE = 1e-4


class UnitEdit(Edit):
    """An edit of the embedding or of an MLP: another value in the place of what it computes."""

    becomes: ClassVar[Words] = {
        **Edit.becomes,
        MEAN: " is replaced by its mean over the reference text",
    }

    @property
    def place(self) -> slice:
        """The place of the unit in the value: of all heads, neurons or experts, its own."""
        if self.unit.index is None:
            return slice(None)
        return slice(self.unit.index, self.unit.index + 1)

    @classmethod
    def act(cls, edits: Sequence[Self], values: Values) -> Acts:
        """As `Edit.act`."""
        return ((one.tap, one.replacement(values)) for one in edits)

    def replacement(self, values: Values) -> Replacement:
        """The function that puts the edit in the place of what the model computed."""
        at = self.place
        is_head = self.unit.is_head
        if self.to == MEAN:
            mean = values.means[self.tap][at]  # [d_model], [1, d_head] or [1]
            put = mean[:, None] if is_head else mean
        else:
            put = torch.tensor(self.number)

        def replace(value: Tensor, seen: Pass) -> Tensor:
            (value[:, at] if is_head else value[..., at])[:] = put.to(value)
            return value

        return replace


class NeuronEdit(UnitEdit):
    """An edit of a neuron of an MLP."""

    set_to = " is set to {:.6g}"


class ExpertEdit(UnitEdit):
    """An edit of an expert: what it adds is left out; the others keep their weights."""

    becomes: ClassVar[Words] = Edit.becomes


class AttentionEdit(UnitEdit):
    """An edit of a whole attention or of one head: of its pattern, or of what it computes."""

    becomes: ClassVar[Words] = {
        **UnitEdit.becomes,
        UNIFORM: ": {pattern} is uniform, every token it may read weighs the same",
        PREVIOUS: ": {pattern} is only on the previous token",
        FROM: ": {pattern} is that over the reference text",
    }

    def title_with(self, token: Callable[[int], str]) -> str:
        """As `Edit.title_with`."""
        pattern = "its pattern" if self.unit.is_head else "the pattern of all its heads"
        return super().title_with(token).format(pattern=pattern)

    @property
    def is_of_pattern(self) -> bool:
        """Whether it replaces the pattern, and not what is computed with it."""
        return self.to in PATTERNS

    @property
    def tap(self) -> str:
        """As `UnitEdit.tap`."""
        if self.is_of_pattern:
            return f"{self.unit.layer}.pattern"
        return super().tap

    def replacement(self, values: Values) -> Replacement:
        """As `UnitEdit.replacement`."""
        if not self.is_of_pattern:
            return super().replacement(values)
        block = self.unit.block or 0
        heads = self.place
        crosses = self.unit.crosses

        def replace(value: Tensor, seen: Pass) -> Tensor:
            """The pattern [B, H, query, key] with other rows; those that cannot be replaced
            stay.
            """
            at = seen.queries(value, crosses=crosses)
            hidden = seen.hidden_keys(block, at, crosses=crosses)
            if hidden is None:
                open_to = torch.ones_like(value[:1, :1])
            else:
                open_to = (~hidden).to(value).expand_as(value[:, :1])
            if self.to == UNIFORM:
                rows = open_to
            elif self.to == PREVIOUS:
                # The pattern [1, 1, query, key] in which every token reads the one before it, and
                # the first one itself.
                previous = torch.arange(at.start, at.stop, device=value.device).sub(1).clamp(min=0)
                rows = (
                    torch.nn.functional.one_hot(previous, value.shape[-1]).to(value)[None, None]
                    * open_to
                )
            else:
                rows = _of_reference(value, at, values.patterns[self.tap][heads]) * open_to
            total = rows.sum(-1, keepdim=True)
            # Where nothing was hidden or cut, the rows of another text add up to 1 except for
            # rounding, and do not change at all.
            whole = (total - 1).abs() < WHOLE
            rows = torch.where(whole, rows, rows / total.clamp(min=torch.finfo(rows.dtype).tiny))
            value[:, heads] = torch.where(total > 0, rows, value[:, heads])
            return value

        return replace


class CrossAttentionEdit(AttentionEdit):
    """An edit of a cross-attention or of one of its heads: no token before one is read there."""

    becomes: ClassVar[Words] = {
        word: what for word, what in AttentionEdit.becomes.items() if word != PREVIOUS
    }


def _of_reference(value: Tensor, at: slice, stored: Tensor) -> Tensor:
    """The rows [1, heads, query, key] of a pattern over another text, cut to these keys; zeros
    beyond its length.
    """
    rows = value.new_zeros(1, len(stored), value.shape[-2], value.shape[-1])
    held = stored[:, at.start : at.stop, : value.shape[-1]]
    rows[0, :, : held.shape[1], : held.shape[2]] = held
    return rows


class PositionsEdit(Edit):
    """An edit of the positions of a stack of blocks."""

    becomes: ClassVar[Words] = {
        ZERO: " are switched off (zero)",
        SHUFFLED: " are told in a random order",
    }

    @classmethod
    def parse(cls, unit: Unit, text: str, config: Config) -> Edit:
        """As `Edit.parse`; a ValueError too if the model has no positions."""
        if POSITIONS[config.positions].acts_on == "nothing":
            raise ValueError(f"{unit.name}: this model has no positions")
        return super().parse(unit, text, config)

    def reposition(self, config: Config) -> Reposition:
        """What it makes of the positions of a model of this config."""
        if self.to == ZERO:
            return lambda positions: positions.without_effect()
        order = torch.randperm(
            config.context_length, generator=torch.Generator().manual_seed(SHUFFLE_SEED)
        )
        return lambda positions: positions.in_order(order)
