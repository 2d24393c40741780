"""Neurons: what makes each neuron of an MLP active, which tokens it speaks for, and what the model says if it is set by hand.

A neuron is a number in the middle of an MLP, after the activation; in a gated MLP, after the gate; in a
mixture of experts, times the weight of its expert. A text is read in batches: of
each neuron only its extremes, its sums and its histogram are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.model import EnoughError, Transformer, Watch
from gptviz.model.parts.heads import Unembed
from gptviz.model.parts.mlps import AnyMLP
from gptviz.model.parts.norms import Norm

from ..explaining.through_norms import norms_of, written_through
from ..trace import run
from .unit import Unit

# How many places with the highest, and with the lowest, activations are kept of each neuron, at most one of each SEGMENT tokens.
MOST_PLACES, SEGMENT = 8, 32
# Bins of a histogram, from -reach to reach.
BINS = 64
SMALLEST_REACH = 2.0**-20
# About this many activations are in memory at a time.
AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Activity:
    """The activity of the neurons of one MLP over a text."""

    block: int  #: the number of its block
    n_tokens: int  #: how many tokens were read
    largest: Float64Array  #: [neuron], the highest activation
    smallest: Float64Array  #: [neuron], the lowest one
    active: Float64Array  #: [neuron], the share of tokens at which it is above 0
    #: [neuron], the mean length of the vector that it adds to the stream: |activation| times the length of its column of W_down
    effect: Float64Array
    #: [rank, neuron], the highest activations, at most one of each SEGMENT tokens; -inf where the text is shorter
    highest: Float64Array
    highest_at: npt.NDArray[np.int64]  #: [rank, neuron, 2], where they are: the row of the text and the position in it
    lowest: Float64Array  #: [rank, neuron], the lowest activations, likewise; inf where the text is shorter
    lowest_at: npt.NDArray[np.int64]  #: as `highest_at`
    counts: npt.NDArray[np.int64]  #: [neuron, bin], the histogram
    #: [neuron], the bins share the range from -reach to reach equally; a power of 2 larger than every activation
    reach: Float64Array
    rows: tuple[Tensor, ...] = ()  #: the texts, [T] each; also those that are still to be read

    def ranked(self, by: str) -> list[int]:
        """All neurons, those with the largest `by` first: "largest", "active" or "effect"."""
        return [int(neuron) for neuron in np.argsort(-getattr(self, by), kind="stable")]

    def places(self, neuron: int, *, lowest: bool = False) -> list[tuple[int, int]]:
        """Row and position of the highest (or lowest) activations of a neuron, the most extreme first."""
        values, at = (self.lowest, self.lowest_at) if lowest else (self.highest, self.highest_at)
        return [
            (int(row), int(place))
            for (row, place), value in zip(at[:, neuron], values[:, neuron], strict=True)
            if np.isfinite(value)
        ]

    def histogram(self, neuron: int) -> LabelledArray:
        """How many tokens have an activation in each bin, which is called by its lower end; without the empty bins at both ends.

        A bin is 2 · reach / BINS wide.
        """
        counts, reach = self.counts[neuron], float(self.reach[neuron])
        filled = np.flatnonzero(counts)
        some = slice(filled[0], filled[-1] + 1) if len(filled) else slice(BINS // 2, BINS // 2 + 1)
        edges = np.linspace(-reach, reach, BINS + 1)[some]
        return LabelledArray(counts[some], (Axis("activation from", tuple(f"{edge:.7g}" for edge in edges)),), "tokens")

    def labelled(self) -> LabelledArray:
        """The extremes, the share of activity and the effect of every neuron: [neuron, number]."""
        columns = {"largest": self.largest, "smallest": self.smallest, "active": self.active, "effect": self.effect}
        neurons = tuple(map(str, range(len(self.largest))))
        return LabelledArray(
            np.stack([*columns.values()], -1), (Axis("neuron", neurons), Axis("number", tuple(columns))), "value"
        )


class Observation:
    """The values that are kept of the activations while a text is read; they take the same memory however long the text is.

    Args:
        unit: the MLP.
        lengths: [neuron], how long the vector is that an activation of 1 adds to the stream.
        rows: as in `Activity`.
    """

    def __init__(self, unit: Unit, lengths: Tensor, rows: Sequence[Tensor] = ()) -> None:
        self.unit, self.lengths, self.rows, n_neuron = unit, lengths, tuple(rows), len(lengths)
        self.n_tokens = 0
        self.above, self.size = torch.zeros(n_neuron, dtype=torch.long), torch.zeros(n_neuron, dtype=torch.float64)
        # Highest activations, and highest of those with the sign turned round: [side, rank, neuron].
        self.values = torch.full((2, MOST_PLACES, n_neuron), -torch.inf)
        self.places = torch.zeros(2, MOST_PLACES, n_neuron, 2, dtype=torch.long)
        self.counts = torch.zeros(n_neuron, BINS, dtype=torch.long)
        self.reach = torch.full((n_neuron,), SMALLEST_REACH)

    def add(self, activations: Tensor, first_row: int) -> None:
        """Take in the activations [rows, T, neuron] of rows of the text, the first of which has this number."""
        flat = activations.flatten(0, 1)  # [tokens, neuron]
        self.n_tokens += len(flat)
        self.above += (flat > 0).sum(0)
        self.size += flat.abs().sum(0, dtype=torch.float64)
        for side, sign in enumerate((1, -1)):
            self._keep_extremes(side, sign * activations, first_row)
        self._count(flat)

    def _keep_extremes(self, side: int, activations: Tensor, first_row: int) -> None:
        values, places = [self.values[side]], [self.places[side]]
        for start in range(0, activations.shape[1], SEGMENT):
            best = activations[:, start : start + SEGMENT].max(1)  # [rows, neuron] each
            rows = torch.arange(first_row, first_row + len(activations))[:, None].expand_as(best.indices)
            values.append(best.values)
            places.append(torch.stack((rows, best.indices + start), -1))
        every = torch.cat(values)
        kept = every.topk(MOST_PLACES, dim=0)
        self.values[side] = kept.values
        self.places[side] = torch.cat(places).gather(0, kept.indices[..., None].expand(-1, -1, 2))

    def _count(self, flat: Tensor) -> None:
        largest = flat.abs().max(0).values
        while (narrow := largest >= self.reach).any():
            # Twice the reach: two neighbouring bins become one, so that no activation has to be looked at again.
            pairs = self.counts[narrow].view(-1, BINS // 2, 2).sum(-1)
            self.counts[narrow] = torch.nn.functional.pad(pairs, (BINS // 4, BINS // 4))
            self.reach[narrow] *= 2
        bins = ((flat / self.reach + 1) * (BINS // 2)).long().clamp(0, BINS - 1).T  # [neuron, tokens]
        self.counts.scatter_add_(1, bins, torch.ones_like(bins))

    def activity(self) -> Activity:
        """The activity that was seen so far."""
        highest, lowest = self.values.double().numpy()
        highest_at, lowest_at = self.places.numpy().copy()
        count = max(self.n_tokens, 1)
        assert self.unit.block is not None
        return Activity(
            self.unit.block,
            self.n_tokens,
            highest[0].copy(),
            -lowest[0],
            (self.above / count).double().numpy(),
            (self.size / count * self.lengths.double()).numpy(),
            highest.copy(),
            highest_at,
            -lowest,
            lowest_at,
            self.counts.numpy().copy(),
            self.reach.double().numpy(),
            self.rows,
        )


@torch.inference_mode()
def activations(model: Transformer, ids: Tensor, block: int) -> Tensor:
    """The neurons of a block over texts `ids` [B, T]: [B, T, neuron], in float32. The pass ends there.

    Raises:
        ValueError: the model has no such block, no MLP, or a shorter context.
    """
    _check_block(model, block)
    found: list[Tensor] = []

    def see(_name: str, value: Tensor) -> None:
        found.append(value.float().cpu())
        raise EnoughError

    with suppress(EnoughError):
        model(ids.to(model.embed.weight.device), tap=Watch([f"blocks.{block}.mlp.neurons"], see))
    return found[0]


def _check_block(model: Transformer, block: int) -> None:
    if not model.config.mlp_size or block not in range(model.config.n_layer):
        sizes = f"{model.config.n_layer} blocks, counted from 0, with MLPs of {model.config.mlp_size} neurons"
        raise ValueError(f"there are no neurons in block {block!r:.40}: the model has {sizes}")


def observe(model: Transformer, block: int, rows: Sequence[Tensor]) -> Iterator[Observation]:
    """Read the rows of a text and observe the neurons of a block: after each batch the same observation, which has grown.

    Args:
        model: the stack.
        block: the number of the block.
        rows: [T] each, token ids without padding, at most as long as the context. Rows of equal length that follow each other
            are read together.

    Raises:
        ValueError: as in `activations`.
    """
    _check_block(model, block)
    observation = Observation(Unit("mlp", block), columns(model, block).norm(dim=0).cpu(), rows)
    start, of = 0, sum(map(len, rows))
    while start < len(rows):
        length = len(rows[start])
        most = max(1, AT_ONCE // (max(length, 1) * max(model.config.mlp_size, 1)))
        stop = start + 1
        while stop < len(rows) and len(rows[stop]) == length and stop - start < most:
            stop += 1
        with progress.part(observation.n_tokens, of, length * (stop - start), step="token"):
            observation.add(activations(model, torch.stack(list(rows[start:stop])), block), start)
        start = stop
        yield observation


def columns(model: Transformer, block: int) -> Tensor:
    """How much an activation of 1 of each neuron adds to the stream, [d_model, neuron]; a norm counts by its linear part."""
    part = model.blocks[block]
    after = norms_of(part.get_submodule("mlp_residual"))[1]
    return written_through(after, cast(AnyMLP, part.mlp).written()[0].detach().float())


@torch.inference_mode()
def promoted(model: Transformer, block: int, neuron: int) -> Float64Array:
    """How much an activation of 1 adds to the logit of each token [vocab_size], if nothing lies between the neuron and the end.

    Norms are replaced by what is linear in them (see `through_norms`), so all numbers lack one common factor. What all tokens
    have in common is taken away: a softmax does not see it. Later blocks, which read what the neuron wrote, and a cap of the
    logits are left out.

    Raises:
        ValueError: the model does not guess tokens.
    """
    if not isinstance(model.head, Unembed):
        raise ValueError("this model has no unembedding: it promotes no tokens")
    final = model.head.final_norm
    assert final is None or isinstance(final, Norm)
    read = written_through(final, columns(model, block)[:, neuron : neuron + 1])  # [d_model, 1], what the unembedding reads
    logits = model.head.unembed.multiply(read.T, model.head.unembed.weight, None)[0]  # [vocab_size]
    values = logits.detach().double().cpu()
    return (values - values.mean()).numpy()


@torch.inference_mode()
def steered(model: Transformer, ids: Tensor, block: int, neuron: int, value: float | None) -> Tensor:
    """The logits after the last token of `ids` [T] (of a classifier, of the labels) if a neuron has this value at every token.

    Args:
        model: a decoder or a classifier.
        ids: the tokens that it reads.
        block: the number of the block.
        neuron: its number in the block.
        value: what the neuron is set to; None leaves it as it is.

    Raises:
        ValueError: as in `trace.run`.
    """

    def put(neurons: Tensor) -> Tensor:
        neurons[..., neuron] = torch.tensor(value)
        return neurons

    edits = None if value is None else {f"blocks.{block}.mlp.neurons": put}
    logits = run(model, ids[None], ["logits"], edits=edits, logits_at=slice(-1, None))["logits"]
    return logits.flatten(0, -2)[-1].float().cpu()
