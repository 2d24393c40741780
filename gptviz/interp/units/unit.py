"""Units: the pieces of a model that can be given credit for a logit or be switched off, and their
names.

A name is a path, as in `blocks.1.attention.head.3`; it is the same on the command line, in
addresses and in the library. Blocks, heads and neurons are counted from 0. A direction in the
stream is a unit too, `direction.number-1f0c2a9b`, and a feature of a dictionary,
`dictionary.sentences-features.feature.17`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gptviz.model import Config

UnitKind = (
    Literal[
        "adapter", "embed", "positions", "attention", "cross_attention", "mlp", "expert", "weights"
    ]
    | Literal["direction", "dictionary", "swap"]
)

_KEPT = r"[a-z0-9][a-z0-9-]{0,59}"  # the name of what was fitted and is kept
_NAME = re.compile(
    rf"direction\.(?P<direction>{_KEPT})|dictionary\.(?P<dictionary>{_KEPT})\.feature\.(?P<feature>[0-9]{{1,8}})|"
    r"swap\.(?P<swap>[a-z0-9._]{1,120})|"
    r"(?P<encoder>encoder\.)?(?:(?P<whole>embed|positions)|blocks\.(?P<block>[0-9]{1,4})\."
    r"(?:(?P<attention>attention|cross_attention)(?:\.head\.(?P<head>[0-9]{1,6}))?|"
    r"(?P<mlp>mlp)(?:\.neuron\.(?P<neuron>[0-9]{1,8})|\.expert\.(?P<expert>[0-9]{1,4}))?))"
)
FORMS = (
    "blocks.1.attention, blocks.1.attention.head.3, blocks.1.mlp, blocks.1.mlp.neuron.17, "
    "blocks.1.mlp.expert.3, embed, "
    "positions, direction.NAME, dictionary.NAME.feature.17 or swap.embed.3.7"
)


@dataclass(frozen=True, order=True)
class Unit:
    """A piece of a model."""

    part: UnitKind  #: what it is, or what it is a piece of
    #: the number of its block, or None for embedding and positions, and for an adapter, a direction
    #: and a dictionary, which say themselves where they act
    block: int | None = None
    #: the number of a head, a neuron, an expert or a feature, or None for a whole attention or a
    #: whole MLP, and outside blocks
    index: int | None = None
    in_encoder: bool = False  #: whether it belongs to the encoder of an encoder–decoder
    #: of a direction and a dictionary, the name that it is kept under; of weights, the name of one
    #: matrix, all of them without it; of a swap, the layer and the ids of two tokens. These can be
    #: edited, and nothing else.
    called: str = ""

    @property
    def is_head(self) -> bool:
        """Whether it is one head."""
        return self.part in ("attention", "cross_attention") and self.index is not None

    @property
    def is_neuron(self) -> bool:
        """Whether it is one neuron."""
        return self.part == "mlp" and self.index is not None

    @property
    def kind(self) -> str:
        """What a piece of its layer is called: head, neuron, expert or feature."""
        if "attention" in self.part:
            return "head"
        return {"expert": "expert", "dictionary": "feature"}.get(self.part, "neuron")

    @property
    def layer(self) -> str:
        """What tap names of its attention or MLP begin with, as in `blocks.1.attention`; its name
        for embedding and positions.
        """
        if self.called:
            if self.part == "weights":
                return self.called
            return f"{self.part}.{self.called}"
        part = "mlp" if self.part == "expert" else self.part
        place = part if self.block is None else f"blocks.{self.block}.{part}"
        if self.in_encoder:
            return f"encoder.{place}"
        return place

    @property
    def name(self) -> str:
        """Its name, which `unit` reads."""
        return self.layer + ("" if self.index is None else f".{self.kind}.{self.index}")

    @property
    def title(self) -> str:
        """Its name in a sentence, as in "head 3 of block 1"."""
        kinds = {"attention": "attention", "cross_attention": "cross-attention", "mlp": "MLP"}
        if self.part == "weights":
            if self.called:
                return f"matrix {self.called}"
            return "all matrices"
        if self.part in ("direction", "swap"):
            return f"{self.part} {self.called}"
        if self.part == "dictionary":
            return f"feature {self.index} of {self.called}"
        if self.block is None:
            title = {
                "adapter": "LoRA adapter",
                "embed": "token embedding",
                "positions": "positions",
            }[self.part]
        elif self.index is None:
            title = f"{kinds[self.part]} of block {self.block}"
        else:
            if self.part == "cross_attention":
                piece = "cross-attention head"
            else:
                piece = self.kind
            title = f"{piece} {self.index} of block {self.block}"
        if self.in_encoder:
            return f"{title} of the encoder"
        return title


def unit(name: str, config: Config) -> Unit:
    """The unit of this `name`; if it is none, or the model has no such unit, a ValueError names
    what is possible.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r:.60} names no part of a model; names are {FORMS}")
    if match["direction"]:
        return Unit("direction", called=match["direction"])
    if match["dictionary"]:
        return Unit("dictionary", index=int(match["feature"]), called=match["dictionary"])
    if match["swap"]:
        return Unit("swap", called=match["swap"])
    in_encoder = match["encoder"] is not None
    if in_encoder and not config.n_encoder_layer:
        raise ValueError(f"{name}: this model has no encoder")
    if match["whole"]:
        return Unit("embed" if match["whole"] == "embed" else "positions", in_encoder=in_encoder)
    n_block = config.n_encoder_layer if in_encoder else config.n_layer
    block = int(match["block"])
    if block >= n_block:
        raise ValueError(f"{name}: there is no block {block}; {_counted('block', n_block)}")
    if match["mlp"]:
        if not config.mlp_size:
            raise ValueError(f"{name}: the blocks of this model have no MLP")
        if match["expert"]:
            return Unit(
                "expert",
                block,
                _number(name, "expert", match["expert"], config.experts),
                in_encoder,
            )
        return Unit(
            "mlp", block, _number(name, "neuron", match["neuron"], config.mlp_size), in_encoder
        )
    crosses = match["attention"] == "cross_attention"
    if crosses and (in_encoder or not config.n_encoder_layer):
        raise ValueError(f"{name}: there is no cross-attention")
    part: UnitKind = "cross_attention" if crosses else "attention"
    return Unit(part, block, _number(name, "head", match["head"], config.n_head), in_encoder)


def _number(name: str, kind: str, text: str | None, count: int) -> int | None:
    number = None if text is None else int(text)
    if number is not None and number >= count:
        raise ValueError(f"{name}: there is no {kind} {number}; {_counted(kind, count)}")
    return number


def _counted(kind: str, count: int) -> str:
    if not count:
        return f"this model has no {kind}s"
    return f"{kind}s are counted from 0 to {count - 1}"


def heads_and_mlps(config: Config) -> tuple[Unit, ...]:
    """Every head and every whole MLP, in the order in which the model computes them: those of the
    encoder first.
    """
    units: list[Unit] = []
    for in_encoder, n_block in ((True, config.n_encoder_layer), (False, config.n_layer)):
        for block in range(n_block):
            units += [Unit("attention", block, head, in_encoder) for head in range(config.n_head)]
            if config.n_encoder_layer and not in_encoder:
                units += [Unit("cross_attention", block, head) for head in range(config.n_head)]
            if config.mlp_size:
                units.append(Unit("mlp", block, in_encoder=in_encoder))
    return tuple(units)
