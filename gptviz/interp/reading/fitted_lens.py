"""Lenses that are fitted to a model: what the stream after a layer has become when it leaves the
last one, as an affine map.

The logit lens reads an early stream as if it were the last one. A fitted lens first brings it
there: x becomes A x + b, and the model's own head reads that. The Jacobian lens takes for A the
mean effect of a layer's stream on the last one (Gurnee, Sofroniew, Lindsey and others 2026); the
tuned lens takes the A and b with which the guess comes nearest to the model's own (Belrose and
others 2023).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.machine.cores import sharing
from gptviz.machine.memory import FLOAT32
from gptviz.model import IDENTITY, Config, Edit, Record, Transformer
from gptviz.model.costs.effort import n_parameters
from gptviz.settings.kinds import LensKind

from ..held_out import ENOUGH, beginnings, support
from ..trace import run
from .layers import layers

FITTED: tuple[LensKind, ...] = ("jacobian", "tuned")
KL = "KL to the model's guess, nats"
AGREES = "the first token is the model's"

# The most bytes of the maps, and of the streams that maps are fitted to.
MOST_BYTES = 2**29
# The most multiplications of one fit, and of measuring how good it is: on two cores some seconds
# for a small model, and some minutes for one of 135 million parameters. Within `FEWEST` and
# `MOST_TOKENS`, so many tokens are read.
WORK = 2e11
MOST_MEASURED = 1e11
FEWEST = 128
MOST_TOKENS = 8_192
# The tokens of a row over which Jacobians are computed, and how many at its beginning are left out:
# many models have a stream there that is unlike all others.
ROW = 64
LEFT_OUT = 16
# So many tokens are read at once for a Jacobian, copies where the text has fewer: each copy gives
# one row of the matrices, and weights of few bits are brought back once for all of them.
AT_ONCE = 512
# A map of the tuned lens is fitted in so many steps, by Adam with this rate, which falls to 0; each
# step reads so many tokens.
STEPS = 250
RATE = 3e-3
BATCH = 256
# With fewer steps a map begins as that of least squares to the last stream; how much of the mean
# square of the stream holds it near the one that changes nothing.
RIDGE = 1e-3
FEWEST_STEPS = 30
# Of more layers none is named in a sentence.
MOST_NAMED = 4
# Steps of fewer multiplications are computed by one thread: where cores are busy, several wait for
# each other ten times as long.
SMALL = 1e9


@dataclass(frozen=True)
class FittedLens:
    """For some layers, or all, the map from the stream there to that of the last one; the last
    layer's own changes nothing.
    """

    at: tuple[int, ...]  #: [row], which of the model's `layers` have a map
    matrices: Tensor  #: [row, d_model, d_model], A
    biases: Tensor  #: [row, d_model], b
    #: [lens, measure, row], how near the guesses after these layers are to the model's own over
    #: text that it was not fitted to: first of the logit lens, then of this one; NaN until it is
    #: measured
    measured: Float64Array
    name: str = ""  #: the name under which it is kept
    fitted_to: int = 0  #: the number of tokens that it was fitted to; 0 if nobody knows
    per_number: float = math.nan  #: how many of them there are for each fitted number

    def read_stream(self, stream: Tensor, at: Sequence[int]) -> Tensor:
        """What the `stream` [layer, T, d_model] after the layers `at` has become after the last
        one.
        """
        chosen = [self.at.index(layer) for layer in at]
        return torch.baddbmm(self.biases[chosen][:, None], stream, self.matrices[chosen].mT)

    @property
    def support(self) -> str:
        """To how many tokens it was fitted, in a sentence, which warns where they are few; empty if
        nobody knows.
        """
        if self.fitted_to:
            return support(self.fitted_to, self.per_number)
        return ""

    def compare_lenses(self, model: Transformer, kind: LensKind) -> str:
        """Whether the guesses of this lens are nearer to the model's own than those of the logit
        lens, in a sentence; over text that it was not fitted to.
        """
        every = layers(model.config)
        plain, fitted = self.measured[:, 0, :-1]
        worse = [every[self.at[row]].short for row in np.flatnonzero(fitted > plain)]
        if kind == "tuned":
            name = f"{kind} lens"
        else:
            name = f"{kind.capitalize()} lens"
        if not worse:
            return f"After every layer the {name} is nearer to the model's guess."
        places = f"{len(worse)} of {len(plain)} layers"
        if len(worse) == len(plain):
            places = "every layer"
        elif len(worse) <= MOST_NAMED:
            places += f" ({', '.join(worse)})"
        return (
            f"After {places} the {name} is further from the model's guess than the logit "
            "lens: there the logit lens shows it better."
        )

    def labelled(self, model: Transformer, kind: LensKind) -> LabelledArray:
        """The numbers `measured`, with the names of lenses, measures and layers."""
        every = layers(model.config)
        axes = (
            Axis("lens", ("logit", kind)),
            Axis("measure", (KL, AGREES)),
            Axis("layer", tuple(every[row].name for row in self.at)),
        )
        return LabelledArray(self.measured, axes, "nats, and share of tokens")

    def measure_over(self, model: Transformer, rows: Sequence[Tensor]) -> FittedLens:
        """The same lens, measured over the tokens of `rows` [T]."""
        return replace(self, measured=_measure_lens(model, self, rows))


def fit(model: Transformer, rows: Sequence[Tensor], kind: LensKind) -> FittedLens:
    """Fit a lens to the first four fifths of the tokens of `rows` [T], and measure it on the
    others. A ValueError if the kind is "logit", which needs no fit, the model is no decoder or has
    no blocks, there are fewer than five tokens, or its maps take more than `MOST_BYTES`.
    """
    config = model.config
    if kind not in FITTED:
        raise ValueError(f"there is no lens {kind!r} to fit: choose {' or '.join(FITTED)}")
    if config.kind != "decoder" or not config.n_layer:
        raise ValueError(
            "a lens is fitted to a decoder with blocks: read this model with the logit lens"
        )
    if len(layers(config)) * config.d_model**2 * FLOAT32 > MOST_BYTES:
        raise ValueError(
            f"the maps of a lens for this model take more than {MOST_BYTES // 2**20} MB: use the "
            "logit lens"
        )
    fitted_to, held_out = _split(rows)
    pieces = _pieces(model, fitted_to, kind)
    with progress.part(0, 20, 19):
        matrices, biases = (
            jacobian(model, pieces) if kind == "jacobian" else fit_tuned(model, pieces)
        )
    tokens = sum(map(len, pieces))
    lens = FittedLens(
        tuple(range(len(matrices))),
        matrices,
        biases,
        np.zeros(()),
        fitted_to=tokens,
        # Each token has a whole Jacobian, but only one vector that a map should lead to: each
        # number of that is a sum with a weight for each number of the stream, and a bias.
        per_number=tokens if kind == "jacobian" else tokens / (config.d_model + 1),
    )
    with progress.part(19, 20, doing="measuring it"):
        return lens.measure_over(model, held_out)


def _split(rows: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The first four fifths of the tokens of all distinct rows, and the others; a row on the border
    is cut. A ValueError if no other row is new: more than the beginning of one before.
    """
    distinct = list({tuple(row.tolist()): row for row in rows}.values())
    end = sum(map(len, distinct)) * 4 // 5
    first = []
    rest = []
    for row in distinct:
        first.append(row[:end])
        rest.append(row[end:])
        end = max(end - len(row), 0)
    first, rest = ([row for row in some if len(row)] for some in (first, rest))
    known = beginnings(row.tolist() for row in (*first, *rest))
    read = {number for row in known[: len(first)] for number in row}
    rest = [
        row for row, some in zip(rest, known[len(first) :], strict=True) if some[-1] not in read
    ]
    if not first or not rest:
        raise ValueError(
            "the text is too short to fit a lens to it, or repeats itself: give at least five "
            "tokens, the last of which are new"
        )
    return first, rest


