"""A block: attention and an MLP, each joined to the residual stream."""

from __future__ import annotations

from torch import Tensor

from ..tap import Tap
from .attention import Attention, CrossAttention, LayerCache, Memory
from .mlps import AnyMLP
from .part import LightCall
from .residuals import Parallel, Residual
from .shortcuts import Mix


class Block(LightCall):
    """Attention, then cross-attention and the MLP where the model has them, each inside its
    residual.
    """

    def __init__(
        self,
        attention: Attention,
        attention_residual: Residual,
        mlp: AnyMLP | None,
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
        #: of the stream with the embedding, before the block; see `Transformer.run_blocks`
        self.mix: Mix | None = None

    def forward(
        self,
        x: Tensor,
        ids: Tensor,
        blocked: Tensor | None,
        at: slice,
        memory: Memory | None,
        cache: LayerCache | None,
        tap: Tap,
    ) -> Tensor:
        """x [B, T, d_model] → [B, T, d_model]; the other arguments as in `Attention.forward` and
        `CrossAttention.forward`.
        """
        x = tap("resid_pre", x)
        x = self.attention_residual(
            x, lambda h: self.attention(h, ids, blocked, at, cache, tap.for_part("attention"))
        )
        if (
            self.cross_attention is not None
            and self.cross_residual is not None
            and memory is not None
        ):
            cross = self.cross_attention
            x = tap("resid_self", x)
            x = self.cross_residual(
                x, lambda h: cross(h, memory, cache, tap.for_part("cross_attention"))
            )
        if self.mlp is not None and self.mlp_residual is not None:
            mlp = self.mlp
            x = tap("resid_mid", x)
            x = self.mlp_residual(x, lambda h: mlp(h, tap.for_part("mlp")))
        return tap("resid_post", x)


class ParallelBlock(LightCall):
    """Attention and an MLP that read the same stream; what both compute is added to it at once."""

    def __init__(
        self,
        attention: Attention,
        attention_residual: Parallel,
        mlp: AnyMLP,
        mlp_residual: Parallel,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_residual = attention_residual
        self.mlp = mlp
        self.mlp_residual = mlp_residual
        self.mix: Mix | None = None

    def forward(
        self,
        x: Tensor,
        ids: Tensor,
        blocked: Tensor | None,
        at: slice,
        memory: Memory | None,
        cache: LayerCache | None,
        tap: Tap,
    ) -> Tensor:
        """As `Block.forward`; there is no memory to read."""
        x = tap("resid_pre", x)
        attended = self.attention_residual.branch(
            x, lambda h: self.attention(h, ids, blocked, at, cache, tap.for_part("attention"))
        )
        thought = self.mlp_residual.branch(x, lambda h: self.mlp(h, tap.for_part("mlp")))
        return tap("resid_post", x + attended + thought)
