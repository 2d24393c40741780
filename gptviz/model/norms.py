"""Norms: what keeps the numbers of a stream, or of a query and key, at one size."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .parts import ModelPart, NamedTensor, Settings


class Norm(ModelPart):
    """A function of every vector alone, then times a learned gain and plus a learned bias.

    `equation` leaves out gain and bias: the model map adds what a norm has of both.

    Attributes:
        may_have_bias: whether it adds a bias where it is asked for one.
        usual_eps: the ε of its equation where a config gives none.
        eps: the ε of its equation, which keeps it from dividing by 0.
    """

    tensors = (NamedTensor("weight", "gain", ("d_model",)), NamedTensor("bias", "bias", ("d_model",)))
    may_have_bias: ClassVar[bool] = True
    usual_eps: ClassVar[float] = 1e-5

    def __init__(self, size: int, gain: bool, bias: bool, eps: float | None = None) -> None:
        """A norm over `size` numbers; there is a bias only where there is a gain too."""
        super().__init__()
        self.eps = self.usual_eps if eps is None else eps
        self.shape = (size,)
        self.weight = nn.Parameter(torch.ones(size)) if gain else None
        self.bias = nn.Parameter(torch.zeros(size)) if gain and bias and self.may_have_bias else None

    def forward(self, x: Tensor) -> Tensor:
        """[..., size] → [..., size]."""
        raise NotImplementedError

    def frozen(self, x: Tensor, at: Tensor) -> Tensor:
        """What the norm makes of x [..., size] before gain and bias, with what it divides by held as it is for `at` [..., size].

        That is linear in x, so that the parts of a sum can be followed through the norm one by one; at x = `at` it is the norm.

        Raises:
            ValueError: this kind of norm has no such form.
        """
        raise ValueError(
            f"the norm “{self.title}” does not say how it acts on the parts of a sum (see Norm.frozen), so nothing can be "
            "followed through it"
        )


class LayerNorm(Norm):
    """(x - mean) / √(variance + ε), times a gain, plus a bias (Ba et al. 2016)."""

    title, equation = "LayerNorm", "(x − mean) / √(variance + ε)"
    about = "Subtracts the mean of a vector's numbers and divides by their standard deviation."

    def forward(self, x: Tensor) -> Tensor:
        own: dict[str, Any] = self._parameters
        return torch.layer_norm(x, self.shape, own.get("weight"), own.get("bias"), self.eps)

    def frozen(self, x: Tensor, at: Tensor) -> Tensor:
        return (x - x.mean(-1, keepdim=True)) * (at.var(-1, correction=0, keepdim=True) + self.eps).rsqrt()


class RMSNorm(Norm):
    """x / √(mean of squares + ε), times a gain; it has no bias (Zhang & Sennrich 2019)."""

    title, equation = "RMSNorm", "x / √(mean of squares + ε)"
    about = "Divides a vector's numbers by their root mean square."
    may_have_bias = False
    usual_eps = 1e-6

    def __init__(self, size: int, gain: bool, bias: bool, eps: float | None = None) -> None:
        super().__init__(size, gain, bias, eps)
        # As numbers they would become tensors at every call.
        self.added, self.nothing = torch.tensor(self.eps), torch.tensor(0.0)

    def forward(self, x: Tensor) -> Tensor:
        if x.is_cpu and x.dtype == torch.float32 and not x.requires_grad:
            # `rms_norm` has no kernel of its own on a processor, and comes to the same numbers in twice as many operations.
            gain = self._parameters.get("weight")
            if gain is not None and x.numel() == gain.shape[0]:
                # One token, as in every step of generation: what its numbers are multiplied with is one number.
                vector = x.reshape(-1)
                scale = (float(torch.dot(vector, vector)) / gain.shape[0] + self.eps) ** -0.5
                return torch.addcmul(self.nothing, x, gain, value=scale)
            length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # [..., 1]
            normed = x * torch.addcmul(self.added, length, length, value=1 / x.shape[-1]).rsqrt()
            return normed if gain is None else normed * gain
        if self.weight is None or self.weight.dtype == x.dtype:
            return torch.rms_norm(x, self.shape, self.weight, self.eps)
        # In bfloat16 training the gain stays in float32: of two types PyTorch makes the same numbers, slowly and with a warning.
        wide = torch.promote_types(x.dtype, self.weight.dtype)
        return torch.rms_norm(x.to(wide), self.shape, self.weight.to(wide), self.eps).to(x.dtype)

    def frozen(self, x: Tensor, at: Tensor) -> Tensor:
        return x * (at.square().mean(-1, keepdim=True) + self.eps).rsqrt()


NORMS: dict[str, type[Norm]] = {"layernorm": LayerNorm, "rmsnorm": RMSNorm}


def new_norm(settings: Settings, size: int) -> Norm:
    """The norm of a config over `size` numbers."""
    return NORMS[settings.norm](size, settings.norm_gain, settings.norm_bias, settings.norm_eps)
