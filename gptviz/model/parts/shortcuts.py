"""Shortcuts: parts that hand a token's own vector on to places behind the embedding, as nanochat's
models have them.

Source: github.com/karpathy/nanochat, `nanochat/gpt.py`; for values Zhou et al. 2024 (ResFormer).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .part import Embedding, Linear, ModelPart, NamedTensor, Settings


class Mix(ModelPart):
    """a · x + b · y: two states of the stream, each times a learned number."""

    title = "Mix"
    equation = "a · x + b · y"
    about = "The stream and an earlier state of it are added, each times a learned number."
    tensors = (NamedTensor("weight", "a, b", ("a and b",)),)

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 0.0]))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """x and y [B, T, d_model] → [B, T, d_model]."""
        a, b = self.weight.to(x.device)
        return a * x + b * y


class Smear(ModelPart):
    """x[t] + λ · sigmoid(gate(x[t])) · x[t − 1]: a share of the token before, which the first
    numbers of a token decide.
    """

    title = "Smear"
    equation = "x[t] + λ · sigmoid(x[t, :n] · W_gateᵀ) · x[t − 1]"
    about = (
        "Every token gets a share of the vector of the token before it; its own first numbers say "
        "how much."
    )
    tensors = (
        NamedTensor("gate.weight", "W_gate", ("share", "first numbers")),
        NamedTensor("weight", "λ", ("λ",)),
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.gate = Linear(settings.smear, 1, bias=False)
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor, before: Tensor | None) -> Tensor:
        """x [B, T, d_model] → [B, T, d_model]; `before` [B, 1, d_model] is the vector of the token
        before, None at the start.
        """
        start = torch.zeros_like(x[:, :1]) if before is None else before
        previous = self.weight * torch.cat((start, x[:, :-1]), dim=1)
        return x + self.gate(x[..., : self.gate.in_features]).sigmoid() * previous


class ValueEmbedding(ModelPart):
    """sigmoid(gate(x)) · W_VE[ids]: a vector of the token itself for each key head, of which the
    head takes a share.
    """

    title = "Value embedding"
    equation = "sigmoid(x[:, :n] · W_gateᵀ) · W_VE[ids]"
    about = (
        "Every token has one more vector for each key head; the first numbers that attention "
        "reads say how much of it counts."
    )
    tensors = (
        NamedTensor("gate.weight", "W_gate", ("key head", "first numbers")),
        NamedTensor("table.weight", "W_VE", ("vocabulary", "key head · d_head")),
    )

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.gate = Linear(settings.value_gate, settings.key_heads, bias=False)
        self.table = Embedding(settings.vocab_size, settings.key_heads * settings.head_size)

    def forward(self, ids: Tensor, x: Tensor) -> Tensor:
        """ids [B, T] and what attention reads, x [B, T, d_model] → what is added to the values, [B,
        n_kv_head, T, d_head].
        """
        share = self.gate(x[..., : self.gate.in_features]).sigmoid()  # [B, T, n_kv_head]
        return (share[..., None] * self.table(ids).unflatten(-1, (share.shape[-1], -1))).transpose(
            1, 2
        )
