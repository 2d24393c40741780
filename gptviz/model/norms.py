"""Norms: what keeps the numbers of a stream, or of a query and key, at one size."""

from __future__ import annotations

from torch import nn

from .config import Config


def layernorm(size: int, gain: bool, bias: bool) -> nn.Module:
    """(x - mean) / √(variance + 1e-5), times a gain and, with a gain alone, plus a bias where asked (Ba et al. 2016)."""
    return nn.LayerNorm(size, eps=1e-5, elementwise_affine=gain, bias=bias)


def rmsnorm(size: int, gain: bool, bias: bool) -> nn.Module:
    """x / √(mean of squares + 1e-6), times a gain where asked; it has no bias (Zhang & Sennrich 2019)."""
    return nn.RMSNorm(size, eps=1e-6, elementwise_affine=gain)


NORMS = {"layernorm": layernorm, "rmsnorm": rmsnorm}


def norm(config: Config, size: int) -> nn.Module:
    """The config's norm over `size` numbers."""
    return NORMS[config.norm](size, config.norm_gain, config.norm_bias)
