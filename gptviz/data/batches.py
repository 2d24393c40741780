"""The batches that a run learns from: those to train on, drawn by a seed, and fixed ones to
validate with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from gptviz.text import Examples, Task
from gptviz.text.datasets.base import HELD_OUT

# the target of a prediction that does not count in the loss, as cross_entropy has it
NOT_COUNTED = -100
# in one batch of an evaluation: enough to keep a processor busy, few enough for any memory
EVALUATION_TOKENS = 8_192


class Batch(NamedTuple):
    """Some rows of data."""

    #: the arguments of the model: ids [B, T] and, for an encoder–decoder, the ids [B, S] that its
    #: encoder reads
    inputs: tuple[Tensor, ...]
    #: [B, T], the token to predict at each place, or `NOT_COUNTED`; for a classifier [B], the label
    #: of each text
    targets: Tensor

    def rows(self, some: slice | list[int]) -> Batch:
        """The batch of only these rows."""
        return Batch(tuple(tensor[some] for tensor in self.inputs), self.targets[some])

    def to(self, device: torch.device) -> Batch:
        """The same batch on `device`."""
        return Batch(
            tuple(t.to(device, non_blocking=True) for t in self.inputs),
            self.targets.to(device, non_blocking=True),
        )


class Data(Protocol):
    """The methods of data that the trainer calls."""

    def training(self, size: int, seed: int) -> Batch:
        """`size` rows to train on; the same seed draws the same rows."""

    def validation(self) -> Iterable[Batch]:
        """All rows that are held out, always the same ones."""

    def trained_on(self) -> Iterable[Batch]:
        """Some of the rows trained on, as many as are held out and always the same; empty if no row
        comes twice.

        It is empty for a text too: its windows lie at any place, and nobody counts how many of its
        tokens are right.
        """


class Windows:
    """A text as token ids: windows of `context` tokens at random places of the part to train on
    [N], consecutive windows of the part to validate with [M]. A ValueError if the training text is
    not longer than the context, or the other has fewer than two tokens.
    """

    def __init__(self, training: Tensor, validation: Tensor, context: int) -> None:
        if len(training) <= context:
            raise ValueError(
                f"the text has {len(training):,} tokens to train on; a context of {context} needs "
                f"at least {context + 1}: "
                "take a longer text or a shorter context"
            )
        if len(validation) < 2:
            raise ValueError(
                f"the text to validate has {len(validation)} tokens; it needs at least 2: take a "
                "longer text"
            )
        self.ids = training
        self.windows = training.unfold(0, context + 1, 1)  # [N - context, context + 1], a view
        self.held_out = validation
        self.context = context

    def training(self, size: int, seed: int) -> Batch:
        """Windows at random places: all but the last token of each predict all but the first."""
        rows = self.windows[self.places(size, seed)]  # [size, context + 1]
        return Batch((rows[:, :-1],), rows[:, 1:])

    def places(self, size: int, seed: int) -> Tensor:
        """Where the windows of a batch begin [size], as places in the text."""
        return torch.randint(
            len(self.windows), (size,), generator=torch.Generator().manual_seed(seed)
        )

    def validation(self) -> Iterator[Batch]:
        """The held-out text, as `consecutive_windows` cuts it."""
        return consecutive_windows(self.held_out, self.context)

    def trained_on(self) -> Iterable[Batch]:
        return ()


class Generated:
    """A task that makes its own sequences: fresh ones to train on, a fixed set to validate with."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def training(self, size: int, seed: int) -> Batch:
        return _batch(self.examples(size, seed))

    def examples(self, size: int, seed: int) -> Examples:
        """The same, as the task makes them."""
        return self.task.examples(size, np.random.default_rng(seed))

    def validation(self) -> Iterator[Batch]:
        return _in_pieces(_batch(self.task.held_out()))

    def validation_by_part(self) -> dict[str, list[Batch]]:
        """The same sequences for each of the task's `parts`; empty if it has none."""
        held_out = self.task.held_out()
        if held_out.part is None:
            return {}
        batch = _batch(held_out)
        part = torch.from_numpy(held_out.part)
        every = enumerate(self.task.parts)
        return {
            name: list(_in_pieces(Batch((batch.inputs[0][part == i],), batch.targets[part == i])))
            for i, name in every
        }

    def trained_on(self) -> Iterable[Batch]:
        """Those of a task that has few; of others none, since every sequence is fresh."""
        learned = self.task.all_learned()
        if learned is None:
            return ()
        return _in_pieces(_batch(learned).rows(slice(HELD_OUT)))


def spread(batches: Iterable[Batch], rows: int) -> list[Batch]:
    """Some of `batches`, evenly spread over all of them: about `rows` rows, or as many as hold
    `EVALUATION_TOKENS` tokens.

    The larger of the two counts, or all batches if there are no more. The same batches always give
    the same choice.
    """
    every = list(batches)
    total = sum(len(batch.targets) for batch in every)
    tokens = sum(batch.inputs[0].numel() for batch in every)
    if total <= rows or tokens <= EVALUATION_TOKENS:
        return every
    share = max(rows / total, EVALUATION_TOKENS / tokens)
    return [every[i] for i in spread_evenly(max(int(len(every) * share), 1), len(every))]


def spread_evenly(count: int, of: int) -> list[int]:
    """`count` of the numbers below `of`, evenly spread; all of them if there are no more."""
    if count < of:
        return [(2 * i + 1) * of // (2 * count) for i in range(count)]
    return list(range(of))


def _in_pieces(batch: Batch) -> Iterator[Batch]:
    """The rows of a batch, about `EVALUATION_TOKENS` tokens at a time."""
    rows = max(EVALUATION_TOKENS // batch.targets.shape[1], 1)
    return (batch.rows(slice(start, start + rows)) for start in range(0, len(batch.targets), rows))


def _batch(examples: Examples) -> Batch:
    ids = torch.from_numpy(examples.ids)
    targets = ids[:, 1:].masked_fill(~torch.from_numpy(examples.counted), NOT_COUNTED)  # [B, T]
    return Batch((ids[:, :-1],), targets)


def consecutive_windows(
    ids: Tensor, context: int, tokens: int = EVALUATION_TOKENS
) -> Iterator[Batch]:
    """All of `ids` [N], cut into consecutive windows of the context length (the last may be
    shorter), `tokens` at a time.

    Within its window, every token is predicted from those before it. So each token of the text is
    predicted once, except the very first. A ValueError if there are fewer than two tokens, so that
    nothing can be predicted.
    """
    if len(ids) < 2:
        raise ValueError(f"a loss needs at least 2 tokens, the text has {len(ids)}")
    whole = (len(ids) - 1) // context * context
    # [windows, context]
    inputs = ids[:whole].view(-1, context)
    targets = ids[1 : whole + 1].view(-1, context)
    rows = max(tokens // context, 1)
    for start in range(0, len(inputs), rows):
        yield Batch((inputs[start : start + rows],), targets[start : start + rows])
    if whole < len(ids) - 1:
        yield Batch((ids[None, whole:-1],), ids[None, whole + 1 :])
