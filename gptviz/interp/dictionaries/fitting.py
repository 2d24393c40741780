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

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.machine import progress
from gptviz.machine.cores import sharing
from gptviz.machine.memory import FLOAT32, MOST_OF_MEMORY, in_bytes, room, way_out
from gptviz.model import Config, Transformer
from gptviz.train import optimisers

from ..changing.ablation import NOT_COUNTED, Rows
from ..trace import run
from .dictionary import Dictionary, Target, taps_of

FittedKind = Literal["topk", "relu"]
KINDS: tuple[FittedKind, ...] = get_args(FittedKind)
# The numbers of a dictionary that are fitted.
PARTS = ("encoder", "encoder_bias", "decoder", "decoder_bias")
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


def check_block(config: Config, block: int, target: Target) -> None:
    """Refuse a model that is no decoder, has no such block, or has no MLP in it, with a
    ValueError.
    """
    if config.kind != "decoder" or not 0 <= block < config.n_layer:
        raise ValueError(
            "a dictionary reads the stream after a block of a decoder; this model has "
            f"{config.n_layer}"
        )
    if target == "mlp" and not config.mlp_size:
        raise ValueError("the blocks of this model have no MLP whose output could be given back")


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
    check_block(config, block, target)
    taps = list(dict.fromkeys(taps_of(block, target)))
    most = min(MOST_VECTORS, MOST_BYTES // (FLOAT32 * config.d_model * len(taps)))
    found = [torch.empty(most, config.d_model) for _ in taps]
    count = 0
    for some in rows:
        with progress.part(count, most, some.reading.ids.numel(), step="token"):
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


def effort_of_fit(d_model: int, size: int, steps: int) -> float:
    """About how many multiplications it takes to fit a dictionary of `size` features: both its
    matrices, forwards and for two gradients each.
    """
    return 3.0 * 2 * d_model * size * BATCH * steps


def check_fit(d_model: int, size: int, kind: FittedKind, k: int) -> None:
    """Refuse features that cannot be fitted to vectors of `d_model` numbers with a ValueError:
    fewer than are active, or more than there is memory for.
    """
    if kind not in KINDS or not 1 <= (k if kind == "topk" else 1) <= size:
        raise ValueError(
            f"there is no dictionary of {size:,} features ({kind}) with {k} active: choose 1 of "
            "them at least"
        )
    # Both of its matrices, and for each of their numbers a gradient and two that Adam keeps.
    needed = 2 * 4 * FLOAT32 * size * d_model
    if needed > MOST_OF_MEMORY * (free := room(needed)):
        raise ValueError(
            f"a dictionary of {size:,} features takes {in_bytes(needed)} while it is fitted, and "
            f"{in_bytes(free)} is free: {way_out()}, or choose fewer features"
        )


@dataclass(frozen=True)
class FitStep:
    """A step of a fit was taken."""

    step: int  #: the number of steps taken so far
    progress: float  #: the share of the fit that is done, from 0 to 1
    error: float  #: the share of the variance of the step's vectors that the features miss
    active: float  #: how many features are active at a token
    seconds: float  #: the time that the fit has taken so far
    seconds_left: float  #: the time that the rest is expected to take

    @property
    def words(self) -> str:
        """How good the features are at it."""
        return f"{1 - self.error:.1%} explained, {self.active:.1f} active at a token"


class Fit:
    """The fit of a dictionary: to iterate over it takes its steps. One that is restored from the
    state of another goes on exactly as that would have.

    Args:
        vectors: of the stream after a block, [tokens, d_model], or what the block's MLP reads.
        block: the number of the block.
        size: the number of features.
        kind: which activations count, "topk" or "relu".
        k: how many features of a "topk" dictionary are active at a token.
        cost: what the sum of the activations of a "relu" dictionary costs beside the error.
        steps: each reads `BATCH` of the vectors, drawn at random.
        seed: decides where the features begin, and which vectors a step reads.
        given: what an MLP gives where it reads the vectors, [tokens, d_model].

    Raises:
        ValueError: there are no such features, or all vectors are equal or not all numbers; from a
            step: the error is no longer a number.
    """

    def __init__(
        self,
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
    ) -> None:
        check_fit(vectors.shape[1], size, kind, k)
        is_massive = _massive(vectors if given is None else given)
        self.read = _Centred(vectors[~is_massive])
        self.wanted = self.read if given is None else _Centred(given[~is_massive])
        # the massive vectors of a stream have features of their own: they stay as they are, and
        # the others do not read along them
        massive = vectors[is_massive] if given is None else vectors[:0]
        self.own = _directions(massive - self.read.center)[:size]
        self.draw = torch.Generator().manual_seed(seed)
        begin = torch.randint(len(self.read.vectors), (size,), generator=self.draw)
        rows = self.read.some(begin)
        rows = F.normalize(rows + 1e-3 * torch.randn(rows.shape, generator=self.draw), dim=-1)
        rows[: len(self.own)] = self.own
        self.learned = Dictionary(
            block,
            rows.clone(),
            torch.zeros(size),
            rows if given is None else F.normalize(self.wanted.some(begin) + 1e-6, dim=-1),
            torch.zeros_like(self.read.center),
            torch.zeros(size),
            k if kind == "topk" else 0,
            target="stream" if given is None else "mlp",
        )
        self.cost = cost if kind == "relu" else 0.0
        self.steps = steps
        self.step = 0
        self.seconds = 0.0
        # the numbers that Adam changes in place
        self.parts = {name: getattr(self.learned, name).requires_grad_() for name in PARTS}
        self.adam = torch.optim.Adam(self.parts.values(), lr=0.0)
        # for how many steps each feature was active nowhere
        self.idle = torch.zeros(size)
        self.idle[: len(self.own)] = -torch.inf

    def __iter__(self) -> Iterator[FitStep]:
        count = len(self.read.vectors)
        with sharing() as share:
            while self.step < self.steps:
                begun = monotonic()
                share()
                some = torch.randint(count, (min(BATCH, count),), generator=self.draw)
                error, active = self.advance(self.read.some(some), self.wanted.some(some))
                if not math.isfinite(error):
                    raise ValueError(
                        f"the fit diverged: its error is no longer a number after {self.step:,} "
                        "steps; fit it with fewer features, or to other text"
                    )
                self.seconds += monotonic() - begun
                left = self.seconds / self.step * (self.steps - self.step)
                share_done = self.step / self.steps
                yield FitStep(self.step, share_done, error, active, self.seconds, left)

    def finish(self) -> Dictionary:
        """The dictionary after all steps."""
        for event in self:
            if event.step % STEPS == 0 or event.step == self.steps:
                progress.report(event.step, self.steps, "step", doing=event.words)
        return self.dictionary

    @property
    def dictionary(self) -> Dictionary:
        """The dictionary as it is now."""
        parts = {name: value.detach().clone() for name, value in self.parts.items()}
        wanted = self.wanted
        back = {
            "encoder_bias": wanted.scale * parts["encoder_bias"],
            "decoder_bias": wanted.center + wanted.scale * parts["decoder_bias"],
        }
        if self.learned.is_transcoder:
            # it reads what it is fitted to before that was brought to its mean and size
            encoder = parts["encoder"] * (wanted.scale / self.read.scale)
            bias = back["encoder_bias"] - encoder @ self.read.center
            back |= {"encoder": encoder, "encoder_bias": bias}
        return replace(self.learned, **parts | back, fitted_to=len(self.read.vectors))

    def state(self) -> dict[str, Tensor]:
        """All that the next step depends on beside the vectors: not copies, but the tensors in use."""
        parts = {f"part.{name}": value.detach() for name, value in self.parts.items()}
        memory = optimisers.tensors([self.adam]).items()
        counts = {
            "step": torch.tensor(self.step),
            "seconds": torch.tensor(self.seconds, dtype=torch.float64),
        }
        drawn = {"idle": self.idle, "draw": self.draw.get_state()}
        return parts | {f"adam.{name}": value for name, value in memory} | counts | drawn

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a `state` of `state()`; a ValueError if it is that of another fit."""
        expected = self.state()
        shapes = {name: value.shape for name, value in expected.items()}
        known = {name: value for name, value in state.items() if name in shapes}
        if {name: value.shape for name, value in known.items()} != shapes:
            raise ValueError("the saved state is of another dictionary")
        step = state["step"].item()
        if not (isinstance(step, int) and 0 <= step <= self.steps):
            raise ValueError("the saved state counts no steps of this fit")
        memory = {
            name.removeprefix("adam."): value
            for name, value in state.items()
            if name.startswith("adam.")
        }
        if step:  # before the first step Adam has no state
            optimisers.restore([self.adam], memory)
        for name, value in self.parts.items():
            value.copy_(state[f"part.{name}"])
        self.idle = state["idle"].clone()
        self.draw.set_state(state["draw"])
        self.step = step
        self.seconds = float(state["seconds"])

    @torch.enable_grad()
    def advance(self, x: Tensor, wanted: Tensor) -> tuple[float, float]:
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
        falling = min(1.0, (self.steps - self.step) / (FALLING * self.steps))
        for group in self.adam.param_groups:
            group["lr"] = RATE / x.shape[1] ** 0.5 * falling
        self.adam.step()
        with torch.no_grad():
            self.parts["decoder"].copy_(F.normalize(self.parts["decoder"], dim=-1))
            self._keep_own()
            self.idle = torch.where(active.any(0), self.idle.clamp(max=0), self.idle + 1)
            if self.step < REVIVED * self.steps:
                self._revive(x, wanted, missed)
        self.step += 1
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

    def _revive(self, x: Tensor, wanted: Tensor, missed: Tensor) -> None:
        """Let dead features begin again as some of the vectors [tokens, d_model], rather those of
        which more is missed.
        """
        dead = (self.idle >= PATIENCE).nonzero()[:, 0]
        if not len(dead) or not missed.any():
            return
        tokens = torch.multinomial(
            missed.square().sum(-1), len(dead), replacement=True, generator=self.draw
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
