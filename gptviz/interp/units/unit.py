"""Units: the pieces of a model that can be given credit for a logit or be switched off, and their
names.

A name is a path, as in `blocks.1.attention.head.3`; it is the same on the command line, in
addresses and in the library. Blocks, heads and neurons are counted from 0. A direction in the
stream is a unit too, `direction.number-1f0c2a9b`, and a feature of a dictionary,
`dictionary.sentences-features.feature.17`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from gptviz.model import Config

UnitKind = (
    Literal[
        "adapter", "embed", "positions", "attention", "cross_attention", "mlp", "expert", "weights"
    ]
    | Literal["direction", "dictionary", "missed", "swap"]
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


class Kind(NamedTuple):
    """What the units of one part of a model are called."""

    layer: str  #: their name without the piece, with {block} and {called}
    title: str  #: the whole in a sentence
    value: str = "neurons"  #: the last word of the tap with what its pieces compute
    piece: str = "neuron"  #: what a piece of it is called
    #: such a piece in a sentence, with its {kind} and {index}
    title_of_piece: str = "{kind} {index} of block {block}"


KINDS: Final[Mapping[UnitKind, Kind]] = {
    "embed": Kind("embed", "token embedding"),
    "positions": Kind("positions", "positions"),
    "attention": Kind("blocks.{block}.attention", "attention of block {block}", "z", "head"),
    "cross_attention": Kind(
        "blocks.{block}.cross_attention",
        "cross-attention of block {block}",
        "z",
        "head",
        "cross-attention head {index} of block {block}",
    ),
    "mlp": Kind("blocks.{block}.mlp", "MLP of block {block}"),
    "expert": Kind("blocks.{block}.mlp", "experts of block {block}", "experts", "expert"),
    "adapter": Kind("adapter", "LoRA adapter"),
    "weights": Kind("{called}", "matrix {called}"),
    "direction": Kind("direction.{called}", "direction {called}"),
    "dictionary": Kind(
        "dictionary.{called}", "features of {called}", "", "feature", "feature {index} of {called}"
    ),
    # of a circuit over features, what those of a dictionary do not give back: no edit reaches it
    "missed": Kind("dictionary.{called}.missed", "what {called} misses"),
    "swap": Kind("swap.{called}", "swap {called}"),
}


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
    def kind(self) -> str:
        """What a piece of its layer is called: head, neuron, expert or feature."""
        return KINDS[self.part].piece

    @property
    def is_head(self) -> bool:
        """Whether it is one head."""
        return self.kind == "head" and self.index is not None

    @property
    def is_mlp(self) -> bool:
        """Whether it is a whole MLP or one of its neurons."""
        return self.part == "mlp"

    @property
    def is_neuron(self) -> bool:
        """Whether it is one neuron."""
        return self.is_mlp and self.index is not None

    @property
    def crosses(self) -> bool:
        """Whether it is a cross-attention or one of its heads."""
        return self.part == "cross_attention"

    @property
    def whole(self) -> Unit:
        """What it is a piece of: of a head its attention; a whole is its own."""
        return replace(self, index=None)

    @property
    def layer(self) -> str:
        """What tap names of its attention or MLP begin with, as in `blocks.1.attention`; its name
        for embedding and positions.
        """
        layer = KINDS[self.part].layer.format(**vars(self)) or self.part
        return f"encoder.{layer}" if self.in_encoder else layer

    @property
    def name(self) -> str:
        """Its name, which `unit` reads."""
        return self.layer + ("" if self.index is None else f".{self.kind}.{self.index}")

    @property
    def tap(self) -> str:
        """The name of the tap with what it computes; of a piece, with what all pieces do."""
        if self.block is None:
            return self.layer
        value = "out" if self.index is None else KINDS[self.part].value
        return f"{self.layer}.{value}"

    @property
    def title(self) -> str:
        """Its name in a sentence, as in "head 3 of block 1"."""
        kind = KINDS[self.part]
        title = kind.title if self.index is None else kind.title_of_piece
        return title.format(kind=kind.piece, **vars(self)) + (
            " of the encoder" if self.in_encoder else ""
        )


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
        raise ValueError(f"{name}: there is no block {block}; {_count_units('block', n_block)}")
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
        raise ValueError(f"{name}: there is no {kind} {number}; {_count_units(kind, count)}")
    return number


def _count_units(kind: str, count: int) -> str:
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
