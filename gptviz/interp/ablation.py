"""What a model loses without each of its pieces: its loss on a text with every head and every MLP edited, one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.model import Transformer

from .edits import Reading, UnitEdit, edited_by_each

# Logits computed at a time: a quarter of a gigabyte; of one row more where it has more.
MOST_LOGITS = 2**26
# The target of a prediction that does not count.
NOT_COUNTED = -100


class Rows(NamedTuple):
    """Texts with what is to be predicted of them.

    Attributes:
        reading: what the model reads.
        targets: [B, T], the token to predict at each place, or -100 where none counts; for a classifier [B], the labels.
    """

    reading: Reading
    targets: Tensor


@torch.inference_mode()
def loss(model: Transformer, texts: Iterable[Rows]) -> float:
    """The mean cross-entropy in nats over all predictions that count; NaN where none does.

    Args:
        model: in evaluation mode.
        texts: rows of any number, on the model's device.
    """
    total, count = 0.0, 0
    for (ids, source), targets in texts:
        at_once = max(MOST_LOGITS // (model.config.vocab_size * ids.shape[1]), 1)
        for start in range(0, len(ids), at_once):
            some = slice(start, start + at_once)
            logits: Tensor = model(
                ids[some], None if source is None else source[some]
            )  # [rows, T, vocab_size] or [rows, n_label]
            flat = targets[some].flatten()
            total += F.cross_entropy(logits.flatten(0, -2).float(), flat, ignore_index=NOT_COUNTED, reduction="sum").item()
            count += int((flat != NOT_COUNTED).sum())
    return total / count if count else float("nan")


def loss_with_each(
    model: Transformer, texts: Sequence[Rows], edits: Sequence[UnitEdit], reference: Sequence[Reading] = ()
) -> Iterator[tuple[UnitEdit, float]]:
    """For each of `edits`, the loss of the model with that edit alone; compare it with `loss` of the model as it is.

    Args:
        model: in evaluation mode; it may have edits already, which stay.
        texts: what the loss is over.
        edits: such as every head and every MLP at zero.
        reference: what means and patterns are taken from; read once for all edits.

    Raises:
        ValueError: an edit needs a reference, and there is none.
    """
    for one, twin in edited_by_each(model, edits, reference):
        yield one, loss(twin, texts)