def _pieces(model: Transformer, rows: Sequence[Tensor], kind: LensKind) -> list[Tensor]:
    """What a lens of this kind reads of the rows that it is fitted to."""
    config = model.config
    if kind == "jacobian":
        return _first_tokens(rows, _affordable_tokens(config.d_model * n_parameters(model)), ROW)
    enough = int(ENOUGH * (config.d_model + 1))
    tokens = min(max(_affordable_tokens(n_parameters(model)), enough), MOST_TOKENS)
    return _first_tokens(rows, tokens, config.context_length)


def _first_tokens(rows: Sequence[Tensor], count: int, longest: int) -> list[Tensor]:
    """The first `count` tokens of the rows, in pieces of at most `longest`."""
    pieces = []
    for piece in (piece for row in rows for piece in row.split(longest)):
        if count <= 0:
            break
        pieces.append(piece[:count])
        count -= len(piece)
    return pieces


def _affordable_tokens(each: float, work: float = WORK) -> int:
    """How many tokens are read where each takes so many multiplications."""
    return int(min(max(work / each, FEWEST), MOST_TOKENS))


def jacobian(model: Transformer, pieces: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The mean effect of the stream after each layer on the last one, [layer, d_model, d_model],
    and biases of 0.

    Of a token it is the sum of the effects on the last stream at its own and all later places, and
    the mean is over the tokens. One product of a vector and the Jacobian for each number of the
    last stream gives a row of the matrices of all layers.
    """
    config = model.config
    device = model.embed.weight.device
    # [B, T]; what fills a row is read by no token before it
    ids = pad_sequence(list(pieces), batch_first=True).to(device)
    there = pad_sequence([torch.ones(len(piece)) for piece in pieces], batch_first=True).to(device)
    counted = there.clone()
    counted[:, : min(LEFT_OUT, ids.shape[1] // 4)] = 0
    weights = (counted / counted.sum()).flatten()
    copies = max(1, min(config.d_model, AT_ONCE // ids.numel()))
    taps = [layer.tap for layer in layers(config)]
    record = Record(taps)
    with torch.enable_grad(), sharing() as share:
        with progress.part(0, 100, doing="reading the text"):
            model(
                ids.repeat(copies, 1),
                tap=Edit({taps[0]: lambda x: x.detach().requires_grad_()}, record),
                logits_at=slice(-1, None),
            )
        streams = [record.values[tap] for tap in taps]
        maps = streams[-1].new_zeros(len(taps), config.d_model, config.d_model)
        for rows in torch.arange(config.d_model).split(copies):
            share()
            # [copy, B, T, d_model]: each copy asks for another number of the last stream
            asked = streams[-1].new_zeros(copies, *ids.shape, config.d_model)
            for copy, row in enumerate(rows):
                asked[copy, ..., row] = there
            effects = torch.autograd.grad(
                streams[-1], streams, asked.flatten(0, 1), retain_graph=True
            )
            for matrix, effect in zip(maps, effects, strict=True):
                of_copies = effect.unflatten(0, asked.shape[:2]).flatten(1, 2)
                matrix[rows] = (weights.to(effect) @ of_copies)[: len(rows)]
            with progress.part(1, 100, 99):
                progress.report(int(rows[-1]) + 1, config.d_model, "direction")
    # exactly: where the first tokens are left out, a mean of ones may round
    maps[-1] = torch.eye(config.d_model)
    return maps, maps.new_zeros(len(taps), config.d_model)


def fit_tuned(model: Transformer, pieces: Sequence[Tensor], seed: int = 0) -> tuple[Tensor, Tensor]:
    """For each layer the matrix and the bias with which the head's guess has the least KL
    divergence from the model's own, [layer, d_model, d_model] and [layer, d_model]. They begin as
    the identity and 0, or, where a large model allows only few steps, as the map that leads nearest
    to the last stream; `seed` decides which tokens each step reads.
    """
    config = model.config
    device = model.embed.weight.device
    n_layer = len(layers(config))
    tokens = sum(map(len, pieces))
    matrices = torch.eye(config.d_model, device=device).repeat(n_layer, 1, 1)
    biases = torch.zeros(n_layer, config.d_model, device=device)
    cost = _cost(config)
    batch, steps = _batch_and_steps(config, tokens)
    draw = torch.Generator().manual_seed(seed)
    chosen = [torch.randperm(tokens, generator=draw)[:batch].to(device) for _ in range(steps)]
    # The streams of so many layers are kept at a time, beside the last one: the text is read again
    # for the next ones.
    some = max(1, MOST_BYTES // (tokens * config.d_model * FLOAT32) - 1)
    with sharing(1 if batch * cost < SMALL else None) as share:
        for first in range(0, n_layer - 1, some):
            group = range(first, min(first + some, n_layer - 1))
            with progress.part(first, n_layer, doing="reading the text"):
                *streams, last = _streams(model, pieces, [*group, n_layer - 1])
            for layer, stream in zip(group, streams, strict=True):
                share()
                with progress.part(layer + 1, n_layer, step="layer"):
                    # with few steps the beginning decides
                    if steps < STEPS:
                        matrices[layer], biases[layer] = _nearest_map(stream, last)
                    _tune(model, stream, last, matrices[layer], biases[layer], chosen)
    return matrices, biases


def effort_of_fit(model: Transformer, kind: LensKind) -> float:
    """About how many multiplications it takes to fit a lens of this kind to text enough."""
    if kind != "tuned":
        return WORK
    batch, steps = _batch_and_steps(model.config, MOST_TOKENS)
    return float(len(layers(model.config)) * steps * batch * _cost(model.config))


def _cost(config: Config) -> int:
    """The multiplications for each token of a step that fits the map of a layer."""
    return 6 * config.d_model * (config.d_model + config.vocab_size)


def _batch_and_steps(config: Config, tokens: int) -> tuple[int, int]:
    """How many tokens a step of a tuned lens reads, and how many steps each layer has."""
    cost = len(layers(config)) * _cost(config)
    batch = min(BATCH, tokens, max(32, int(20 * WORK / (STEPS * cost))))
    steps = int(min(STEPS, max(FEWEST_STEPS, 20 * WORK / (batch * cost))))
    return batch, steps


def _nearest_map(stream: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix [d_model, d_model] and the bias [d_model] that lead from vectors of a stream
    [tokens, d_model] nearest to those of the last one, in the mean square. Where tokens are few,
    they stay near those that change nothing (ridge regression of the difference).
    """
    # MPS has no float64
    before, after = (each.double().cpu() for each in (stream, last))
    middle = before.mean(0)
    end = after.mean(0)
    x = before - middle
    y = after - end
    size = x.shape[1]
    held = RIDGE * x.square().sum() / size * torch.eye(size, dtype=x.dtype)
    added = torch.linalg.lstsq(x.T @ x + held, x.T @ (y - x)).solution.T
    matrix = added + torch.eye(size, dtype=x.dtype)
    return matrix.to(stream), (end - matrix @ middle).to(stream)


def _tune(
    model: Transformer,
    stream: Tensor,
    last: Tensor,
    matrix: Tensor,
    bias: Tensor,
    chosen: Sequence[Tensor],
) -> None:
    """Fit the map of one layer in place, a step for each of the `chosen` sets of tokens."""
    learned = [matrix.clone().requires_grad_(), bias.clone().requires_grad_()]
    # of fewer steps each is smaller
    adam = torch.optim.Adam(learned, lr=RATE * len(chosen) / STEPS)
    falling = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, len(chosen))
    for step, some in enumerate(chosen):
        with torch.no_grad():
            own = guesses(model, last[some])
        with torch.enable_grad():
            loss = _kl(
                own, guesses(model, torch.addmm(learned[1], stream[some], learned[0].T))
            ).mean()
            for value, gradient in zip(learned, torch.autograd.grad(loss, learned), strict=True):
                value.grad = gradient
        adam.step()
        falling.step()
        progress.report(step + 1, len(chosen), "step")
    matrix.copy_(learned[0].detach())
    bias.copy_(learned[1].detach())


