"""A block: attention and an MLP, each joined to the residual stream."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from .attention import Attention, CrossAttention, LayerCache, Memory
from .config import Config
from .norms import norm
from .tap import Tap


class ReLU2(nn.Module):
    """max(x, 0)² (So et al. 2021)."""

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x).square()


class GELUTanh(nn.GELU):
    """GELU by its tanh approximation, the one GPT-2 was trained with."""

    def __init__(self) -> None:
        super().__init__(approximate="tanh")


ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "gelu-tanh": GELUTanh, "relu2": ReLU2}


class Dropout(nn.Dropout):
    """Each number zeroed with probability p in training, the others divided by 1 - p (Srivastava et al. 2014)."""

    def forward(self, x: Tensor) -> Tensor:
        # torch's own costs some microseconds in evaluation too, where it changes nothing.
        return super().forward(x) if self.training else x


class Residual(nn.Module):
    """How a sublayer f joins the residual stream x: what a subclass's `forward` does with the two."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x [B, T, d_model] → [B, T, d_model]."""
        raise NotImplementedError


class NoResidual(Residual):
    """f(x): the sublayer replaces the stream (the first rungs of the ladder)."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.dropout(sublayer(x))


class Plain(Residual):
    """x + f(x) (He et al. 2015)."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.dropout(sublayer(x))


class PreNorm(Residual):
    """x + f(norm(x)) (GPT-2; Xiong et al. 2020)."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.norm = norm(config, config.d_model)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.dropout(sublayer(self.norm(x)))


class PostNorm(PreNorm):
    """norm(x + f(x)) (Vaswani et al. 2017, GPT-1)."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


class NormOnly(PreNorm):
    """norm(f(x)): what a norm does without a residual connection."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(self.dropout(sublayer(x)))


RESIDUALS: dict[str, type[Residual]] = {
    "pre-norm": PreNorm,
    "post-norm": PostNorm,
    "plain": Plain,
    "norm-only": NormOnly,
    "none": NoResidual,
}


class MLP(nn.Module):
    """W_down · activation(W_up · x + b) + b, at every position alone."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.mlp_size, bias=config.mlp_bias)
        self.activation = ACTIVATIONS[config.activation]()
        self.down = nn.Linear(config.mlp_size, config.d_model, bias=config.mlp_bias)

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        """[B, T, d_model] → [B, T, d_model]."""
        neurons = tap("neurons", self.activation(self.up(x)))  # [B, T, d_mlp]
        return tap("out", self.down(neurons))  # [B, T, d_model]


class Block(nn.Module):
    """Attention, then cross-attention and the MLP where there are such, each inside its residual."""

    def __init__(
        self,
        attention: Attention,
        attention_residual: Residual,
        mlp: MLP | None,
        mlp_residual: Residual | None,
        cross_attention: CrossAttention | None = None,
        cross_residual: Residual | None = None,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_residual = attention_residual
        self.cross_attention = cross_attention
        self.cross_residual = cross_residual
        self.mlp = mlp
        self.mlp_residual = mlp_residual

    def forward(
        self, x: Tensor, blocked: Tensor | None, at: slice, memory: Memory | None, cache: LayerCache | None, tap: Tap
    ) -> Tensor:
        """[B, T, d_model] → [B, T, d_model]; `blocked`, `at`, `memory` and `cache` as in `Attention` and `CrossAttention`."""
        x = tap("resid_pre", x)
        x = self.attention_residual(x, lambda h: self.attention(h, blocked, at, cache, tap.at("attention")))
        if self.cross_attention is not None and self.cross_residual is not None and memory is not None:
            cross = self.cross_attention
            x = tap("resid_self", x)
            x = self.cross_residual(x, lambda h: cross(h, memory, cache, tap.at("cross_attention")))
        if self.mlp is not None and self.mlp_residual is not None:
            mlp = self.mlp
            x = tap("resid_mid", x)
            x = self.mlp_residual(x, lambda h: mlp(h, tap.at("mlp")))
        return tap("resid_post", x)
