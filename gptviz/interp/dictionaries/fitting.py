"""How a dictionary is fitted to vectors of the stream.

The vectors are brought to a mean of 0 and a mean square of 1 in each number. Adam makes the squared
error of what the features give back small. In a TopK dictionary the k most active features count at
each token (Gao and others 2024); in a ReLU dictionary the sum of all activations has a cost
(Bricken and others 2023). The rows of the decoder have length 1 all the time. A feature that was
active nowhere for a while is dead, and begins again as the vector of a token that the others give
back badly.

In many large models the stream at a few tokens, such as the first, is hundreds of times as long as
elsewhere, always in one direction (Sun and others 2024, "Massive Activations in Large Language
Models"). Nothing is fitted to them: each such direction has a feature of its own, which stays as it
is, and along which no other feature reads.

The dictionary of an MLP learns to give back the MLP's output from what the MLP reads; both are
brought to a mean of 0 and a mean square of 1. Tokens at which the output is massive are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.machine import progress
from gptviz.machine.cores import sharing
from gptviz.machine.memory import FLOAT32, MOST_OF_MEMORY, in_bytes, room, way_out
from gptviz.model import Transformer

from ..changing.ablation import NOT_COUNTED, Rows
from ..trace import run
from .dictionary import Dictionary, Target, taps_of

FittedKind = Literal["topk", "relu"]
KINDS: tuple[FittedKind, ...] = get_args(FittedKind)
# The most bytes of the vectors that are kept to fit to, and how many of them there are at most.
MOST_BYTES = 2**28
MOST_VECTORS = 120_000
# How many vectors a step reads; the rate of Adam for a number in a row of length 1, and over which
# share of the steps, the last ones, it falls to 0.
BATCH = 1_024
RATE = 0.045
FALLING = 0.5
# After so many steps without a token at which it is active, a feature is dead. Within the last
# steps none begins again, so that each has time to learn.
PATIENCE = 100
REVIVED = 0.7
# Between two reports.
STEPS = 20
# A vector so many times as long as the median is massive. It needs a direction of its own if those
# of others miss more than this share of it; there are at most so many directions.
MASSIVE = 10.0
MISSED = 0.1
MOST_MASSIVE = 8


def tokens_that_count(rows: Rows) -> Tensor:
    """Where a token [B, T] can change a prediction that counts: what fills a row after the last of
    them is left out.
    """
    return (rows.targets != NOT_COUNTED).flip(1).cumsum(1).flip(1) > 0


def vectors(model: Transformer, block: int, rows: Iterable[Rows]) -> Tensor:
    """The stream after a block at the tokens of `rows` that count: see `read_and_given`."""
    return read_and_given(model, block, "stream", rows)[0]


def read_and_given(
    model: Transformer, block: int, target: Target, rows: Iterable[Rows]
) -> tuple[Tensor, Tensor]:
    """What a dictionary reads at the tokens of `rows` that count (`tokens_that_count`), one after
    the other, and what it is to give back: both [tokens, d_model] in float32, and of the stream the
    same tensor.

    Of endless rows the first `MOST_VECTORS` tokens are read, or as many as take `MOST_BYTES`. A
    ValueError if the model is no decoder, there is no such block, its blocks have no MLP to give
    back, or there are fewer than two tokens.
    """
    config = model.config
    taps = list(dict.fromkeys(taps_of(block, target)))
    if config.kind != "decoder" or not 0 <= block < config.n_layer:
        raise ValueError(
            "a dictionary reads the stream after a block of a decoder; this model has "
            f"{config.n_layer}"
        )
    if target == "mlp" and not config.mlp_size:
        raise ValueError("the blocks of this model have no MLP whose output could be given back")
    most = min(MOST_VECTORS, MOST_BYTES // (FLOAT32 * config.d_model * len(taps)))
    found = [torch.empty(most, config.d_model) for _ in taps]
    count = 0
    for some in rows:
        trace = run(model, some.reading.ids, taps, logits_at=slice(-1, None))
        counts = tokens_that_count(some)
        end = min(count + int(counts.sum()), most)
        for tap, kept in zip(taps, found, strict=True):
            kept[count:end] = trace[tap][counts][: end - count]
        count = end
        progress.report(count, most, "token")
        if count == most:
            break
    if count < 2:
        raise ValueError("the text is too short to fit a dictionary to it")
    return found[0][:count], found[-1][:count]


@torch.enable_grad()
def effort_of_fit(d_model: int, size: int, steps: int) -> float:
    """About how many multiplications it takes to fit a dictionary of `size` features: both its
    matrices, forwards and for two gradients each.
    """
    return 3.0 * 2 * d_model * size * BATCH * steps


def fit(
    vectors: Tensor,
    block: int,
    size: int,
    kind: FittedKind = "topk",
    *,
    k: int = 16,
    cost: float = 0.4,
    steps: int = 2_000,
    seed: int = 0,
    given: Tensor | None = None,
) -> Dictionary:
    """A dictionary of `size` features, fitted to `vectors` of the stream after a block, [tokens,
    d_model]; or to what an MLP reads and what it has `given`, both [tokens, d_model].

    Args:
        k: how many features of a "topk" dictionary are active at a token.
        cost: what the sum of the activations of a "relu" dictionary costs beside the error.
        steps: each reads `BATCH` of the vectors, drawn at random.
        seed: decides where the features begin, and which vectors a step reads.

    Raises:
        ValueError: there are no such features, or all vectors are equal or not all numbers.
    """
    if kind not in KINDS or not 1 <= (k if kind == "topk" else 1) <= size:
        raise ValueError(
            f"there is no dictionary of {size:,} features ({kind}) with {k} active: choose 1 of "
            "them at least"
        )
    # Both of its matrices, and for each of their numbers a gradient and two that Adam keeps.
    needed = 2 * 4 * FLOAT32 * size * vectors.shape[1]
    if needed > MOST_OF_MEMORY * (free := room(needed)):
        raise ValueError(
            f"a dictionary of {size:,} features takes {in_bytes(needed)} while it is fitted, and "
            f"{in_bytes(free)} is free: {way_out()}, or choose fewer features"
        )
    is_massive = _massive(vectors if given is None else given)
    read = _Centred(vectors[~is_massive])
    wanted = read if given is None else _Centred(given[~is_massive])
    # the massive vectors of a stream have features of their own
    massive = vectors[is_massive] if given is None else vectors[:0]
    own = _directions(massive - read.center)[:size]
    draw = torch.Generator().manual_seed(seed)
    begin = torch.randint(len(read.vectors), (size,), generator=draw)
    rows = read.some(begin)
    rows = F.normalize(rows + 1e-3 * torch.randn(rows.shape, generator=draw), dim=-1)
    rows[: len(own)] = own
    learned = Dictionary(
        block,
        rows.clone(),
        torch.zeros(size),
        rows if given is None else F.normalize(wanted.some(begin) + 1e-6, dim=-1),
        torch.zeros_like(read.center),
        torch.zeros(size),
        k if kind == "topk" else 0,
        target="stream" if given is None else "mlp",
    )
    trainer = _Trainer(learned, cost if kind == "relu" else 0.0, steps, len(own))
    with sharing() as share:
        for step in range(steps):
            share()
            count = len(read.vectors)
            some = torch.randint(count, (min(BATCH, count),), generator=draw)
            error, active = trainer.step(read.some(some), wanted.some(some), draw)
            if step % STEPS == STEPS - 1 or step == steps - 1:
                progress.report(
                    step + 1,
                    steps,
                    "step",
                    doing=f"{1 - error:.1%} explained, {active:.1f} active at a token",
                )
    parts = {name: value.detach() for name, value in trainer.parts.items()}
    back = {
        "encoder_bias": wanted.scale * parts["encoder_bias"],
        "decoder_bias": wanted.center + wanted.scale * parts["decoder_bias"],
    }
    if given is not None:
        # it reads what it is fitted to before that was brought to its mean and size
        encoder = parts["encoder"] * (wanted.scale / read.scale)
        bias = back["encoder_bias"] - encoder @ read.center
        back |= {"encoder": encoder, "encoder_bias": bias}
    return replace(learned, **parts | back, fitted_to=len(read.vectors))


class _Centred:
    """Vectors [tokens, d_model], which are handed out with a mean of 0 and a mean square of 1."""

    def __init__(self, vectors: Tensor) -> None:
        self.vectors = vectors
        self.center = vectors.mean(0)
        self.scale = (vectors - self.center).square().mean().sqrt()
        if not 0 < self.scale < torch.inf:
            raise ValueError(
                "the stream is the same at all tokens, or not all numbers: there is nothing to "
                "fit a dictionary to"
            )

    def some(self, rows: Tensor) -> Tensor:
        """Those at these `rows` [n]: [n, d_model]."""
        return (self.vectors[rows] - self.center) / self.scale


def _massive(vectors: Tensor) -> Tensor:
    """Which of the vectors [tokens, d_model] are massive: [tokens]."""
    lengths = vectors.norm(dim=-1)
    median = lengths.median()
    if not median:
        return torch.zeros_like(lengths, dtype=torch.bool)
    return lengths > MASSIVE * median


def _directions(massive: Tensor) -> Tensor:
    """Directions [n, d_model] of length 1, at right angles to each other, that give back all of the
    `massive` vectors but `MISSED`.
    """
    found = massive[:0]
    for vector in massive:
        rest = vector - (vector @ found.T) @ found
        if len(found) < MOST_MASSIVE and rest.norm() > MISSED * vector.norm():
            found = torch.cat([found, F.normalize(rest, dim=0)[None]])
    return found


class _Trainer:
    """Adam, which fits a dictionary to batches of vectors in so many steps; its parts are changed
    in place.

    Args:
        kept: how many of its features, the first, stay as they are; their rows are at right angles
            to each other, and the others do not read along them.
    """

    def __init__(self, learned: Dictionary, cost: float, steps: int, kept: int = 0) -> None:
        names = ("encoder", "encoder_bias", "decoder", "decoder_bias")
        self.learned = learned
        self.cost = cost
        self.steps = steps
        self.done = 0
        self.parts = {name: getattr(learned, name).requires_grad_() for name in names}
        self.adam = torch.optim.Adam(self.parts.values(), lr=RATE / learned.decoder.shape[1] ** 0.5)
        self.rate = torch.optim.lr_scheduler.LambdaLR(
            self.adam, lambda step: min(1.0, (steps - step) / (FALLING * steps))
        )
        self.own = learned.decoder[:kept].detach().clone()
        # for how many steps each feature was active nowhere
        self.idle = torch.zeros(len(learned.encoder))
        self.idle[:kept] = -torch.inf

    def step(self, x: Tensor, wanted: Tensor, draw: torch.Generator) -> tuple[float, float]:
        """One step along a batch of vectors `x` and those `wanted` of them. Returns the share of
        these that is missed, and how many features are active.
        """
        active = self.learned.encode(x)
        missed = wanted - self.learned.decode(active)
        error = missed.square().mean()
        loss = error + self.cost * active.sum(-1).mean() / x.shape[1] ** 0.5
        for value, gradient in zip(
            self.parts.values(), torch.autograd.grad(loss, [*self.parts.values()]), strict=True
        ):
            value.grad = gradient
        self.adam.step()
        self.rate.step()
        with torch.no_grad():
            self.parts["decoder"].copy_(F.normalize(self.parts["decoder"], dim=-1))
            self._keep_own()
            self.idle = torch.where(active.any(0), self.idle.clamp(max=0), self.idle + 1)
            if self.done < REVIVED * self.steps:
                self._revive(x, wanted, missed, draw)
        self.done += 1
        return float(error.detach()), float((active > 0).sum(-1).float().mean())

    def _keep_own(self) -> None:
        """Bring the kept features back, and let the others read at right angles to them."""
        kept = len(self.own)
        if not kept:
            return
        encoder = self.parts["encoder"]
        encoder.sub_((encoder @ self.own.T) @ self.own)
        encoder[:kept] = self.own
        self.parts["decoder"][:kept] = self.own
        self.parts["encoder_bias"][:kept] = 0

    def _revive(self, x: Tensor, wanted: Tensor, missed: Tensor, draw: torch.Generator) -> None:
        """Let dead features begin again as some of the vectors [tokens, d_model], rather those of
        which more is missed.
        """
        dead = (self.idle >= PATIENCE).nonzero()[:, 0]
        if not len(dead) or not missed.any():
            return
        tokens = torch.multinomial(
            missed.square().sum(-1), len(dead), replacement=True, generator=draw
        )
        rows = F.normalize(wanted[tokens] - self.parts["decoder_bias"], dim=-1)
        is_stream = not self.learned.is_transcoder
        for name, fresh in (
            ("encoder", rows if is_stream else F.normalize(x[tokens], dim=-1)),
            ("encoder_bias", torch.zeros(len(dead))),
            ("decoder", rows),
        ):
            value = self.parts[name]
            value[dead] = fresh
            for moment in ("exp_avg", "exp_avg_sq"):
                self.adam.state[value][moment][dead] = 0
        self.idle[dead] = 0
