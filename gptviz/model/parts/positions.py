"""Positions: how a model knows the order of its tokens. Each kind changes the embedding, the query
and key, or the scores.

Positions count from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from ..tap import Tap
from .part import Embedding, ModelPart, NamedTensor, Settings, distances, fixed_numbers, sharing


class PositionEncoding(ModelPart):
    """One kind of positions: each subclass overrides one of the three methods; the others return
    what they get.

    `equation` is for "embedding" the vector that is added, for "query and key" a function of x with
    its name, such as "rotate(x) = …", for "scores" the term that is added.
    """

    #: which of them it overrides: `embed`, `turn` or `weigh`
    acts_on: ClassVar[Literal["embedding", "query and key", "scores", "nothing"]]
    #: whether it has weights, so that every model (and where it acts in attention, every block) has
    #: its own
    is_trained: ClassVar[bool] = False

    def __init__(self, settings: Settings) -> None:
        super().__init__()

    @property
    def compared_with(self) -> int:
        """The number of vectors that each query of a head is multiplied with besides the keys."""
        return 0

    @classmethod
    def check(cls, settings: Settings) -> None:
        """Refuse sizes that these positions cannot have, with a ValueError."""

    @classmethod
    def about_of(cls, settings: Settings) -> str:
        """`about`, and what there is to say of these settings."""
        return cls.about

    def embed(self, x: Tensor, at: slice, tap: Tap) -> Tensor:
        """Change the embeddings `x` [B, T, d_model] of the tokens at positions `at`."""
        return x

    def turn(self, heads: Tensor, at: slice) -> Tensor:
        """Change the queries or keys `heads` [B, H, T, d_head] of the tokens at positions `at`."""
        return heads

    def weigh(self, scores: Tensor, q: Tensor, at: slice) -> Tensor:
        """Change the `scores` [B, H, T, keys] of queries `q` [B, H, T, d_head], already divided by
        √d_head. The queries hold the positions `at`, the keys those from 0 on.
        """
        return scores

    def without_effect(self) -> Self:
        """Positions of this kind that change nothing. These stay as they are, as in `in_order`."""
        return self

    def in_order(self, order: Tensor) -> Self:
        """The same positions in another order: place p is told to the model as place `order[p]`,
        [context_length].
        """
        return self


class NoPositions(PositionEncoding):
    """Nothing is added: a causal model can still tell order from how much each token sees."""

    title = "No"
    equation = ""
    acts_on = "nothing"
    about = (
        "Nothing tells the model where a token stands; under a causal mask it still learns "
        "something, since each token sees one "
        "token more than the token before it."
    )


class Learned(PositionEncoding):
    """x + P[at]: one trained vector per position (GPT-1, Radford et al. 2018)."""

    title = "Learned"
    equation = "positions[t] = W_P[t]"
    acts_on = "embedding"
    about = "A vector for each place in the text, learned, so that the model can tell order."
    tensors = (NamedTensor("table.weight", "W_P", ("position", "d_model")),)
    is_trained = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.table = Embedding(settings.context_length, settings.d_model)

    def embed(self, x: Tensor, at: slice, tap: Tap) -> Tensor:
        return x + tap("positions", self.table.weight[at])

    def without_effect(self) -> Self:
        return self._with_vectors(torch.zeros_like(self.table.weight))

    def in_order(self, order: Tensor) -> Self:
        return self._with_vectors(self.table.weight[order])

    def _with_vectors(self, vectors: Tensor) -> Self:
        return sharing(self, table=sharing(self.table, weight=nn.Parameter(vectors.detach())))


def sinusoid(length: int, d_model: int, base: float = 10_000.0) -> Tensor:
    """The sinusoidal table [length, d_model]: sin(p / base^(2i/d)) in column 2i, the cosine in 2i +
    1.

    Positions p count from 0. Source: Vaswani et al. 2017, section 3.5. Computed in float64,
    returned as float32.
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position * frequency  # [length, d_model / 2]
    # [length, d_model]
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)[:, :d_model].float()


