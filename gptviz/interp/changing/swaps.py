"""Swaps: two tokens change places in the stream after a layer.

The direction of a token is the one along which the logit lens reads its logit: its row of the
unembedding, through the final norm. With a fitted lens, it is brought back through the map of the
layer. Both directions are made 1 long. Then the stream is mirrored so that each becomes the other:
the part of it along one direction is along the other afterwards. Its length stays, and so does
everything at a right angle to both. A second swap brings everything back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import torch
from torch import Tensor

from gptviz.model import Config, Transformer
from gptviz.model.parts.heads import Unembed
from gptviz.model.parts.norms import Norm
from gptviz.runs import fitted

from ..explaining.through_norms import read_through
from ..reading.layers import EMBEDDING, Layer, layers
from ..units.unit import Unit
from .edit import Acts, StreamEdit, Values, parse_strength, round_number, take_away

SWAP: Final = "swap"

# A layer, the ids of two tokens, and the name of a fitted lens, where one is used.
_PARTS = re.compile(r"(.+?)\.([0-9]+)\.([0-9]+)(?:\.([0-9a-f]{32}))?")

_SUBLAYERS = {"cross_attention": "cross-attention", "mlp": "MLP"}


@dataclass(frozen=True)
class Swap:
    """Two tokens that change places after a layer."""

    layer: Layer  #: after which the stream is changed
    #: their ids, the smaller one first: which of the two is named first changes nothing
    tokens: tuple[int, int]
    lens: str = ""  #: the name under which a fitted lens is kept; empty for the logit lens

    @property
    def called(self) -> str:
        """Its name, which `swap` reads."""
        return ".".join(
            (self.layer.name, *map(str, self.tokens), *([self.lens] if self.lens else []))
        )

    def __mul__(self, strength: float) -> SwapEdit:
        """The edit that swaps the tokens so far: at 1 they change places."""
        return SwapEdit(Unit(SWAP, called=self.called), round_number(strength), swap=self)


def swap(called: str, config: Config) -> Swap:
    """The swap of this name; a ValueError if the model has no such layer or tokens, guesses none,
    or both are the same.
    """
    parts = _PARTS.fullmatch(called)
    if parts is None:
        raise ValueError(
            f"swap.{called}: name a layer and two tokens by their ids, as in "
            "swap.blocks.1.mlp.17.42"
        )
    name = parts[1]
    one, other = sorted((int(parts[2]), int(parts[3])))
    if config.kind == "classifier" or not config.n_layer:
        raise ValueError(
            f"swap.{called}: tokens are swapped in the stream of models that have blocks and "
            "guess tokens"
        )
    layer = next((each for each in layers(config) if each.name == name), None)
    if layer is None:
        first, *_, last = (each.name for each in layers(config))
        raise ValueError(
            f"swap.{called}: this model has no layer {name:.40}; they go from {first} to {last}"
        )
    if one == other or other >= config.vocab_size:
        raise ValueError(
            f"swap.{called}: name two different tokens by their ids, from 0 to "
            f"{config.vocab_size - 1:,}"
        )
    return Swap(layer, (one, other), parts[4] or "")


@torch.no_grad()
def difference(model: Transformer, asked: Swap) -> Tensor:
    """From the direction of one token to that of the other, both 1 long: [d_model]. A ValueError if
    the lens is not kept on this machine, or is that of another model, or both directions are the
    same.
    """
    final = model.head.final_norm
    assert isinstance(model.head, Unembed)
    assert final is None or isinstance(final, Norm)
    # [2, d_model]
    rows = read_through(final, model.head.unembed.weight[list(asked.tokens)].float())
    if asked.lens:
        at = layers(model.config).index(asked.layer)
        kept = fitted.kept_tensors(asked.lens)
        if "matrices" not in kept:
            raise ValueError(
                f"swap.{asked.called}: the lens is not on this machine: fit it, or read its file, "
                "under Logit lens"
            )
        maps = kept["matrices"]
        fitted_at = kept["at"].tolist()
        if maps.shape[-1] != model.config.d_model or at not in fitted_at:
            raise ValueError(
                f"swap.{asked.called}: the lens is that of another model, or does not have this "
                "layer"
            )
        rows = rows @ maps[fitted_at.index(at)].to(rows)
    units = rows / rows.norm(dim=-1, keepdim=True)
    step: Tensor = units[0] - units[1]
    if not step.isfinite().all() or not step.any():
        raise ValueError(
            f"swap.{asked.called}: both tokens have the same direction, or one has none"
        )
    return step


@dataclass(frozen=True, kw_only=True)
class SwapEdit(StreamEdit):
    """Two tokens that change places in the stream: `swap.blocks.1.mlp.17.42=1`."""

    swap: Swap  #: the layer and the tokens

    @classmethod
    def parse(cls, unit: Unit, text: str, config: Config) -> SwapEdit:
        """As `Edit.parse`."""
        asked = swap(unit.called, config)
        return asked * (parse_strength(text.strip(), "a swap") if "=" in text else 1)

    def title_with(self, token: Callable[[int], str]) -> str:
        """As `Edit.title_with`."""
        layer = self.swap.layer.name
        one, other = map(token, self.swap.tokens)
        block, _, part = layer.removeprefix("blocks.").partition(".")
        of = f"the {_SUBLAYERS.get(part, part)} of " if part else ""
        place = "the embedding" if layer == EMBEDDING else f"{of}block {block}"
        how_far = "" if self.to == 1 else f", {self.to:g} of the way"
        by = " (by the directions of a fitted lens)" if self.swap.lens else ""
        return f"Tokens {one} and {other} change places in the stream after {place}{how_far}{by}"

    @classmethod
    def act(cls, edits: Sequence[Self], values: Values) -> Acts:
        """As `Edit.act`."""
        for one in edits:
            step = difference(values.model, one.swap)
            yield one.swap.layer.tap, take_away(step, 2 * one.number)
