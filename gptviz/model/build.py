"""The builder: reads a config once and lays out the parts, so that no forward pass has to look at the config."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn

from .attention import Attention, CrossAttention
from .blocks import MLP, Block
from .config import Config
from .heads import HEADS, EncoderHead, Head, Unembed
from .masks import MASKS
from .norms import new_norm
from .parts import empty_embedding
from .positions import POSITIONS, NoPositions, Relative
from .residuals import RESIDUALS
from .transformer import Transformer


def build(config: Config, *, seed: int | None = None, device: torch.device | str = "cpu") -> Transformer:
    """A transformer with fresh weights on `device`; the same `seed` gives the same weights on every device."""
    model = lay_out(config)
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    initialise(model, generator)
    return model.to(device)


def lay_out(config: Config) -> Transformer:
    """The parts, put together; their weights are still to be drawn or read."""
    embed = empty_embedding(config.vocab_size, config.d_model)
    encoder = None
    if config.n_encoder_layer:
        encoder = _stack(replace(config, n_layer=config.n_encoder_layer, n_encoder_layer=0, mask="full"), embed, EncoderHead)
    model = _stack(config, embed, HEADS[config.head], encoder)
    if config.tied:
        assert isinstance(model.head, Unembed)
        model.head.unembed.weight = embed.weight
    return model


def _stack(config: Config, embed: nn.Embedding, head: type[Head], encoder: Transformer | None = None) -> Transformer:
    kind = POSITIONS[config.positions]
    on_embedding = kind.acts_on == "embedding"
    residual = RESIDUALS[config.residual]
    has_mlp, crosses = config.mlp_size > 0, encoder is not None

    def block() -> Block:
        return Block(
            Attention(config, NoPositions(config) if on_embedding else kind(config)),
            residual(config),
            MLP(config) if has_mlp else None,
            residual(config) if has_mlp else None,
            CrossAttention(config) if crosses else None,
            residual(config) if crosses else None,
        )

    return Transformer(
        config,
        embed,
        kind(config) if on_embedding else NoPositions(config),
        MASKS[config.mask](),
        [block() for _ in range(config.n_layer)],
        head(config, new_norm(config, config.d_model) if config.final_norm else None),
        encoder,
    )


@torch.no_grad()
def initialise(model: Transformer, generator: torch.Generator | None) -> None:
    """Draw fresh weights: matrices from N(0, 0.02²), biases 0 (Radford et al. 2019).

    Projections into the stream are divided by √(2 · n_layer), in an encoder–decoder with the larger n_layer of both stacks.
    """
    into_stream = (2 * max(model.config.n_layer, model.config.n_encoder_layer, 1)) ** -0.5
    for name, part in model.named_modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            scale = into_stream if name.endswith(("attention.output", "mlp.down")) else 1.0
            part.weight.normal_(0.0, 0.02 * scale, generator=generator)
        if isinstance(part, nn.Linear) and part.bias is not None:
            part.bias.zero_()
        if isinstance(part, Relative):
            part.table.normal_(0.0, 0.02, generator=generator)


@dataclass(frozen=True)
class Layer:
    """A part that holds weights.

    Attributes:
        name: its path within the model.
        kind: its class; of tied weights it says so.
        shapes: of each of its tensors, by name.
        parameters: how many numbers it adds to the model: 0 for tied weights, which are counted elsewhere.
    """

    name: str
    kind: str
    shapes: dict[str, tuple[int, ...]]
    parameters: int


def describe(config: Config) -> list[Layer]:
    """Every part with weights, in the order in which a forward pass reads them; the counts sum to the model's total.

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
            fresh = [p for p in own.values() if id(p) not in seen]
            seen.update(map(id, own.values()))
            kind = type(part).__name__ if fresh else f"{type(part).__name__}, tied"
            layers.append(Layer(name, kind, {key: tuple(p.shape) for key, p in own.items()}, sum(p.numel() for p in fresh)))
    return layers


# Parts that a forward pass reads before the others beside them. They are laid out in another order, in which fresh weights are
# drawn too: it has to stay, so that a seed gives the same weights.
_READ_FIRST = ("embed", "encoder", "qkv", "q", "qk_norm", "kv", "positions")


def _as_read(part: nn.Module, name: str = "") -> Iterator[tuple[str, nn.Module]]:
    """A part and all parts in it by their paths, in the order in which a forward pass reads them."""
    yield name, part
    inside = list(_of_block(part) if isinstance(part, Block) else part.named_children())
    rank = {first: i for i, first in enumerate(_READ_FIRST)}
    for child, inner in sorted(inside, key=lambda pair: rank.get(pair[0], len(rank))):
        yield from _as_read(inner, f"{name}.{child}" if name else child)


def _of_block(block: Block) -> Iterator[tuple[str, nn.Module]]:
    """The sublayers of a block and the norms of their residuals, as a forward pass comes to them."""
    for sublayer, name in (("attention", "attention_residual"), ("cross_attention", "cross_residual"), ("mlp", "mlp_residual")):
        residual = getattr(block, name)
        for step in () if residual is None else residual.steps:
            if step == "sublayer":
                yield sublayer, getattr(block, sublayer)
            elif step != "add":
                yield f"{name}.{step}", getattr(residual, step)


def parameter_count(config: Config) -> int:
    """How many numbers training would change, tied weights counted once."""
    return sum(layer.parameters for layer in describe(config))
