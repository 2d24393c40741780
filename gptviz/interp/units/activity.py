"""Where units do most: what is kept of a number that each unit of a layer has at every token, while
a text is read in batches.

The units are the neurons of an MLP or the heads of an attention, or whatever else an `Observable`
describes. Of each only its extremes, its sums and its histogram are kept: they take the same memory
however long the text is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.model import EnoughError, Transformer, Watch

from .unit import Unit

# How many places with the highest, and with the lowest, numbers are kept of each unit, at most one
# of each SEGMENT tokens.
MOST_PLACES = 8
SEGMENT = 32
# Bins of a histogram, from -reach to reach.
BINS = 64
SMALLEST_REACH = 2.0**-20
# About this many numbers are in memory at a time.
AT_ONCE = 4_000_000
# The mean of each unit at each token of the vocabulary is kept where these are no more numbers.
MOST_BY_TOKEN = 6_000_000


@dataclass(frozen=True)
class Observable:
    """The units of a layer, each of which has a number at every token of a text."""

    layer: Unit  #: what the units are pieces of, as an MLP is of neurons
    number: str  #: what is observed of each, as in "activation"
    #: [unit], how long the vector is that a unit with the number 1 adds to the stream
    lengths: Tensor
    vocab_size: int  #: of the texts
    #: the numbers [B, T, unit] of texts [B, T], in float32 on the CPU
    values: Callable[[Tensor], Tensor]
    #: for texts of so many tokens, how many numbers are in memory for each token meanwhile
    room: Callable[[int], int]


@dataclass(frozen=True)
class Activity:
    """What the units of a layer do over a text."""

    layer: Unit  #: as in `Observable`
    number: str  #: as in `Observable`
    n_tokens: int  #: how many tokens were read
    largest: Float64Array  #: [unit], the highest number
    smallest: Float64Array  #: [unit], the lowest one
    active: Float64Array  #: [unit], the share of tokens at which it is above 0
    #: [unit], the mean length of the vector that it adds to the stream: |number| · its length
    effect: Float64Array
    #: [rank, unit], the highest numbers, at most one of each SEGMENT tokens; -inf where the text is
    #: shorter
    highest: Float64Array
    #: [rank, unit, 2], where they are: the row of the text and the position in it
    highest_at: npt.NDArray[np.int64]
    #: [rank, unit], the lowest numbers, likewise; inf where the text is shorter
    lowest: Float64Array
    lowest_at: npt.NDArray[np.int64]  #: as `highest_at`
    counts: npt.NDArray[np.int64]  #: [unit, bin], the histogram
    #: [unit], the bins share the range from -reach to reach equally; a power of 2 larger than every
    #: number
    reach: Float64Array
    seen: npt.NDArray[np.int64]  #: [vocab_size], how often each token was read
    #: [unit, vocab_size], the mean number at each token, 0 where it was never read; [unit, 0]
    #: beyond MOST_BY_TOKEN numbers
    by_token: Float64Array
    rows: tuple[Tensor, ...] = ()  #: the texts, [T] each; also those that are still to be read

    def unit(self, index: int) -> Unit:
        """One of the units."""
        return replace(self.layer, index=index)

    def ranked(self, by: str) -> list[int]:
        """All units, those with the largest `by` first: "largest", "active" or "effect"."""
        return [int(unit) for unit in np.argsort(-getattr(self, by), kind="stable")]

    def places(self, unit: int, *, lowest: bool = False) -> list[tuple[int, int]]:
        """Row and position of the highest (or lowest) numbers of a unit, the most extreme first."""
        values, at = (self.lowest, self.lowest_at) if lowest else (self.highest, self.highest_at)
        return [
            (int(row), int(place))
            for (row, place), value in zip(at[:, unit], values[:, unit], strict=True)
            if np.isfinite(value)
        ]

    def commonest(self, unit: int, most: int) -> tuple[tuple[int, ...], int]:
        """The one or two tokens that stand most often, and at least twice, at the `most` highest
        numbers of a unit that are above 0; and at how many of these places they stand together.
        """
        highest = zip(self.places(unit)[:most], self.highest[:, unit], strict=False)
        tokens = Counter(int(self.rows[row][at]) for (row, at), value in highest if value > 0)
        often = [(token, times) for token, times in tokens.most_common(2) if times > 1]
        return tuple(token for token, _ in often), sum(times for _, times in often)

    def tokens(self, unit: int, most: int = 8, often: int = 1) -> list[tuple[int, float]]:
        """The tokens with the largest mean number of a unit, the largest first: at most `most`, of
        those read `often` or more.
        """
        if self.by_token.size:
            means = np.where(self.seen >= often, self.by_token[unit], -np.inf)
        else:
            means = np.empty(0)
        order = np.argsort(-means, kind="stable")[:most].tolist()
        return [(token, float(means[token])) for token in order if np.isfinite(means[token])]

    def histogram(self, unit: int) -> LabelledArray:
        """How many tokens have a number in each bin (2 · reach / BINS wide, called by its lower
        end), without empty ends.
        """
        counts = self.counts[unit]
        reach = float(self.reach[unit])
        filled = np.flatnonzero(counts)
        if len(filled):
            some = slice(filled[0], filled[-1] + 1)
        else:
            some = slice(BINS // 2, BINS // 2 + 1)
        edges = np.linspace(-reach, reach, BINS + 1)[some]
        return LabelledArray(
            counts[some],
            (Axis(f"{self.number} from", tuple(f"{edge:.7g}" for edge in edges)),),
            "tokens",
        )

    def labelled(self) -> LabelledArray:
        """The extremes, the share of activity and the effect of every unit: [unit, number]."""
        columns = {
            "largest": self.largest,
            "smallest": self.smallest,
            "active": self.active,
            "effect": self.effect,
        }
        axes = (
            Axis(self.unit(0).kind, tuple(map(str, range(len(self.largest))))),
            Axis("number", tuple(columns)),
        )
        return LabelledArray(np.stack([*columns.values()], -1), axes, "value")


class Observation:
    """What is kept while a text is read; `rows` are those of `Activity`."""

    def __init__(self, observable: Observable, rows: Sequence[Tensor] = ()) -> None:
        self.observable = observable
        self.rows = tuple(rows)
        n_unit = len(observable.lengths)
        self.n_tokens = 0
        self.above = torch.zeros(n_unit, dtype=torch.long)
        self.size = torch.zeros(n_unit, dtype=torch.float64)
        # Highest numbers, and highest of those with the sign turned round: [side, rank, unit].
        self.values = torch.full((2, MOST_PLACES, n_unit), -torch.inf)
        self.places = torch.zeros(2, MOST_PLACES, n_unit, 2, dtype=torch.long)
        self.counts = torch.zeros(n_unit, BINS, dtype=torch.long)
        self.reach = torch.full((n_unit,), SMALLEST_REACH)
        vocab_size = observable.vocab_size
        self.seen = torch.zeros(vocab_size, dtype=torch.long)
        self.sums = torch.zeros(
            vocab_size if vocab_size * n_unit <= MOST_BY_TOKEN else 0, n_unit, dtype=torch.float64
        )

    def add(self, ids: Tensor, numbers: Tensor, first_row: int) -> None:
        """Take in the numbers [rows, T, unit] of rows `ids` [rows, T] of the text, the first of
        which has the number `first_row`.
        """
        # [tokens, unit], [tokens]
        flat = numbers.flatten(0, 1)
        tokens = ids.flatten()
        self.n_tokens += len(flat)
        self.above += (flat > 0).sum(0)
        self.size += flat.abs().sum(0, dtype=torch.float64)
        self.seen += tokens.bincount(minlength=len(self.seen))
        if len(self.sums):
            self.sums.index_add_(0, tokens, flat.double())
        for side, sign in enumerate((1, -1)):
            self._keep_extremes(side, sign * numbers, first_row)
        largest = flat.abs().max(0).values
        while (narrow := largest >= self.reach).any():
            # Twice the reach: two neighbouring bins become one, so that no number has to be looked
            # at again.
            pairs = self.counts[narrow].view(-1, BINS // 2, 2).sum(-1)
            self.counts[narrow] = torch.nn.functional.pad(pairs, (BINS // 4, BINS // 4))
            self.reach[narrow] *= 2
        bins = ((flat / self.reach + 1) * (BINS // 2)).long().clamp(0, BINS - 1).T  # [unit, tokens]
        self.counts.scatter_add_(1, bins, torch.ones_like(bins))

    def _keep_extremes(self, side: int, numbers: Tensor, first_row: int) -> None:
        values = [self.values[side]]
        places = [self.places[side]]
        for start in range(0, numbers.shape[1], SEGMENT):
            best = numbers[:, start : start + SEGMENT].max(1)  # [rows, unit] each
            rows = torch.arange(first_row, first_row + len(numbers))[:, None].expand_as(
                best.indices
            )
            values.append(best.values)
            places.append(torch.stack((rows, best.indices + start), -1))
        every = torch.cat(values)
        kept = every.topk(MOST_PLACES, dim=0)
        self.values[side] = kept.values
        self.places[side] = torch.cat(places).gather(0, kept.indices[..., None].expand(-1, -1, 2))

    def activity(self) -> Activity:
        """What was seen so far."""
        highest, lowest = self.values.double().numpy()
        highest_at, lowest_at = self.places.numpy().copy()
        count = max(self.n_tokens, 1)
        return Activity(
            self.observable.layer,
            self.observable.number,
            self.n_tokens,
            highest[0].copy(),
            -lowest[0],
            (self.above / count).double().numpy(),
            (self.size / count * self.observable.lengths.double()).numpy(),
            highest.copy(),
            highest_at,
            -lowest,
            lowest_at,
            self.counts.numpy().copy(),
            self.reach.double().numpy(),
            self.seen.numpy().copy(),
            (self.sums.T / self.seen[: len(self.sums)].clamp(min=1)).numpy(),
            self.rows,
        )


def observe(observable: Observable, rows: Sequence[Tensor]) -> Iterator[Observation]:
    """Read the rows of a text [T] and observe the units of a layer: after each batch the same
    observation, which has grown. Rows of equal length that follow each other are read together. A
    ValueError if a row is longer than the context.
    """
    observation = Observation(observable, rows)
    start = 0
    of = sum(map(len, rows))
    while start < len(rows):
        length = len(rows[start])
        most = max(1, AT_ONCE // max(length * observable.room(length), 1))
        stop = start + 1
        while stop < len(rows) and len(rows[stop]) == length and stop - start < most:
            stop += 1
        with progress.part(observation.n_tokens, of, length * (stop - start), step="token"):
            ids = torch.stack(list(rows[start:stop]))
            observation.add(ids.cpu(), observable.values(ids), start)
        start = stop
        yield observation


@torch.inference_mode()
def read_until(model: Transformer, ids: Tensor, *names: str) -> list[Tensor]:
    """The values of these taps, in the order of the pass over texts `ids` [B, T], which ends with
    the last of them.
    """
    values: list[Tensor] = []

    def see(_name: str, value: Tensor) -> None:
        values.append(value)
        if len(values) == len(names):
            raise EnoughError

    with suppress(EnoughError):
        model(ids.to(model.embed.weight.device), tap=Watch(names, see))
    return values
