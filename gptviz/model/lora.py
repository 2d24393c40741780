"""LoRA: a model that is trained through small factors beside its matrices, while its own weights
stay as they are.

A matrix W [out, in] becomes W + B · A, with A [rank, in] and B [out, rank]. B begins with zeros, so
that an adapter that was not trained changes nothing. There is no scale beside B: it is a part of B.

Source: Hu et al., “LoRA: Low-Rank Adaptation of Large Language Models” (2021).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .builder import lay_out
from .config import Config
from .parts.part import Linear, holding, sharing, with_stand_ins
from .transformer import Transformer, Twin

TUNED = 1.0  # the strength at which an adapter was trained
A = ".lora_a"
B = ".lora_b"


class Factors(NamedTuple):
    """The two factors of the change of a matrix [out, in]."""

    a: Tensor  #: [rank, in]
    b: Tensor  #: [out, rank]

    @property
    def rank(self) -> int:
        """The most directions that the change can have."""
        return len(self.a)

    @property
    def change(self) -> Tensor:
        """What is added to the matrix at strength 1: B · A, [out, in], in float32."""
        return self.b.float() @ self.a.float()


# The factors of an adapter by the name of the part whose matrix they change, as in
# "blocks.0.attention.qkv".
Adapter = Mapping[str, Factors]


class LoraLinear(Linear):
    """x · Wᵀ + b + x · Aᵀ · Bᵀ, of which only A and B are trained; W and b are those of `linear`. A
    has `rank` rows, which `generator` draws, from -1/√in to 1/√in as for any matrix that reads as
    many numbers (He et al. 2015).
    """

    def __init__(self, linear: Linear, rank: int, generator: torch.Generator | None = None) -> None:
        nn.Module.__init__(self)
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.multiply = linear.multiply
        self.weight = nn.Parameter(linear.weight.detach(), requires_grad=False)
        if linear.bias is None:
            bias = None
        else:
            bias = nn.Parameter(linear.bias.detach(), requires_grad=False)
        self.register_parameter("bias", bias)
        a = torch.empty(rank, self.in_features)
        device = linear.weight.device
        if not a.is_meta:
            a.uniform_(-(self.in_features**-0.5), self.in_features**-0.5, generator=generator)
        self.lora_a = nn.Parameter(a.to(device))
        self.lora_b = nn.Parameter(torch.zeros(self.out_features, rank, device=device))

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] → [..., out]."""
        return super().forward(x) + F.linear(F.linear(x, self.lora_a), self.lora_b)


