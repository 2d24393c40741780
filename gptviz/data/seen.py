"""Single rows of data, a sentence or a line each, and how often a run has read each of them in its
training.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from torch import Tensor

from gptviz.text import Tokenizer

from .batches import Generated, Windows, spread_evenly
from .trained_on import Trained

MOST_ROWS: Final = 64
"""How many rows of what was trained on, and of what was held out, unless another number is asked for."""
_ENDS: Final = re.compile(r"[\n.!?]")


@dataclass(frozen=True)
class Row:
    """A row of data."""

    text: str  #: the sentence, line or sequence
    #: [T + 1], what a model reads: the row, after as much of the text before it as the context
    #: holds
    ids: tuple[int, ...]
    #: [T], whether the prediction of token t + 1 counts: those of the row itself, of a task those
    #: of its answers
    counted: tuple[bool, ...]
    #: whether it was held out of training; None for a row of another text
    held_out: bool | None = None
    #: how often it was read in training, all its tokens counting; None where that is not known
    times: int | None = None


def text_rows(
    ids: Tensor, tokenizer: Tokenizer, context: int, most: int, held_out: bool | None = None
) -> list[tuple[Row, slice]]:
    """At most `most` rows of a text [N], evenly spread, each with its place in the text. A row ends
    with the token that ends a line or a sentence, or before the context is full.
    """
    of_token = np.array(
        [bool(_ENDS.search(tokenizer.piece(token))) for token in range(tokenizer.vocab_size)]
    )
    ends = of_token[ids.numpy()]
    last = np.flatnonzero(ends[:-1] & ~ends[1:]) + 1  # after a run of ends
    borders = np.unique(np.concatenate(([1], last, [len(ids)])))  # nothing predicts the first token
    spans = [
        slice(begin, min(begin + context, int(stop)))
        for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)
        for begin in range(start, int(stop), context)
    ]
    spans = [span for span in spans if tokenizer.decode(ids[span].tolist()).strip()]
    rows = []
    for span in (spans[i] for i in spread_evenly(most, len(spans))):
        first = max(0, span.stop - context - 1)
        counted = tuple(place >= span.start for place in range(first + 1, span.stop))
        row = Row(
            tokenizer.decode(ids[span].tolist()),
            tuple(ids[first : span.stop].tolist()),
            counted,
            held_out,
        )
        rows.append((row, span))
    return rows


def data_rows(
    trained: Trained, tokenizer: Tokenizer, context: int, most: int = MOST_ROWS
) -> list[Row]:
    """Rows that a run could be trained on and rows that were held out, at most `most` of each, and
    how often it read each.

    Of a text both are spread evenly over it. Of a task they are the first rows of its first batch,
    and the first that it holds out; none comes twice. `context` is that of the run's model. A
    ValueError if the data are neither a text nor a task.
    """
    if isinstance(trained.data, Windows):
        read = times_read(trained)
        training = [
            replace(row, times=int(read[span].min()))
            for row, span in text_rows(trained.data.ids, tokenizer, context, most, False)
        ]
        held_out = text_rows(trained.data.held_out, tokenizer, context, most, True)
        return [*training, *(replace(row, times=0) for row, _ in held_out)]
    if isinstance(trained.data, Generated):
        return _task_rows(trained, trained.data, tokenizer, most)
    raise ValueError(
        "rows are told apart in texts and in what tasks generate, and these data are neither"
    )


def times_read(trained: Trained) -> Tensor:
    """How often a run has predicted each token of its text to train on, [N]: the windows of all its
    batches are counted.
    """
    data = trained.data
    assert isinstance(data, Windows)
    change = torch.zeros(len(data.ids) + 1, dtype=torch.int64)
    ones = torch.ones(trained.size, dtype=torch.int64)
    for seed in trained.seeds():
        places = data.places(trained.size, seed)
        change.index_add_(0, places + 1, ones)  # a window predicts the tokens after its first
        change.index_add_(0, places + data.context + 1, -ones)
    return change.cumsum(0)[:-1]


def _task_rows(trained: Trained, data: Generated, tokenizer: Tokenizer, most: int) -> list[Row]:
    drawn = [(True, data.task.held_out())]
    if trained.steps:
        drawn.append((False, data.examples(trained.size, next(trained.seeds()))))
    rows: dict[tuple[int, ...], Row] = {}
    for held_out, examples in drawn:
        fresh: dict[tuple[int, ...], Row] = {}
        for whole, counted in zip(examples.ids.tolist(), examples.counted.tolist(), strict=True):
            if len(fresh) == most:
                break
            ids = whole[: _length(whole, data.task.end)]
            if tuple(ids) not in rows:
                fresh.setdefault(
                    tuple(ids),
                    Row(
                        tokenizer.decode(ids), tuple(ids), tuple(counted[: len(ids) - 1]), held_out
                    ),
                )
        rows |= fresh
    times = _times(trained, data, rows)
    return [replace(row, times=times[ids]) for ids, row in rows.items()]


def _length(ids: Sequence[int], end: int | None) -> int:
    if end in ids:
        return ids.index(end) + 1
    return len(ids)


def _times(
    trained: Trained, data: Generated, wanted: Container[tuple[int, ...]]
) -> Counter[tuple[int, ...]]:
    """How often each of the wanted rows came in training."""
    end = data.task.end
    every = (
        row for seed in trained.seeds() for row in data.examples(trained.size, seed).ids.tolist()
    )
    return Counter(ids for row in every if (ids := tuple(row[: _length(row, end)])) in wanted)
