"""Norms: what keeps the numbers of a stream, or of a query and key, at one size."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .part import ModelPart, NamedTensor, Settings


class Norm(ModelPart):
    """A function of each vector by itself, then times a learned gain and plus a learned bias.

    `equation` leaves out gain and bias: the model map adds what a norm has of both.
    """

    tensors = (
        NamedTensor("weight", "gain", ("d_model",)),
        NamedTensor("bias", "bias", ("d_model",)),
    )
    may_have_bias: ClassVar[bool] = True  #: whether it adds a bias where it is asked for one
    usual_eps: ClassVar[float] = 1e-5  #: the ε of its equation where a config gives none

    def __init__(self, size: int, gain: bool, bias: bool, eps: float | None = None) -> None:
        """A norm over `size` numbers; there is a bias only where there is a gain too."""
        super().__init__()
        #: the ε of its equation, which keeps it from dividing by 0
        self.eps = self.usual_eps if eps is None else eps
        self.shape = (size,)
        self.weight = nn.Parameter(torch.ones(size)) if gain else None
        self.bias = (
            nn.Parameter(torch.zeros(size)) if gain and bias and self.may_have_bias else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """[..., size] → [..., size]."""
        normed = self.norm_with_scale(x, x)
        normed = normed if self.weight is None else normed * self.weight
        if self.bias is None:
            return normed
        return normed + self.bias

    def linear(self, x: Tensor) -> Tensor:
        """The part of the norm linear in x, before gain and bias, [..., size] → [..., size]; a
        ValueError if a kind has none.
        """
        raise ValueError(
            f"the norm “{self.title}” does not say how it acts on the parts of a sum (see "
            "Norm.linear), so nothing can be "
            "followed through it"
        )

    def scale(self, x: Tensor) -> Tensor:
        """The number that `linear(x)` is multiplied by: [..., size] → [..., 1]."""
        raise NotImplementedError

    def norm_with_scale(self, x: Tensor, at: Tensor) -> Tensor:
        """The norm of x [..., size] before gain and bias, with the scale that it has for `at` [...,
        size].

        It is linear in x, so that the parts of a sum can be followed through the norm one by one;
        at x = `at` it is the norm.
        """
        return self.linear(x) * self.scale(at)


class LayerNorm(Norm):
    """(x - mean) / √(variance + ε), times a gain, plus a bias (Ba et al. 2016)."""

    title = "LayerNorm"
    equation = "(x − mean) / √(variance + ε)"
    about = "Subtracts the mean of a vector's numbers and divides by their standard deviation."

    def forward(self, x: Tensor) -> Tensor:
        own: dict[str, Any] = self._parameters
        return torch.layer_norm(x, self.shape, own.get("weight"), own.get("bias"), self.eps)

    def linear(self, x: Tensor) -> Tensor:
        return x - x.mean(-1, keepdim=True)

    def scale(self, x: Tensor) -> Tensor:
        return (x.var(-1, correction=0, keepdim=True) + self.eps).rsqrt()


class RMSNorm(Norm):
    """x / √(mean of squares + ε), times a gain; it has no bias (Zhang & Sennrich 2019)."""

    title = "RMSNorm"
    equation = "x / √(mean of squares + ε)"
    about = "Divides a vector's numbers by their root mean square."
    may_have_bias = False
    usual_eps = 1e-6

    def forward(self, x: Tensor) -> Tensor:
        return self.normalise(x, self._parameters.get("weight"), self.eps)

    @staticmethod
    def normalise(x: Tensor, gain: Tensor | None, eps: float) -> Tensor:
        """[..., size] → [..., size]."""
        if gain is None or gain.dtype == x.dtype:
            return torch.rms_norm(x, x.shape[-1:], gain, eps)
        # In bfloat16 training the gain stays in float32: of two types PyTorch makes the same
        # numbers, slowly and with a warning.
        wide = torch.promote_types(x.dtype, gain.dtype)
        return torch.rms_norm(x.to(wide), x.shape[-1:], gain.to(wide), eps).to(x.dtype)

    def linear(self, x: Tensor) -> Tensor:
        return x

    def scale(self, x: Tensor) -> Tensor:
        return (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()


NORMS: dict[str, type[Norm]] = {"layernorm": LayerNorm, "rmsnorm": RMSNorm}


def new_norm(settings: Settings, size: int) -> Norm:
    """The norm of a config over `size` numbers."""
    return NORMS[settings.norm](size, settings.norm_gain, settings.norm_bias, settings.norm_eps)
