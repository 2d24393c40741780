"""Activations: what the neurons of an MLP do to their input, number by number."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from .part import ModelPart


class Activation(ModelPart):
    """A function of each number by itself, [...] → [...]."""

    def forward(self, x: Tensor) -> Tensor:
        """The function of each number of x."""
        raise NotImplementedError


class ReLU(Activation):
    """max(0, x) (Nair & Hinton 2010)."""

    title = "ReLU"
    equation = "max(0, x)"
    about = "Keeps positive numbers and makes all others 0."

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x)


class GELU(Activation):
    """x · Φ(x), with Φ the distribution function of the normal distribution (Hendrycks & Gimpel
    2016).
    """

    title = "GELU"
    equation = "x · Φ(x)"
    about = (
        "A smooth ReLU: each number times the probability that a normally distributed number is "
        "below it."
    )

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x)


class GELUTanh(Activation):
    """GELU by its tanh approximation, the one GPT-2 was trained with (Hendrycks & Gimpel 2016)."""

    title = "GELU (tanh)"
    equation = "½ · x · (1 + tanh(√(2 / π) · (x + 0.044715 · x³)))"
    about = "An approximation of GELU, the one that GPT-2 was trained with."

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate="tanh")


class SiLU(Activation):
    """x · σ(x), with σ the logistic function; also called swish (Elfwing et al. 2017)."""

    title = "SiLU"
    equation = "x · σ(x)"
    about = "A smooth ReLU: each number times the logistic function of it."

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(x)


class ReLU2(Activation):
    """max(0, x)² (So et al. 2021)."""

    title = "ReLU²"
    equation = "max(0, x)²"
    about = "The square of ReLU: large numbers count for more."

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x).square()


ACTIVATIONS: dict[str, type[Activation]] = {
    "relu": ReLU,
    "gelu": GELU,
    "gelu-tanh": GELUTanh,
    "silu": SiLU,
    "relu2": ReLU2,
}
