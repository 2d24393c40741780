"""The base of all parts that a config chooses by name: activations, norms, residuals, positions,
masks and heads.

Each kind has a file with a class per choice, and a table of them at its end. A new choice is one
class and one entry in its table: configs, the builder, the model map, the pages, the Train form and
the command line find it there.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Settings(Protocol):
    """The fields of a `Config` that the parts read: they stand below it, since it knows their
    tables.
    """

    @property
    def vocab_size(self) -> int: ...
    @property
    def context_length(self) -> int: ...
    @property
    def d_model(self) -> int: ...
    @property
    def n_head(self) -> int: ...
    @property
    def key_heads(self) -> int: ...
    @property
    def mlp_size(self) -> int: ...
    @property
    def mlp_bias(self) -> bool: ...
    @property
    def expert_size(self) -> int: ...
    @property
    def n_expert(self) -> int: ...
    @property
    def n_active(self) -> int: ...
    @property
    def expert_norm(self) -> bool: ...
    @property
    def d_shared(self) -> int: ...
    @property
    def activation(self) -> str: ...
    @property
    def head_size(self) -> int: ...
    @property
    def norm(self) -> str: ...
    @property
    def norm_gain(self) -> bool: ...
    @property
    def norm_bias(self) -> bool: ...
    @property
    def norm_eps(self) -> float | None: ...
    @property
    def rotary_base(self) -> float: ...
    @property
    def rotary_fraction(self) -> float: ...
    @property
    def rotary_scaling(self) -> str: ...
    @property
    def rotary_factor(self) -> float: ...
    @property
    def rotary_context(self) -> int: ...
    @property
    def logit_cap(self) -> float | None: ...
    @property
    def unembed_bias(self) -> bool: ...
    @property
    def value_gate(self) -> int: ...
    @property
    def smear(self) -> int: ...
    @property
    def n_label(self) -> int: ...
    @property
    def dropout(self) -> float: ...


class NamedTensor(NamedTuple):
    """A parameter or buffer of a part that the model map shows."""

    name: str  #: of the parameter or buffer, within the part
    symbol: str  #: how equations call it
    axes: tuple[str, ...]  #: what is counted along each axis


class LightCall(nn.Module):
    """A module whose call, in evaluation, is its forward pass and nothing else, unless a hook of
    its own waits for it.

    At each call torch looks for hooks of many kinds and for a tracer; generation makes a hundred
    calls for every token. It finds a part of a module only after Python has not found an attribute,
    and raised an error: here a part is an attribute too, so it is replaced by assignment (see
    `sharing`), and never in `_modules`. Parameters and buffers are not, since others may take their
    place; who wants them fast reads `_parameters`.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self.__dict__.get("_modules", ()):
            self.__dict__[name] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self.training
            or self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
        ):
            return super().__call__(*args, **kwargs)
        return self.forward(*args, **kwargs)


class ModelPart(LightCall):
    """A part that says what it is."""

    #: what pictures and forms call it (a classifier's head has a layer named `label`, so this is
    #: not called so)
    title: ClassVar[str]
    equation: ClassVar[str]  #: what it computes, in one line; `x` is what it is given
    about: ClassVar[str]  #: what it does, in a sentence
    #: what the model map shows of its parameters and buffers. A parameter that is not among them is
    #: shown under its own name.
    tensors: ClassVar[tuple[NamedTensor, ...]] = ()

    @classmethod
    def equation_of(cls, x: str) -> str:
        """The equation with `x` in place of the letter x."""
        return re.sub(r"(?<![A-Za-z])x(?![A-Za-z])", x, cls.equation)


# A model may be laid out on the meta device, without memory, to compare its shapes with those in a
# file. There, drawing or computing a number makes torch import its compiler, which takes longer
# than all else that opens a model.


class Embedding(LightCall, nn.Embedding):
    """A table of vectors [rows, width] whose numbers are still to be drawn or read; torch's own
    draws them at once.
    """

    #: gives the vectors of ids, from a table in the type that it is kept in (see `precision`)
    look_up: Callable[[Tensor, Tensor], Tensor] = staticmethod(F.embedding)

    def __init__(self, rows: int, width: int) -> None:
        super().__init__(rows, width, _weight=torch.empty(rows, width))

    def forward(self, ids: Tensor) -> Tensor:
        """[...] → [..., width]."""
        return self.look_up(ids, self.weight)


