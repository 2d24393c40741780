"""The loss of a model without each of its pieces: its loss on a text with every head and every MLP
edited, one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.machine import progress
from gptviz.model import IDENTITY, Transformer, Watch

from ..reading.layers import last_tap
from .edit import Edit, Inputs
from .edits import edited_by_each

# Logits computed at a time: 17 MB, with as many again for their loss.
MOST_LOGITS = 2**22
# The target of a prediction that does not count.
NOT_COUNTED = -100


class Rows(NamedTuple):
    """Texts with what is to be predicted of them."""

    reading: Inputs  #: what the model reads
    #: [B, T], the token to predict at each place, or -100 where none counts; for a classifier [B],
    #: the labels
    targets: Tensor


@torch.inference_mode()
def loss(model: Transformer, texts: Sequence[Rows]) -> float:
    """The mean cross-entropy in nats over all predictions that count in rows on the model's device;
    NaN where none does.
    """
    total = 0.0
    count = 0
    done = 0
    of = sum(len(text.targets) for text in texts)
    for (ids, source), targets in texts:
        at_once = max(MOST_LOGITS // (model.config.vocab_size * ids.shape[1]), 1)
        for start in range(0, len(ids), at_once):
            some = slice(start, start + at_once)
            reading = Inputs(ids[some], None if source is None else source[some])
            with progress.part(done, of, len(reading.ids), step="row"):
                total += summed_loss(model, reading, targets[some])[0]
            done += len(reading.ids)
            count += int((targets[some] != NOT_COUNTED).sum())
    if count:
        return total / count
    return float("nan")


@torch.inference_mode()
def summed_loss(model: Transformer, reading: Inputs, targets: Tensor) -> tuple[float, Tensor]:
    """The cross-entropy in nats of `reading` [B, T], summed over all predictions that count; and
    the last logits, [vocab_size] or [n_label].

    The logits of a long text are computed for some places after the other: with a large vocabulary
    those of all take gigabytes.
    """
    (rows, length), config = reading.ids.shape, model.config
    if (
        config.kind == "classifier"
        or not config.n_layer
        or rows * length * config.vocab_size <= MOST_LOGITS
    ):
        logits: Tensor = model(reading.ids, reading.source)  # [B, T, vocab_size] or [B, n_label]
        return _nats(logits, targets), logits.flatten(0, -2)[-1]
    streams: list[Tensor] = []
    watch = Watch([last_tap(config)], lambda _name, stream: streams.append(stream))
    last = model(reading.ids, reading.source, tap=watch, logits_at=slice(-1, None))
    each = max(1, MOST_LOGITS // (rows * config.vocab_size))
    total = 0.0
    for start in range(0, length, each):
        at = slice(start, start + each)
        total += _nats(model.head(streams[0], None, at, IDENTITY), targets[:, at])
    return total, last[-1, -1]


def _nats(logits: Tensor, targets: Tensor) -> float:
    return F.cross_entropy(
        logits.flatten(0, -2).float(), targets.flatten(), ignore_index=NOT_COUNTED, reduction="sum"
    ).item()


def loss_with_each(
    model: Transformer,
    texts: Sequence[Rows],
    edits: Sequence[Edit],
    reference: Sequence[Inputs] = (),
) -> Iterator[tuple[Edit, float]]:
    """For each of `edits`, such as every head and every MLP at zero, the loss over `texts` of the
    model with only that edit; compare it with `loss` of the model as it is. The model is in
    evaluation mode, and edits that it has already stay. Means and patterns are taken from
    `reference`, which is read once for all; a ValueError if an edit needs one, and there is none.
    """
    with progress.part(0, 1 + len(edits)):
        twins = edited_by_each(model, edits, reference)
    for before, (one, twin) in enumerate(twins):
        with (
            progress.part(1, 1 + len(edits), len(edits)),
            progress.part(before, len(edits), doing=one.unit.title),
        ):
            without = loss(twin, texts)
        yield one, without
