"""Positions: how a model knows the order of its tokens. Each kind changes the embedding, the query and key, or the scores.

Positions count from 0. Where a kind leaves something alone, the base class returns it unchanged.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .config import Config
from .tap import Tap


class PositionEncoding(nn.Module):
    """What a kind of positions changes: each subclass overrides one of the three methods, the others return what they get."""

    acts_on = "nothing"

    def __init__(self, config: Config) -> None:
        super().__init__()

    def embed(self, x: Tensor, at: slice, tap: Tap) -> Tensor:
        """Change the embeddings `x` [B, T, d_model] of the tokens at positions `at`."""
        return x

    def turn(self, heads: Tensor, at: slice) -> Tensor:
        """Change the queries or keys `heads` [B, H, T, d_head] of the tokens at positions `at`."""
        return heads

    def weigh(self, scores: Tensor, q: Tensor, at: slice) -> Tensor:
        """Change the `scores` [B, H, T, keys] of queries `q` [B, H, T, d_head], already divided by √d_head.

        The queries hold the positions `at`, the keys those from 0 on.
        """
        return scores


class NoPositions(PositionEncoding):
    """Nothing is added: a causal model can still tell order from how much each token sees."""


def distances(at: slice, keys: int, device: torch.device) -> Tensor:
    """query - key for queries at positions `at` and keys from 0 on: [queries, keys]."""
    return torch.arange(at.start, at.stop, device=device)[:, None] - torch.arange(keys, device=device)


class Learned(PositionEncoding):
    """x + P[at]: one trained vector per position (GPT-1, Radford et al. 2018)."""

    acts_on = "embedding"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.table = nn.Embedding(config.context_length, config.d_model)

    def embed(self, x: Tensor, at: slice, tap: Tap) -> Tensor:
        return x + tap("positions", self.table.weight[at])


def sinusoid(length: int, d_model: int, base: float = 10_000.0) -> Tensor:
    """The sinusoidal table [length, d_model]: sin(p / base^(2i/d)) in column 2i, the cosine in 2i + 1.

    Positions p count from 0. Source: Vaswani et al. 2017, section 3.5. Computed in float64, returned as float32.
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position * frequency  # [length, d_model / 2]
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)[:, :d_model].float()  # [length, d_model]


class Sinusoidal(PositionEncoding):
    """x + S[at]: fixed sines and cosines of falling frequency (Vaswani et al. 2017)."""

    acts_on = "embedding"
    table: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.register_buffer("table", sinusoid(config.context_length, config.d_model), persistent=False)

    def embed(self, x: Tensor, at: slice, tap: Tap) -> Tensor:
        return x + tap("positions", self.table[at])


class Rotary(PositionEncoding):
    """q, k → R(p) q, R(p) k at position p: each pair of numbers (i, i + d_head/2) is turned by p / 10000^(2i/d_head).

    A score then depends on the distance of query and key alone (RoPE, Su et al. 2021).
    """

    acts_on = "query and key"
    cos: Tensor
    sin: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        table = sinusoid(config.context_length, config.head_size)
        sin, cos = table[:, 0::2], table[:, 1::2]  # [context_length, d_head / 2]
        # Turning the pair (a, b) gives (a cos - b sin, b cos + a sin): the pair times cos plus the swapped pair times ∓ sin.
        self.register_buffer("cos", torch.cat((cos, cos), dim=-1), persistent=False)  # [context_length, d_head]
        self.register_buffer("sin", torch.cat((-sin, sin), dim=-1), persistent=False)  # [context_length, d_head]

    def turn(self, heads: Tensor, at: slice) -> Tensor:
        swapped = heads.roll(heads.shape[-1] // 2, dims=-1)  # [B, H, T, d_head]
        return torch.addcmul(heads * self.cos[at].to(heads.dtype), swapped, self.sin[at].to(heads.dtype))


class Relative(PositionEncoding):
    """scores + q · R[query - key] / √d_head: a trained vector per head and distance (Shaw et al. 2018, keys only).

    The paper also adds vectors to the values; they are left out here (it found them to matter little), so that
    pattern · v stays the whole of a head's output.
    """

    acts_on = "scores"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.reach = config.context_length - 1  # distances run from -reach to reach
        self.table = nn.Parameter(torch.empty(config.n_head, config.head_size, 2 * self.reach + 1))

    def weigh(self, scores: Tensor, q: Tensor, at: slice) -> Tensor:
        by_distance = q @ self.table.to(q.dtype)  # [B, H, T, 2 reach + 1]
        column = distances(at, scores.shape[-1], scores.device) + self.reach  # [T, keys]
        return scores + by_distance.gather(-1, column.expand_as(scores))


class Alibi(PositionEncoding):
    """scores - m_h · |query - key|: a fixed slope per head, steep for the first (Press et al. 2021)."""

    acts_on = "scores"
    slopes: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.register_buffer("slopes", alibi_slopes(config.n_head), persistent=False)

    def weigh(self, scores: Tensor, q: Tensor, at: slice) -> Tensor:
        distance = distances(at, scores.shape[-1], scores.device).abs()  # [T, keys]
        return scores - (self.slopes[:, None, None] * distance).to(scores.dtype)


def alibi_slopes(n_head: int) -> Tensor:
    """The slopes [n_head]: 2^(-8h/n) for h = 1 … n at a power of two n; else the paper's rule, which fills up with
    every other slope of the next power."""
    power = 1 << (n_head.bit_length() - 1)

    def geometric(n: int) -> Tensor:
        return 2.0 ** (-8.0 * torch.arange(1, n + 1) / n)

    return torch.cat((geometric(power), geometric(2 * power)[::2][: n_head - power]))


POSITIONS: dict[str, type[PositionEncoding]] = {
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "rotary": Rotary,
    "relative": Relative,
    "alibi": Alibi,
    "none": NoPositions,
}