class AdaptedTransformer(Twin):
    """A transformer whose weights are those of its `base` and stay as they are, with an adapter
    that is trained: its parameters are those of the adapter. `ranks` are, by the names of parts
    with a matrix, those of its changes (see `matrices`); `seed` decides the first numbers of A.
    """

    def __init__(self, base: Transformer, ranks: Mapping[str, int], seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        parts = dict(base.named_modules())
        stand_ins = {
            parts[name]: LoraLinear(cast(Linear, parts[name]), rank, generator)
            for name, rank in ranks.items()
        }
        device = base.embed.weight.device
        super().__init__(cast(Transformer, with_stand_ins(base, stand_ins, device)))
        trained = {
            id(factor) for part in stand_ins.values() for factor in (part.lora_a, part.lora_b)
        }
        for _, parameter in super().named_parameters():
            parameter.requires_grad_(id(parameter) in trained)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters of the adapter; the weights of the base are not among them."""
        every = super().named_parameters(prefix, recurse, remove_duplicate)
        return ((name, parameter) for name, parameter in every if parameter.requires_grad)

    @property
    def adapter(self) -> dict[str, Factors]:
        """The factors as they are now."""
        return factors({name: parameter.detach() for name, parameter in self.named_parameters()})


@dataclass(frozen=True)
class _Origin:
    """The model and the adapter that a merged model is made of. Copies of that model share it,
    since nothing changes it.
    """

    base: Transformer
    adapter: Adapter

    def __deepcopy__(self, memo: dict[int, Any]) -> _Origin:
        return self


class MergedTransformer(Twin):
    """A transformer with the weights W + strength · B · A: as fast as its base, and read as any
    other model is. Weights that the adapter does not change are shared with the base, at strength 0
    all of them. Strength 1 is what was trained; less than 0 and more than 1 go on along the same
    line.
    """

    def __init__(self, base: Transformer, adapter: Adapter, strength: float = TUNED) -> None:
        parts = dict(base.named_modules())
        stand_ins: dict[nn.Module, nn.Module] = {}
        for name, factors in adapter.items():
            part = cast(Linear, parts[name])
            if strength:
                changed = nn.Parameter(_merge_factors(part.weight, factors, strength))
            else:
                changed = None
            stand_ins[part] = sharing(
                part,
                weight=part.weight if changed is None else changed,
                merged=Factors(factors.a, strength * factors.b),
            )
        super().__init__(holding(base, stand_ins))
        self.strength = strength
        self._origin = _Origin(base, adapter)

    @property
    def base(self) -> Transformer:
        """The model without the adapter."""
        return self._origin.base

    @property
    def adapter(self) -> Adapter:
        """The factors by the names of their parts."""
        return self._origin.adapter

    def with_strength(self, strength: float) -> MergedTransformer:
        """The same base and adapter with another strength."""
        return MergedTransformer(self.base, self.adapter, strength)


@torch.no_grad()
def _merge_factors(weight: Tensor, one: Factors, strength: float) -> Tensor:
    """W + strength · B · A, in the type of W and in the order in which it lies in memory (see
    `precision.place`).
    """
    return torch.empty_like(weight).copy_(weight.float() + strength * one.change.to(weight.device))


def merged_adapter(model: Transformer) -> Adapter:
    """What adapters have added to the matrices of a model, by the names of their parts: of a
    `MergedTransformer` its adapter, with B times its strength; of a model without one, nothing.
    """
    parts = ((name, getattr(part, "merged", None)) for name, part in model.named_modules())
    return {name: factors for name, factors in parts if factors is not None}


@torch.no_grad()
def unmerge_adapter(model: Transformer) -> Transformer:
    """A twin that computes the same, with its adapter beside its matrices again, and of which only
    the adapter is trained; without an adapter, the model. The model is no longer trained.
    """
    stand_ins: dict[nn.Module, nn.Module] = {}
    for name, added in merged_adapter(model).items():
        part = cast(Linear, model.get_submodule(name))
        stand_in = LoraLinear(part, added.rank, torch.Generator())
        stand_in.weight = nn.Parameter(part.weight - added.change, requires_grad=False)
        stand_in.lora_a.copy_(added.a)
        stand_in.lora_b.copy_(added.b)
        stand_ins[part] = stand_in
    return holding(model.requires_grad_(not stand_ins), stand_ins)


def matrices(config: Config) -> dict[str, tuple[int, int]]:
    """The parts inside the blocks of a model that hold a matrix, by name, with its shape [out, in]:
    all that LoRA can change.
    """
    with torch.device("meta"):
        parts = dict(lay_out(config).named_modules())
    inside = {
        name: part
        for name, part in parts.items()
        if name.removeprefix("encoder.").startswith("blocks.")
    }
    return {
        name: (part.out_features, part.in_features)
        for name, part in inside.items()
        if isinstance(part, Linear)
    }


def every_matrix(config: Config, rank: int) -> dict[str, int]:
    """This rank for every matrix inside the blocks; for a matrix that is smaller, all the rank it
    has.
    """
    return {name: min(rank, *shape) for name, shape in matrices(config).items()}


def parameter_shapes(config: Config, ranks: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """The shapes of the parameters of an adapter, by the names that they have in an
    `AdaptedTransformer`.
    """
    shapes = {}
    for name, (out, reads) in matrices(config).items():
        if name in ranks:
            shapes[name + A], shapes[name + B] = (ranks[name], reads), (out, ranks[name])
    return shapes


def numbers(config: Config, rank: int) -> int:
    """How many numbers an adapter of this rank has."""
    return sum(map(math.prod, parameter_shapes(config, every_matrix(config, rank)).values()))


def factors(parameters: Mapping[str, Tensor]) -> dict[str, Factors]:
    """Inverse of `parameters`: the tensors of an adapter, grouped by the part that they change."""
    names = [name.removesuffix(A) for name in parameters if name.endswith(A)]
    return {name: Factors(parameters[name + A], parameters[name + B]) for name in names}


def parameters(adapter: Adapter) -> dict[str, Tensor]:
    """The factors by the names of their parameters, as `factors` reads them."""
    return {
        name + end: tensor
        for name, factors in adapter.items()
        for end, tensor in ((A, factors.a), (B, factors.b))
    }
