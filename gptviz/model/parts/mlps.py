"""MLPs: what a block computes of every position by itself."""

from __future__ import annotations

import torch
from torch import Tensor

from ..tap import Tap
from .activations import ACTIVATIONS
from .experts import MixtureOfExperts
from .part import Linear, ModelPart, Settings


class MLP(ModelPart):
    """W_down · activation(W_up · x + b) + b, of every position by itself."""

    title = "Plain"
    equation = "down(activation(up(x)))"
    about = (
        "Every token's vector is made wider, passed number by number through the activation, and "
        "brought back to the width of "
        "the stream."
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.up = Linear(settings.d_model, settings.mlp_size, bias=settings.mlp_bias)
        self.activation = ACTIVATIONS[settings.activation]()
        self.down = Linear(settings.mlp_size, settings.d_model, bias=settings.mlp_bias)

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        """[B, T, d_model] → [B, T, d_model]."""
        x = tap("read", x)
        neurons = tap("neurons", self.activation(self.up(x)))  # [B, T, d_mlp]
        return tap("out", self.down(neurons))  # [B, T, d_model]

    def write_vectors(self) -> tuple[Tensor, Tensor | None]:
        """What an activation of 1 of each neuron adds [d_model, d_mlp], and the bias [d_model], if
        there is one.
        """
        return self.down.weight, self.down.bias


class GatedMLP(MLP):
    """W_down · (activation(W_gate · x) ⊙ W_up · x), of every position by itself (Shazeer 2020)."""

    title = "Gated"
    equation = "down(activation(gate(x)) · up(x))"
    about = (
        "Every token's vector is made wider twice: one result, passed through the activation, "
        "decides how much of the other one "
        "passes."
    )

    def __init__(self, settings: Settings) -> None:
        super(MLP, self).__init__()  # in the order in which a forward pass reads them
        self.gate = Linear(settings.d_model, settings.mlp_size, bias=settings.mlp_bias)
        self.activation = ACTIVATIONS[settings.activation]()
        self.up = Linear(settings.d_model, settings.mlp_size, bias=settings.mlp_bias)
        self.down = Linear(settings.mlp_size, settings.d_model, bias=settings.mlp_bias)

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        """[B, T, d_model] → [B, T, d_model]."""
        x = tap("read", x)
        # [B, T, d_mlp] each
        passed = self.activation(self.gate(x))
        up = self.up(x)
        # Memory that was written a moment ago is faster than fresh memory, but derivatives need
        # what was in it.
        # [B, T, d_mlp]
        neurons = tap("neurons", passed * up if torch.is_grad_enabled() else passed.mul_(up))
        return tap("out", self.down(neurons))  # [B, T, d_model]


AnyMLP = MLP | MixtureOfExperts
MLPS: dict[str, type[AnyMLP]] = {"plain": MLP, "gated": GatedMLP, "experts": MixtureOfExperts}
