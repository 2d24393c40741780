"""Heads: what a model makes of its residual stream."""

from __future__ import annotations

from torch import Tensor, nn

from .config import Config
from .tap import Tap


class Unembed(nn.Module):
    """logits = W_U · norm(x) (+ b), with the final norm where the config has one."""

    def __init__(self, config: Config, final_norm: nn.Module | None) -> None:
        super().__init__()
        self.final_norm = final_norm
        self.unembed = nn.Linear(config.d_model, config.vocab_size, bias=config.unembed_bias)

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        """[B, T, d_model] → [B, T, vocab_size]."""
        if self.final_norm is not None:
            x = tap("final_norm", self.final_norm(x))
        return tap("logits", self.unembed(x))  # [B, T, vocab_size]