class Sinusoidal(PositionEncoding):
    """x + S[at]: fixed sines and cosines of falling frequency (Vaswani et al. 2017)."""

    title = "Sinusoidal"
    acts_on = "embedding"
    equation = (
        "positions[t, 2i] = sin(t / 10000^(2i / d_model)), positions[t, 2i + 1] = cos(t / "
        "10000^(2i / d_model))"
    )
    about = (
        "A vector for each place in the text, fixed by sines and cosines, so that the model can "
        "tell order."
    )
    table: Tensor

    @classmethod
    def check(cls, settings: Settings) -> None:
        if settings.d_model % 2:
            raise ValueError(
                f"sinusoidal positions pair a sine with a cosine: d_model {settings.d_model} must "
                "be even"
            )

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        shape = (settings.context_length, settings.d_model)
        self.register_buffer(
            "table", fixed_numbers(shape, lambda: self.compute_table(*shape)), persistent=False
        )

    def compute_table(self, length: int, d_model: int) -> Tensor:
        """The table [length, d_model]."""
        return sinusoid(length, d_model)

    def embed(self, x: Tensor, at: slice, tap: Tap) -> Tensor:
        return x + tap("positions", self.table[at])

    def without_effect(self) -> Self:
        return sharing(self, table=torch.zeros_like(self.table))

    def in_order(self, order: Tensor) -> Self:
        return sharing(self, table=self.table[order])


class SinesFirst(Sinusoidal):
    """As `Sinusoidal`, with all sines in the first half of a vector and all cosines in the second
    (Marian, 2018).
    """

    title = "Sinusoidal, sines first"
    equation = (
        "positions[t, i] = sin(t / 10000^(2i / d_model)), positions[t, d_model / 2 + i] = cos(t / "
        "10000^(2i / d_model))"
    )
    about = (
        "A vector for each place in the text, fixed by sines, then cosines, so that the model can "
        "tell order."
    )

    def compute_table(self, length: int, d_model: int) -> Tensor:
        table = sinusoid(length, d_model)
        return torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)


class RotaryScaling:
    """How rotary positions are slowed down for texts longer than those of a first training; its
    equation is the new frequency of a pair of numbers.
    """

    title = "None"
    equation = ""
    about = "Positions turn as they did in training."

    @staticmethod
    def scale_frequencies(frequency: Tensor, factor: float, context: int) -> Tensor:
        """The frequencies [d_head / 2] in radians per token, changed for a text longer than
        `context` tokens by `factor`.
        """
        return frequency


class LinearScaling(RotaryScaling):
    """All positions are slowed down alike (Chen et al. 2023)."""

    title = "Linear"
    equation = "frequency / factor"
    about = "All positions are slowed down by one factor."

    @staticmethod
    def scale_frequencies(frequency: Tensor, factor: float, context: int) -> Tensor:
        return frequency / factor


class Llama3Scaling(RotaryScaling):
    """Slow waves are slowed down, fast ones kept, and those between are mixed (Llama 3.1,
    Grattafiori et al. 2024).

    Slow is a wave longer than the first context, fast one of which at least four fit into it.
    """

    title = "Llama 3"
    equation = (
        "kept · frequency + (1 − kept) · frequency / factor, kept = clamp((context · frequency / "
        "2π − 1) / 3, 0, 1)"
    )
    about = (
        "Waves longer than the first context are slowed down, waves of less than a quarter of it "
        "stay as they are."
    )

    @staticmethod
    def scale_frequencies(frequency: Tensor, factor: float, context: int) -> Tensor:
        waves = context * frequency / (2 * torch.pi)
        kept = ((waves - LLAMA3_SLOW) / (LLAMA3_FAST - LLAMA3_SLOW)).clamp(0, 1)
        return frequency * (kept + (1 - kept) / factor)


# Of Llama 3's scaling: with fewer waves than this in the first context a pair is slowed down, with
# more than that it is kept.
LLAMA3_SLOW = 1.0
LLAMA3_FAST = 4.0
ROTARY_SCALINGS: dict[str, type[RotaryScaling]] = {
    "none": RotaryScaling,
    "linear": LinearScaling,
    "llama3": Llama3Scaling,
}


