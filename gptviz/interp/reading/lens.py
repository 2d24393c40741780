"""The logit lens: what the model would guess if it stopped after a layer.

The model's own head (final norm, unembedding, cap) reads the residual stream at every layer
(nostalgebraist 2020). The head was trained to read the end of the last block: there it gives the
model's own logits. A lens that was fitted to the model brings an earlier stream to where the last
one is, before the head reads it (`fitted_lens`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float32Array, LabelledArray
from gptviz.machine import progress
from gptviz.model import IDENTITY, Config, Transformer
from gptviz.model.parts.residuals import RESIDUALS

from .fitted_lens import FittedLens
from .layers import (
    Layer,
    ends_of_blocks,
    is_parallel,
    layers,
    of_whole_blocks,
    stream_of,
    trace_stream,
)

Ids = npt.NDArray[np.int64]

# How many of the likeliest tokens are kept, and followed through all layers; and of those that led
# after a layer.
TOP = 5
MOST_FOLLOWED = 20
MOST_LED = 4
# At most this many logits are in memory at a time: 28 MB, which the allocator takes from freed
# memory, not from the system.
LOGITS_AT_ONCE = 7_000_000
# Some of these rows at a time are made into probabilities, this many logits for each of the threads
# that compute: they, and what is made of them, stay in the cache of a processor's core.
CACHED = 2**17
# The number of tokens in a group where the largest logits of many are looked for.
GROUP = 64
# So far below the largest a logit counts for nothing. With the powers of e of smaller ones, which
# are no normal numbers, a processor takes eight times as long.
LEAST_LOGIT = -80.0
# The last row is compared with the model's own logits at the last positions, as many as have this
# many logits.
MOST_COMPARED = 2**26


@dataclass(frozen=True)
class Lens:
    """The guesses that the head reads from the stream after every layer."""

    layers: tuple[Layer, ...]  #: the rows
    ids: tuple[int, ...]  #: [T], the tokens that the layers read
    positions: range  #: [T], where in the text these stand
    true: Ids  #: [T], the token that really follows each of them; -1 where that is not known
    top: Ids  #: [layer, T, k], the ids of the likeliest tokens, the likeliest first
    probability: Float32Array  #: [layer, T, k], their probabilities
    entropy: Float32Array  #: [layer, T], of the whole guess, in nats
    #: [layer, T], the place of the true token among all, 1 being the likeliest; 0 where it is not
    #: known
    rank: Ids
    #: [layer, T], the probability of the true token; NaN where it is not known
    true_probability: Float32Array
    #: [layer, T], the probability of the likeliest token of the last layer
    final_probability: Float32Array
    #: the largest difference between the last row and the model's own logits: 0 except for rounding
    final_error: float
    stream: Tensor  #: [layer, T, d_model], what the head read


@torch.inference_mode()
def lens(
    model: Transformer,
    ids: Sequence[int],
    source: Sequence[int] | None = None,
    *,
    following: int | None = None,
    last: int | None = None,
    top: int = TOP,
    blocks_only: bool = False,
    fitted: FittedLens | None = None,
) -> Lens:
    """Read the stream of `model` over `ids` after every layer.

    Never more than some millions of logits are in memory.

    Args:
        ids: the tokens that the model reads; in an encoder–decoder, those that its decoder reads.
        source: the tokens that the encoder of an encoder–decoder reads.
        following: the token that follows the last one, where it is known.
        last: how many positions at the end of the text are read; all unless given.
        top: how many of the likeliest tokens are kept of each layer and position.
        blocks_only: leave out the layers within a block: the rows are the embedding and the end of
            each block.
        fitted: a lens that was fitted to this model, whose layers are the rows; None for the logit
            lens.

    Raises:
        ValueError: the model is a classifier, there are no ids, or more than its context holds.
    """
    # one pass, with the logits that the last layer is compared with
    config = model.config
    count = min(len(ids), last or len(ids))
    compared = min(count, max(1, MOST_COMPARED // config.vocab_size))
    at = slice(len(ids) - compared, None)
    with progress.part(0, 2):
        trace = trace_stream(model, ids, source, also=["logits"], logits_at=at, last=count)

    # the vectors that are read, after the map of the lens
    every = layers(config)
    if blocks_only:
        read = ends_of_blocks(every)
    else:
        read = list(range(len(every)))
    if fitted is not None:
        read = [row for row in read if row in fitted.at]
    stream = stream_of(trace, config)[read]  # [layer, count, d_model]
    if fitted is not None:
        stream = fitted.read_stream(stream, read)
    true = np.array(
        [*ids, -1 if following is None else following][len(ids) - count + 1 :], np.int64
    )

    # their logits, some at a time
    reading = _LogitSummary(len(stream), count, min(top, config.vocab_size))
    flat = stream.flatten(0, 1)  # [layer · count, d_model]
    targets = torch.from_numpy(np.tile(true, len(stream))).to(stream.device)
    # the rows from `end` on are to be the model's own logits
    error = 0.0
    end = len(flat) - compared
    at_once = max(1, LOGITS_AT_ONCE // config.vocab_size)
    # The last layer comes first: the others need its guess.
    for done, start in enumerate(reversed(range(0, len(flat), at_once)), 1):
        logits = _logits(model, flat[start : start + at_once])
        reading.add(start, logits, targets[start : start + at_once])
        same = slice(max(end - start, 0), None)
        if len(mine := logits[same]):
            first = max(start - end, 0)
            error = max(
                error,
                float((mine - trace["logits"][0, first : first + len(mine)].float()).abs().max()),
            )
        with progress.part(1, 2):
            progress.report(min(done * at_once, len(flat)), len(flat), "cell")
    named = (
        dict(zip(ends_of_blocks(every), of_whole_blocks(every), strict=True))
        if blocks_only
        else every
    )
    return Lens(
        tuple(named[row] for row in read),
        tuple(ids[-count:]),
        range(len(ids) - count, len(ids)),
        true,
        top=reading.by_layer(reading.top),
        probability=reading.by_layer(reading.most),
        entropy=reading.by_layer(reading.entropy),
        rank=reading.by_layer(reading.rank),
        true_probability=reading.by_layer(reading.true_probability),
        final_probability=reading.by_layer(reading.final_probability),
        final_error=error,
        stream=stream,
    )


def _logits(model: Transformer, stream: Tensor) -> Tensor:
    """The logits [n, vocab_size] that the model's head gives vectors of its stream [n, d_model]."""
    logits: Tensor = model.head(stream[None], None, slice(None), IDENTITY)[0]
    return logits.float()


