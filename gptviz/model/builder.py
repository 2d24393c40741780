"""The builder: reads a config once and lays out the parts, so that no forward pass has to look at
the config.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, cast

import torch
from torch import nn

from .config import Config
from .fast import make_fast
from .parts.attention import Attention, CrossAttention
from .parts.blocks import Block, ParallelBlock
from .parts.heads import HEADS, EncoderHead, Head, Unembed
from .parts.masks import MASKS, WindowMask
from .parts.mlps import MLPS
from .parts.norms import new_norm
from .parts.part import Embedding, ScaledEmbedding
from .parts.positions import POSITIONS, NoPositions, PositionEncoding, Relative
from .parts.residuals import RESIDUALS, Parallel
from .parts.shortcuts import Mix, Smear
from .transformer import Transformer


def build(
    config: Config, *, seed: int | None = None, device: torch.device | str = "cpu"
) -> Transformer:
    """A transformer with fresh weights on `device`; the same `seed` gives the same weights on every
    device.
    """
    model = lay_out(config)
    initialise(model, None if seed is None else torch.Generator().manual_seed(seed))
    make_fast(model)
    return model.to(device)


def lay_out(config: Config) -> Transformer:
    """The parts, put together; their weights are still to be drawn or read."""
    sizes = config.vocab_size, config.d_model
    if config.embed_scale == 1:
        embed = Embedding(*sizes)
    else:
        embed = ScaledEmbedding(*sizes, config.embed_scale)
    encoder = None
    if config.n_encoder_layer:
        encoder = _stack(config.of_encoder, embed, EncoderHead)
    model = _stack(config, embed, HEADS[config.head], encoder)
    if config.tied:
        assert isinstance(model.head, Unembed)
        model.head.unembed.weight = embed.weight
    return model


def _stack(
    config: Config, embed: Embedding, head: type[Head], encoder: Transformer | None = None
) -> Transformer:
    positions = POSITIONS[config.positions]
    on_embedding = positions.acts_on == "embedding"
    everything = MASKS[config.mask]()
    if config.window is None:
        near = everything
    else:
        near = WindowMask(config.window)
    kinds = [
        _Kind(config.has_window(index), config.in_block(index), on_embedding)
        for index in range(config.n_layer)
    ]
    shared = {kind: kind.positions() for kind in kinds if not positions.is_trained}
    return Transformer(
        config,
        embed,
        positions(config) if on_embedding else NoPositions(config),
        [near if kind.windowed else everything for kind in kinds] or [everything],
        [
            _block(config, index, shared.get(kind) or kind.positions(), crosses=encoder is not None)
            for index, kind in enumerate(kinds)
        ],
        head(config, new_norm(config, config.d_model) if config.final_norm else None),
        encoder,
        new_norm(config, config.d_model) if config.embed_norm else None,
        Smear(config) if config.smear else None,
        Mix() if config.backout and config.n_layer else None,
    )


class _Kind(NamedTuple):
    """The differences between blocks of one stack: whether they see only a window, and the base of
    their rotary positions.
    """

    windowed: bool
    config: Config
    on_embedding: bool

    def positions(self) -> PositionEncoding:
        """The positions of a block of this kind."""
        return (NoPositions if self.on_embedding else POSITIONS[self.config.positions])(self.config)


def _block(
    config: Config, index: int, positions: PositionEncoding, *, crosses: bool
) -> Block | ParallelBlock:
    residual = RESIDUALS[config.residual]
    has_mlp = config.mlp_size > 0
    attention = Attention(config, positions, embeds_values=config.embeds_values(index))
    attention_residual = residual(config)
    block: Block | ParallelBlock
    if issubclass(residual, Parallel) and has_mlp:
        if residual.shares_norm:
            own = attention_residual
        else:
            own = residual(config)
        block = ParallelBlock(
            attention,
            cast(Parallel, attention_residual),
            MLPS[config.mlp](config),
            cast(Parallel, own),
        )
    else:
        block = Block(
            attention,
            attention_residual,
            MLPS[config.mlp](config) if has_mlp else None,
            residual(config) if has_mlp else None,
            CrossAttention(config) if crosses else None,
            residual(config) if crosses else None,
        )
    if config.mix_embedding:
        block.mix = Mix()
    return block


@torch.no_grad()
def initialise(model: Transformer, generator: torch.Generator | None) -> None:
    """Draw fresh weights: matrices from N(0, 0.02²), biases 0 (Radford et al. 2019).

    Projections into the stream are divided by √(2 · n_layer), in an encoder–decoder with the larger
    n_layer of both stacks.
    """
    into_stream = (2 * max(model.config.n_layer, model.config.n_encoder_layer, 1)) ** -0.5
    for name, part in model.named_modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            if name.endswith(("attention.output", ".down")):
                scale = into_stream
            else:
                scale = 1.0
            part.weight.normal_(0.0, 0.02 * scale, generator=generator)
        if isinstance(part, nn.Linear) and part.bias is not None:
            part.bias.zero_()
        if isinstance(part, Relative):
            part.table.normal_(0.0, 0.02, generator=generator)


@lru_cache(maxsize=64)
def parameter_shapes(config: Config) -> Mapping[str, tuple[int, ...]]:
    """The shape of every parameter by its name, tied ones once; nothing is allocated."""
    with torch.device("meta"):
        return MappingProxyType(
            {name: tuple(parameter.shape) for name, parameter in lay_out(config).named_parameters()}
        )


@dataclass(frozen=True)
class WeightedPart:
    """A part that holds weights."""

    name: str  #: its path within the model
    kind: str  #: its class; of tied weights it says so
    shapes: Mapping[str, tuple[int, ...]]  #: of each of its tensors, by name
    #: how many numbers it adds to the model: none for tied weights, which are counted elsewhere
    parameters: int
    tied: frozenset[str] = frozenset()  #: the names of its tensors that are counted elsewhere


@lru_cache(maxsize=64)
def describe(config: Config) -> tuple[WeightedPart, ...]:
    """Every part with weights, in the order in which a forward pass reads them; the counts sum to
    the model's total.

    Nothing is allocated. A tied unembedding is listed with 0 parameters of its own.
    """
    with torch.device("meta"):
        model = lay_out(config)
    seen: set[int] = set()
    layers = []
    parts: dict[nn.Module, str] = {}
    for name, part in _as_read(model):
        parts.setdefault(part, name)  # an encoder shares the embedding
    for part, name in parts.items():
        own = dict(part.named_parameters(recurse=False))
        if own:
            tied = frozenset(key for key, p in own.items() if id(p) in seen)
            seen.update(map(id, own.values()))
            if tied:
                kind = f"{type(part).__name__}, tied"
            else:
                kind = type(part).__name__
            parameters = sum(p.numel() for key, p in own.items() if key not in tied)
            layers.append(
                WeightedPart(
                    name, kind, {key: tuple(p.shape) for key, p in own.items()}, parameters, tied
                )
            )
    return tuple(layers)


# Parts that a forward pass reads before the others next to them. They are laid out in another
# order, in which fresh weights are drawn too: it has to stay, so that a seed gives the same
# weights.
_READ_FIRST = (
    "embed",
    "encoder",
    "qkv",
    "q",
    "qk_norm",
    "kv",
    "value_embed",
    "positions",
    "embed_norm",
    "smear",
)


def _as_read(part: nn.Module, name: str = "") -> Iterator[tuple[str, nn.Module]]:
    """A part and all parts in it by their paths, in the order in which a forward pass reads
    them.
    """
    yield name, part
    inside = list(
        _of_block(part) if isinstance(part, Block | ParallelBlock) else part.named_children()
    )
    rank = {first: i for i, first in enumerate(_READ_FIRST)}
    for child, inner in sorted(inside, key=lambda pair: rank.get(pair[0], len(rank))):
        yield from _as_read(inner, f"{name}.{child}" if name else child)


def _of_block(block: Block | ParallelBlock) -> Iterator[tuple[str, nn.Module]]:
    """The sublayers of a block and the norms of their residuals, as a forward pass comes to
    them.
    """
    if block.mix is not None:
        yield "mix", block.mix
    for sublayer, name in (
        ("attention", "attention_residual"),
        ("cross_attention", "cross_residual"),
        ("mlp", "mlp_residual"),
    ):
        residual = getattr(block, name, None)
        for step in () if residual is None else residual.steps:
            if step == "sublayer":
                yield sublayer, getattr(block, sublayer)
            elif step != "add":
                yield f"{name}.{step}", getattr(residual, step)


def parameter_count(config: Config) -> int:
    """How many numbers training would change, tied weights counted once."""
    return sum(layer.parameters for layer in describe(config))
