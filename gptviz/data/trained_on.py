"""The rows that a run was trained on: all of them can be drawn again, since every batch is drawn by
a hash of seed and step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import torch
from torch import Tensor

from gptviz.machine import progress

from .batches import Batch, Data, Generated, Windows


def draw_seed(*what: object) -> int:
    """A seed for the random numbers of one purpose at one step of a run: a hash of `what`.

    So no random number depends on those drawn before: a run that is stopped and resumed, or that
    shares its process with another run, draws the same numbers.
    """
    return (
        int.from_bytes(blake2b(" ".join(map(str, what)).encode(), digest_size=8).digest(), "big")
        >> 1
    )


@dataclass(frozen=True)
class Trained:
    """What a run was trained on."""

    data: Data  #: where its batches come from
    size: int  #: rows in a batch
    seed: int  #: that of its recipe
    steps: int  #: how many steps were taken

    def batches(self) -> Iterator[Batch]:
        """All batches, in the order in which they were read."""
        return (self.data.training(self.size, seed) for seed in self.seeds())

    def seeds(self) -> Iterator[int]:
        """The seeds that draw the batches, one for each step."""
        return progress.report_each(
            (draw_seed(self.seed, step, "batch") for step in range(self.steps)), self.steps, "step"
        )


@dataclass(frozen=True)
class Share:
    """How often something came in data."""

    count: int  #: how often it came
    of: int  #: how often it could have come

    @property
    def value(self) -> float:
        """The share; NaN if it could never have come."""
        if self.of:
            return self.count / self.of
        return float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """The shares that could lie behind this one, of which chance leaves 95 % within them
        (Wilson 1927).
        """
        from scipy.stats import binomtest  # takes half a second to import

        if not self.of:
            return 0.0, 1.0
        low, high = binomtest(self.count, self.of).proportion_ci(method="wilson")
        return float(low), float(high)


def count_followers(
    trained: Trained, prompts: Sequence[Tensor], words: Sequence[Sequence[Tensor]]
) -> list[list[Share]]:
    """How often each of its words followed each prompt in what was trained on: [prompt][word].

    Each prompt is token ids [T], and `words` has for each prompt the token ids [n] of each word. A
    prompt may stand anywhere in a row. The windows of a text overlap, so it is counted in the text
    itself, each place once. A ValueError if the data are neither a text nor a task.
    """
    counts = [[0] * (1 + len(some)) for some in words]
    data = trained.data
    if isinstance(data, Windows):
        rows: Iterable[Tensor] = [data.ids[None]]
    elif isinstance(data, Generated):
        rows = (torch.from_numpy(data.examples(trained.size, seed).ids) for seed in trained.seeds())
    else:
        raise ValueError(
            "words are counted in texts and in what tasks generate, and these data are neither"
        )
    for some in rows:
        for number, (prompt, after) in enumerate(zip(prompts, words, strict=True)):
            for place, word in enumerate((prompt.new_zeros(0), *after)):
                counts[number][place] += _occurrences(
                    some, torch.cat((prompt, word)), room=1 if place == 0 else 0
                )
    return [[Share(count, of) for count in of_words] for of, *of_words in counts]


def _occurrences(rows: Tensor, wanted: Tensor, room: int) -> int:
    """How often `wanted` [n] stands in `rows` [B, T], with at least `room` tokens after it in its
    row.
    """
    if rows.shape[1] < len(wanted) + room:
        return 0
    windows = rows[:, : rows.shape[1] - room].unfold(1, len(wanted), 1)  # [B, places, n]
    equal = windows[..., 0] == wanted[0]
    for i in range(1, len(wanted)):
        equal &= windows[..., i] == wanted[i]
    return int(equal.sum())