def _maxima(logits: Tensor, count: int) -> Tensor:
    """The maxima [n, group] of groups of tokens, for `_likeliest_tokens` to find the `count`
    largest `logits` [n, vocab_size].

    Token i is in group i modulo their number. In a small vocabulary every token is a group.
    """
    groups = logits.shape[1] // GROUP
    if groups < 2 * count:
        return logits
    return logits[:, : groups * GROUP].unflatten(1, (GROUP, groups)).amax(1)


def _likeliest_tokens(logits: Tensor, maxima: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of `logits` [n, vocab_size] and their tokens, [n, count] each, the
    largest first.

    They are looked for in the `count` groups with the largest `maxima`, which is several times as
    quick as everywhere.
    """
    groups = maxima.shape[1]
    device = logits.device
    within = torch.arange(logits.shape[1] // groups, device=device) * groups
    rest = torch.arange(len(within) * groups, logits.shape[1], device=device).expand(
        len(logits), -1
    )
    chosen = maxima.topk(count).indices  # [n, count]
    # [n, count · tokens of a group + rest]
    tokens = torch.cat(((chosen[:, :, None] + within).flatten(1), rest), dim=1)
    best = logits.gather(1, tokens).topk(count)
    return best.values, tokens.gather(1, best.indices)


class _LogitSummary:
    """The values that are kept of the logits of all rows of a lens of `n_layer` layers and `count`
    positions, with the `top` likeliest tokens of each; a few rows come at a time.
    """

    def __init__(self, n_layer: int, count: int, top: int) -> None:
        self.shape = (n_layer, count)
        rows = n_layer * count
        self.top = torch.zeros(rows, top, dtype=torch.int64)
        self.most = torch.zeros(rows, top)
        self.entropy = torch.zeros(rows)
        self.true_probability = torch.full((rows,), torch.nan)
        self.rank = torch.zeros(rows, dtype=torch.int64)
        self.final_probability = torch.zeros(rows)

    def add(self, start: int, logits: Tensor, targets: Tensor) -> None:
        """The `logits` [n, vocab_size] of the rows from `start` on, and their true tokens, -1 if
        unknown; later layers first.
        """
        count = self.top.shape[1]
        at = slice(start, start + len(logits))
        cached = CACHED * torch.get_num_threads() // logits.shape[1]
        if logits.device.type == "cpu":
            at_once = max(1, cached)
        else:
            at_once = len(logits)
        maxima = list[Tensor]()
        sums = list[Tensor]()
        mine = logits.gather(1, targets.clamp(min=0)[:, None])  # [n, 1]
        below, weights = (torch.empty_like(logits[:at_once]) for _ in range(2))
        for some, own in zip(logits.split(at_once), mine.split(at_once), strict=True):
            maxima.append(_maxima(some, count))
            sums.append(_sums(some, own, below[: len(some)], weights[: len(some)]))
        largest, whole, weighed, above = torch.cat(sums, dim=1)  # [n] each
        best, tokens = _likeliest_tokens(logits, torch.cat(maxima), count)
        is_known = targets >= 0
        self.top[at] = tokens.cpu()
        self.most[at] = ((best - largest[:, None]).exp() / whole[:, None]).cpu()
        self.entropy[at] = (whole.log() - weighed / whole).cpu()
        self.rank[at] = torch.where(is_known, above.long() + 1, 0).cpu()
        chance = (mine[:, 0] - largest).exp() / whole
        self.true_probability[at] = torch.where(is_known, chance, torch.nan).cpu()
        # [n, 1]
        guessed = self.top[
            torch.arange(start, start + len(logits)) % self.shape[1] - self.shape[1], :1
        ]
        final = logits.gather(1, guessed.to(logits.device))[:, 0]
        self.final_probability[at] = ((final - largest).exp() / whole).cpu()

    def by_layer(self, values: Tensor) -> npt.NDArray[Any]:
        """The values that were kept of every row, as [layer, T, …]."""
        return values.unflatten(0, self.shape).numpy()


def _sums(logits: Tensor, mine: Tensor, below: Tensor, weights: Tensor) -> Tensor:
    """Four numbers of each row of `logits` [n, vocab_size], [4, n].

    They are the largest logit m; the sum of e^(logit − m) over all tokens; that of (logit − m) ·
    e^(logit − m); and how many logits are larger than `mine`, a logit of each row [n, 1]. `below`
    and `weights` are room for as many numbers as `logits` has, which are written over.
    """
    largest = logits.amax(-1, keepdim=True)
    torch.sub(logits, largest, out=below).clamp_(min=LEAST_LOGIT)  # at most 0
    torch.exp(below, out=weights)
    whole = weights.sum(-1)
    weighed = below.mul_(weights).sum(-1)
    above = torch.gt(logits, mine, out=weights).sum(-1)
    return torch.stack((largest[:, 0], whole, weighed, above))


@dataclass(frozen=True)
class Course:
    """How tokens rose and fell from layer to layer."""

    #: the token that was asked for, if any, the first of `leaders`, then the others in the order of
    #: their probability in a cell
    ids: tuple[int, ...]
    probability: LabelledArray  #: [token, layer]


@torch.inference_mode()
def course(
    model: Transformer,
    seen: Lens,
    layer: int,
    index: int,
    labels: Sequence[str],
    count: int = MOST_FOLLOWED,
    follow: int | None = None,
) -> Course:
    """The `count` likeliest tokens after `layer` at one place of a text, and `MOST_LED` of those
    that were the likeliest after some layer, followed through all layers.

    Args:
        index: the place among `seen.positions`.
        labels: the visible forms of all tokens.
        follow: another token that is followed too.
    """
    shares = _logits(model, seen.stream[:, index]).double().softmax(-1).cpu()  # [layer, vocab_size]
    likeliest = shares[layer].topk(min(count, shares.shape[-1])).indices.tolist()
    asked = [] if follow is None else [follow]
    ids = list(dict.fromkeys([*asked, *leaders(seen, index)[:MOST_LED], *likeliest]))
    axes = (
        Axis("token", tuple(labels[i] for i in ids)),
        Axis("layer", tuple(one.name for one in seen.layers)),
    )
    return Course(
        tuple(ids), LabelledArray(shares[:, ids].T.contiguous().numpy(), axes, "probability")
    )


def leaders(seen: Lens, index: int) -> list[int]:
    """The tokens that are the likeliest after some layer at one place: the final guess, then those
    that are so most often.
    """
    first = seen.top[:, index, 0].tolist()
    times = Counter(reversed(first))  # of those that led equally often the latest is first
    return sorted(times, key=lambda token: (token != first[-1], -times[token]))


def settled_layers(seen: Lens) -> Ids:
    """For each position the first layer from which on the likeliest token is that of the last
    layer: [T].
    """
    first = seen.top[:, :, 0]  # [layer, T]
    differs = first != first[-1]
    return np.where(differs.any(0), len(first) - differs[::-1].argmax(0), 0)


def applied_norm(config: Config) -> str:
    """The norm that the lens applies to the stream of a model of this `config`, and what that
    means, in words.
    """
    residual = RESIDUALS[config.residual]
    if config.logit_cap is not None:
        cap = ", with the cap on its logits"
    else:
        cap = ""
    if config.final_norm:
        norm = f"the model's own final norm and its unembedding{cap}"
    else:
        norm = f"the model's unembedding{cap}"
    said = [f"Every row is read through {norm}."]
    if not config.final_norm:
        if residual.steps[-1] == "norm":
            said.append(
                "There is no final norm: every sublayer ends in a norm, which every row but the "
                "first has passed."
            )
        else:
            said.append("This model has no norm before its unembedding, so none is put there.")
    if "add" not in residual.steps and config.n_layer:
        said.append(
            "It has no residual connections: every sublayer replaces the stream, so that earlier "
            "rows were never meant for the "
            "unembedding."
        )
    if is_parallel(config):
        said.append(
            "Attention and MLP of a block read the same stream and are added together: there is "
            "no stream between them, so each "
            "block has one row."
        )
    return " ".join(said)
