"""Attention, written out: on CPUs this is also the fast way, so one path trains, generates and feeds the pictures."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .config import Config
from .norms import norm
from .positions import NoPositions
from .tap import Tap


class LayerCache:
    """The keys and values one attention layer has seen: two preallocated tensors [B, H, room, d_head].

    One pair per layer, not one tensor for all layers: writing into a stacked tensor ruins compilation.
    """

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values

    def extend(self, k: Tensor, v: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Keep k and v [B, H, T, d_head] of the positions `at`; return views of all up to there, [B, H, at.stop, d_head]."""
        self.keys[:, :, at] = k
        self.values[:, :, at] = v
        return self.keys[:, :, : at.stop], self.values[:, :, : at.stop]


class KVCache:
    """What generation need not compute again: a `LayerCache` per block, room for `context_length` tokens.

    For causal models: under a full mask every token that comes changes the keys of all before it.

    Memory in numbers: 2 · n_layer · batch · context_length · n_head · d_head.
    """

    def __init__(
        self, config: Config, batch: int = 1, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> None:
        shape = (batch, config.n_head, config.context_length, config.head_size)

        def layer() -> LayerCache:
            keys, values = (torch.empty(shape, device=device, dtype=dtype) for _ in range(2))
            return LayerCache(keys, values)

        self.layers = [layer() for _ in range(config.n_layer)]
        self.length = 0

    def truncate(self, length: int) -> None:
        """Forget everything from token `length` on."""
        self.length = min(length, self.length)


class Attention(nn.Module):
    """softmax(mask(q kᵀ / √d_head)) v, per head, projected back to the stream (Vaswani et al. 2017, section 3.2).

    W_Q, W_K and W_V are stacked in one matrix of 3 · n_head · d_head rows, so that a token is projected in one product.
    """

    def __init__(self, config: Config, positions: NoPositions) -> None:
        super().__init__()
        width = config.n_head * config.head_size
        self.head_size = config.head_size
        self.qkv = nn.Linear(config.d_model, 3 * width, bias=config.qkv_bias)
        self.output = nn.Linear(width, config.d_model, bias=config.output_bias)
        self.qk_norm = norm(config, config.head_size) if config.qk_norm else nn.Identity()
        self.positions = positions

    def forward(self, x: Tensor, blocked: Tensor | None, at: slice, cache: LayerCache | None, tap: Tap) -> Tensor:
        """x [B, T, d_model] → [B, T, d_model].

        `blocked` [T, keys] is true where a query must not look at a key, None where all may look at all. `at` says which
        positions the tokens of x hold. A `cache` holds the keys and values of all positions before them.
        """
        stacked = self.qkv(x).view(*x.shape[:2], -1, self.head_size).transpose(1, 2)  # [B, 3 H, T, d_head]
        n_head = stacked.shape[1] // 3
        turned = self.positions.turn(self.qk_norm(stacked[:, : 2 * n_head]), at)  # [B, 2 H, T, d_head]
        q = tap("q", turned[:, :n_head])  # [B, H, T, d_head]
        k = tap("k", turned[:, n_head:])  # [B, H, T, d_head]
        v = tap("v", stacked[:, 2 * n_head :])  # [B, H, T, d_head]
        if cache is not None:
            k, v = cache.extend(k, v, at)  # [B, H, keys, d_head]
        scaled = q * self.head_size**-0.5
        scores = tap("scores", self.positions.weigh(scaled @ k.transpose(-2, -1), scaled, at))  # [B, H, T, keys]
        visible = scores if blocked is None else scores.masked_fill(blocked, float("-inf"))
        pattern = tap("pattern", visible.softmax(-1))  # [B, H, T, keys]
        z = tap("z", pattern @ v)  # [B, H, T, d_head]
        return tap("out", self.output(z.transpose(1, 2).flatten(2)))  # [B, T, d_model]