def turned_pairs(settings: Settings) -> int:
    """How many of the d_head / 2 pairs of numbers rotary positions turn, the first ones."""
    return round(settings.head_size // 2 * settings.rotary_fraction)


def rotary_frequencies(settings: Settings) -> Tensor:
    """By how much each pair of numbers is turned from one position to the next, in radians: [d_head
    / 2], in float64.

    The first `rotary_fraction` of the pairs are turned by base^(-i / number of such pairs), the
    others stay as they are (GPT-NeoX turns a quarter of them); `rotary_scaling` then changes them.
    """
    turned = turned_pairs(settings)
    frequency = torch.zeros(settings.head_size // 2, dtype=torch.float64)
    frequency[:turned] = settings.rotary_base ** (
        -torch.arange(turned, dtype=torch.float64) / max(turned, 1)
    )
    return ROTARY_SCALINGS[settings.rotary_scaling].scale_frequencies(
        frequency, settings.rotary_factor, settings.rotary_context
    )


class Rotary(PositionEncoding):
    """q, k → R(p) q, R(p) k at position p: each pair of numbers (i, i + d_head/2) is turned by p ·
    frequency_i.

    The frequencies are 10000^(-2i/d_head) unless the config says otherwise (see
    `rotary_frequencies`). A score then depends on only the distance of query and key (RoPE, Su et
    al. 2021).
    """

    title = "Rotary"
    acts_on = "query and key"
    equation = (
        "rotate(x)[t] = x[t] · cos[t] + swapped(x)[t] · sin[t], where swapped exchanges the "
        "halves of x"
    )
    about = (
        "Turns queries and keys by their place, so that a score depends on how far apart two "
        "tokens are."
    )
    tensors = tuple(NamedTensor(name, name, ("position", "d_head")) for name in ("cos", "sin"))
    cos: Tensor
    sin: Tensor

    @classmethod
    def check(cls, settings: Settings) -> None:
        if settings.head_size % 2:
            raise ValueError(
                f"rotary positions turn pairs of numbers: d_head {settings.head_size} must be even"
            )

    @classmethod
    def about_of(cls, settings: Settings) -> str:
        pairs = settings.head_size // 2
        turned = turned_pairs(settings)
        if not turned:
            return f"{cls.about} Of so small a share of {pairs} pairs none is turned."
        says = (
            f"{cls.about} From a token to the next, pair i turns by "
            f"{settings.rotary_base:.10g}^(−i / {turned}) radians."
        )
        if turned < pairs:
            says += (
                f" That is for the first {turned} of {pairs} pairs; the others stay as they are."
            )
        scaling = ROTARY_SCALINGS[settings.rotary_scaling]
        if scaling.equation:
            values = f"factor {settings.rotary_factor:g}, context {settings.rotary_context}"
            says += f" Its frequency is scaled, {scaling.title}: {scaling.equation}, with {values}."
        return says

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        shape = (settings.context_length, settings.head_size)

        def waves(wave: Callable[[Tensor], Tensor], sign: int) -> Tensor:
            places = torch.arange(settings.context_length, dtype=torch.float64)
            # [context_length, d_head / 2]
            half = wave(places[:, None] * rotary_frequencies(settings)).float()
            return torch.cat((sign * half, half), dim=-1)  # [context_length, d_head]

        # Turning the pair (a, b) gives (a cos - b sin, b cos + a sin): the pair times cos plus the
        # swapped pair times ∓ sin.
        self.register_buffer(
            "cos", fixed_numbers(shape, lambda: waves(torch.cos, 1)), persistent=False
        )
        self.register_buffer(
            "sin", fixed_numbers(shape, lambda: waves(torch.sin, -1)), persistent=False
        )

    def turn(self, heads: Tensor, at: slice) -> Tensor:
        return self.rotate_heads(heads, *self.angles(at))

    def angles(self, at: slice) -> tuple[Tensor, Tensor]:
        """Cosine and signed sine of the positions `at`, [T, d_head] each."""
        # `narrow` takes half the time of an index, and generation asks in every block for every
        # token.
        own: dict[str, Any] = self._buffers
        length = at.stop - at.start
        return own["cos"].narrow(0, at.start, length), own["sin"].narrow(0, at.start, length)

    @staticmethod
    def rotate_heads(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """The queries or keys `heads` [B, H, T, d_head], turned by these angles."""
        swapped = heads.roll(heads.shape[-1] // 2, dims=-1)  # [B, H, T, d_head]
        if cos.dtype != heads.dtype:
            cos = cos.to(heads.dtype)
            sin = sin.to(heads.dtype)
        return swapped.mul_(sin).addcmul_(heads, cos)  # `roll` gave numbers of its own

    def without_effect(self) -> Self:
        return sharing(self, cos=torch.ones_like(self.cos), sin=torch.zeros_like(self.sin))

    def in_order(self, order: Tensor) -> Self:
        return sharing(self, cos=self.cos[order], sin=self.sin[order])


class ByDistance(PositionEncoding):
    """Positions that change a score by the distance of query and key."""

    acts_on = "scores"
    #: [context_length], which place each place is taken for, or None for itself
    order: Tensor | None = None

    def distances(self, at: slice, keys: int, device: torch.device) -> Tensor:
        """query - key for queries at positions `at` and keys from 0 on: [queries, keys]."""
        if self.order is None:
            return distances(at, keys, device)
        order = self.order.to(device)
        return order[at, None] - order[:keys]

    def in_order(self, order: Tensor) -> Self:
        return sharing(self, order=order)


class Relative(ByDistance):
    """scores + q · R[query - key] / √d_head: a trained vector per head and distance (Shaw et al.
    2018, keys only).

    The paper also adds vectors to the values; they are left out here (it found them to matter
    little), so that pattern · v stays the whole of a head's output.
    """

    title = "Relative"
    equation = "q · R[query − key] / √d_head"
    about = (
        "A learned vector per head and distance: a query's product with it is added to the score."
    )
    tensors = (NamedTensor("table", "R", ("head", "d_head", "distance")),)
    is_trained = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.reach = settings.context_length - 1  # distances run from -reach to reach
        self.table = nn.Parameter(
            torch.empty(settings.n_head, settings.head_size, 2 * self.reach + 1)
        )

    @property
    def compared_with(self) -> int:
        return 2 * self.reach + 1

    def weigh(self, scores: Tensor, q: Tensor, at: slice) -> Tensor:
        by_distance = q @ self.table.to(q.dtype)  # [B, H, T, 2 reach + 1]
        column = self.distances(at, scores.shape[-1], scores.device) + self.reach  # [T, keys]
        return scores + by_distance.gather(-1, column.expand_as(scores))

    def without_effect(self) -> Self:
        return sharing(self, table=nn.Parameter(torch.zeros_like(self.table)))


class Alibi(ByDistance):
    """scores - m_h · |query - key|: a fixed slope per head, steep for the first (Press et al.
    2021).
    """

    title = "ALiBi"
    equation = "−slope · |query − key|"
    about = "The further apart two tokens are, the lower their score: a fixed slope per head."
    tensors = (NamedTensor("slopes", "slope", ("head",)),)
    slopes: Tensor

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        n_head = settings.n_head
        self.register_buffer(
            "slopes", fixed_numbers((n_head,), lambda: alibi_slopes(n_head)), persistent=False
        )

    def weigh(self, scores: Tensor, q: Tensor, at: slice) -> Tensor:
        distance = self.distances(at, scores.shape[-1], scores.device).abs()  # [T, keys]
        return scores - (self.slopes[:, None, None] * distance).to(scores.dtype)

    def without_effect(self) -> Self:
        return sharing(self, slopes=torch.zeros_like(self.slopes))


def alibi_slopes(n_head: int) -> Tensor:
    """The slopes of ALiBi, [n_head]: 2^(-8h/n) for h = 1 … n where n is a power of two.

    For other numbers of heads the paper takes the slopes of the power of two below, then every
    other slope of the next power.
    """
    power = 1 << (n_head.bit_length() - 1)

    def geometric(n: int) -> Tensor:
        return 2.0 ** (-8.0 * torch.arange(1, n + 1) / n)

    return torch.cat((geometric(power), geometric(2 * power)[::2][: n_head - power]))


POSITIONS: dict[str, type[PositionEncoding]] = {
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "sines-first": SinesFirst,
    "rotary": Rotary,
    "relative": Relative,
    "alibi": Alibi,
    "none": NoPositions,
}
