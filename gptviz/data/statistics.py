"""Statistics of the data of a run: how much there is, how often each token occurs, and a batch as
the model gets it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gptviz.model import Config
from gptviz.text import Tokenizer

from .batches import NOT_COUNTED, Batch
from .source import Source

PADDING = ""
NO_TARGET = "·"


@dataclass(frozen=True)
class Statistics:
    """The statistics of data and their tokens."""

    facts: dict[str, int]  #: the amounts of data by name, in the order to be shown
    tokens: tuple[str, ...]  #: the labels of the tokens that occur at all, the most frequent first
    shares: npt.NDArray[np.float64]  #: how often each occurs, as a share of all [token]
    counted: str  #: the name of the data in which the tokens were counted


def statistics(source: Source, tokenizer: Tokenizer, config: Config) -> Statistics:
    """The statistics of a source for a model of this config."""
    ids, counted = source.tokens_to_count(source.data(tokenizer, config), tokenizer)
    counts = torch.bincount(ids, minlength=tokenizer.vocab_size)  # [vocab_size]
    order = counts.argsort(descending=True, stable=True)
    order = order[counts[order] > 0]
    labels = tuple(tokenizer.label(token) for token in order.tolist())
    shares = (counts[order].double() / counts.sum()).numpy()
    facts = {
        **source.facts(),
        f"tokens in {counted}": len(ids),
        "tokens in the vocabulary": tokenizer.vocab_size,
    }
    return Statistics(facts, labels, shares, counted)


@dataclass(frozen=True)
class ShownRow:
    """A row of a batch in words."""

    #: for the name of each line, the label of its token at each place; `PADDING` and `NO_TARGET`
    #: stand for no token
    lines: dict[str, list[str]]
    label: str = ""  #: the right label of a text; empty for a model that guesses tokens


def shown_rows(
    batch: Batch, tokenizer: Tokenizer, config: Config, labels: tuple[str, ...] = ()
) -> list[ShownRow]:
    """The rows of a batch as labels of tokens: those that the model reads, and below each the one
    that it has to guess there.
    """
    rows = []
    for row in range(len(batch.targets)):
        reads = [_labels(ids[row], tokenizer, config.padding) for ids in batch.inputs]
        if config.kind == "classifier":
            number = int(batch.targets[row])
            rows.append(
                ShownRow({"x, it reads": reads[0]}, labels[number] if labels else str(number))
            )
            continue
        if len(reads) > 1:
            lines = {"source, the encoder reads": reads[1]}
        else:
            lines = {}
        lines["x, it reads"] = reads[0]
        lines["y, it is to guess"] = _labels(batch.targets[row], tokenizer, None)
        rows.append(ShownRow(lines))
    return rows


def _labels(ids: Tensor, tokenizer: Tokenizer, padding: int | None) -> list[str]:
    special = {padding: PADDING, NOT_COUNTED: NO_TARGET}
    return [
        special[token] if token in special else tokenizer.label(token) for token in ids.tolist()
    ]