class Linear(LightCall, nn.Linear):
    """x · Wᵀ + b, with numbers that are still to be drawn or read; torch's own draws them at
    once.
    """

    #: computes it, with a matrix in the type that it is kept in (see `precision` and `fast`)
    multiply: Callable[[Tensor, Tensor, Tensor | None], Tensor] = staticmethod(F.linear)

    def reset_parameters(self) -> None:
        """Nothing."""

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] → [..., out]."""
        own: dict[str, Any] = self._parameters
        return self.multiply(x, own["weight"], own["bias"])


def fixed_numbers(shape: tuple[int, ...], compute: Callable[[], Tensor]) -> Tensor:
    """The result of `compute`: fixed numbers of this shape; on the meta device only the shape."""
    table = torch.empty(shape)
    if table.is_meta:
        return table
    return compute()


class SoftCap(nn.Module):
    """cap · tanh(x / cap): small numbers stay as they are, none grows beyond ± cap (Gemma 2,
    2024).
    """

    def __init__(self, cap: float) -> None:
        super().__init__()
        self.cap = cap

    def forward(self, x: Tensor) -> Tensor:
        """[...] → [...]."""
        return self.cap * torch.tanh(x / self.cap)


class ScaledEmbedding(Embedding):
    """A table of vectors [rows, width], each multiplied by `scale` when it is looked up."""

    def __init__(self, rows: int, width: int, scale: float) -> None:
        super().__init__(rows, width)
        self.scale = scale

    def forward(self, ids: Tensor) -> Tensor:
        """[...] → [..., width]."""
        return super().forward(ids) * self.scale


def distances(at: slice, keys: int, device: torch.device) -> Tensor:
    """query - key for queries at positions `at` and keys from 0 on: [queries, keys]."""
    return torch.arange(at.start, at.stop, device=device)[:, None] - torch.arange(
        keys, device=device
    )


def is_after(at: slice, keys: int, device: torch.device, by: int = 0) -> Tensor:
    """Whether a key stands more than `by` places after a query, [queries, keys], in an eighth of
    the memory of `distances`.
    """
    return (
        torch.arange(keys, device=device)
        > torch.arange(at.start + by, at.stop + by, device=device)[:, None]
    )


M = TypeVar("M", bound=nn.Module)


def sharing(module: M, **own: Any) -> M:
    """A module that shares everything with `module` but what is `own`, its parts, tensors and other
    attributes by name.
    """
    twin = copy.copy(module)
    for kind in ("_parameters", "_buffers", "_modules"):
        setattr(twin, kind, dict(getattr(module, kind)))
    for name, value in own.items():
        setattr(twin, name, value)
    return twin


def holding(module: M, stand_ins: Mapping[nn.Module, nn.Module]) -> M:
    """A module with stand-ins in the place of some of its parts: a twin of each part that holds
    one, and else the very same.
    """
    own = stand_ins.get(module, module)
    held = {
        name: (child, holding(child, stand_ins))
        for name, child in own._modules.items()
        if child is not None
    }
    changed = {name: twin for name, (child, twin) in held.items() if twin is not child}
    return cast(M, sharing(own, **changed) if changed else own)


def with_stand_ins(
    module: nn.Module, stand_ins: Mapping[nn.Module, nn.Module], device: torch.device
) -> nn.Module:
    """A copy of a module on a device, with stand-ins in the place of some of its parts; the module
    itself stays as it is.
    """
    if module in stand_ins:
        return stand_ins[module]
    # Not `named_children`, which names a part that stands in two places only once.
    children = {name: child for name, child in module._modules.items() if child is not None}
    parts = {name: with_stand_ins(child, stand_ins, device) for name, child in children.items()}
    own = {
        name: nn.Parameter(parameter.detach().to(device))
        for name, parameter in module.named_parameters(recurse=False)
    }
    return sharing(module, **parts, **own)