def guesses(model: Transformer, stream: Tensor) -> Tensor:
    """The logarithms of the probabilities [n, vocab_size] that the head reads from vectors of the
    stream [n, d_model].
    """
    logits: Tensor = model.head(stream[None], None, slice(None), IDENTITY)[0]
    return logits.float().log_softmax(-1)


def _kl(own: Tensor, other: Tensor) -> Tensor:
    """The KL divergence of other guesses from the model's own, in nats: [n]."""
    return (own.exp() * (own - other)).sum(-1)


def _streams(model: Transformer, rows: Sequence[Tensor], at: Sequence[int]) -> Tensor:
    """The stream after the layers `at` over some rows, one after the other: [layer, tokens,
    d_model].
    """
    every = layers(model.config)
    taps = [every[layer].tap for layer in at]
    device = model.embed.weight.device
    traces = (run(model, row[None].to(device), taps, logits_at=slice(-1, None)) for row in rows)
    return torch.cat([torch.stack([trace[tap][0] for tap in taps]) for trace in traces], 1)


@torch.no_grad()
def _measure_lens(model: Transformer, lens: FittedLens, rows: Sequence[Tensor]) -> Float64Array:
    """How near the guesses of the logit lens and of `lens` are to the model's own where there are
    maps: [lens, measure, row].
    """
    config = model.config
    cost = n_parameters(model) + 2 * len(layers(config)) * config.d_model * config.vocab_size
    read = _first_tokens(
        rows, min(_affordable_tokens(cost, MOST_MEASURED), 1_024), config.context_length
    )
    streams = _streams(model, read, lens.at)
    distances = np.zeros((2, 2, len(streams)))
    for some in streams.split(BATCH, 1):
        own = guesses(model, some[-1])
        weight = some.shape[1] / streams.shape[1]
        for which, read in enumerate((some, lens.read_stream(some, lens.at))):
            for layer, vectors in enumerate(read):
                other = guesses(model, vectors)
                distances[which, 0, layer] += weight * float(_kl(own, other).mean())
                distances[which, 1, layer] += weight * float(
                    (own.argmax(-1) == other.argmax(-1)).float().mean()
                )
    return distances
