"""The loss and accuracy of a model on held-out data. All losses that gptviz reports are computed
here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.data.batches import NOT_COUNTED, Batch
from gptviz.model import Transformer

MOST_LOGITS = 2**26  # logits computed at a time: a quarter of a gigabyte


@dataclass(frozen=True)
class Evaluation:
    """How well a model predicts."""

    loss: float  #: mean cross-entropy in nats over all predictions that count
    #: [T], how often the likeliest token was the right one, by place in the row; for a classifier
    #: there is one place
    right: Tensor
    counted: Tensor  #: [T], the number of predictions that count, by place in the row

    @property
    def tokens(self) -> int:
        """The number of predictions that count."""
        return int(self.counted.sum())

    @property
    def accuracy(self) -> float:
        """The share of predictions whose likeliest token was the right one."""
        return int(self.right.sum()) / self.tokens

    def by_place(self) -> list[float | None]:
        """The accuracy at every place in the row; None for a place where no prediction counts."""
        return [
            r / n if n else None
            for r, n in zip(self.right.tolist(), self.counted.tolist(), strict=True)
        ]


@torch.inference_mode()
def evaluate(model: Transformer, batches: Iterable[Batch]) -> Evaluation:
    """The loss and accuracy over all `batches`, without dropout, in the type of the weights; a
    ValueError if none counts.
    """
    device = model.embed.weight.device
    was_training = model.training
    model.eval()
    total = 0.0
    right = torch.zeros(0, dtype=torch.long)
    counted = torch.zeros(0, dtype=torch.long)
    for batch in batches:
        rows = max(
            MOST_LOGITS
            // (model.config.vocab_size * max(tensor.shape[1] for tensor in batch.inputs)),
            1,
        )
        for start in range(0, len(batch.targets), rows):
            inputs, targets = batch.rows(slice(start, start + rows)).to(device)
            logits = model(*inputs)  # [rows, T, vocab_size], or [rows, n_label]
            total += F.cross_entropy(
                logits.flatten(0, -2).float(), targets.flatten(), reduction="sum"
            ).item()
            hits = (logits.argmax(-1) == targets).view(len(targets), -1)  # [rows, places]
            right = _sum(right, hits.sum(0).cpu())
            counted = _sum(counted, (targets != NOT_COUNTED).view(len(targets), -1).sum(0).cpu())
    model.train(was_training)
    if not counted.sum():
        raise ValueError("there is nothing to evaluate: no prediction counts")
    return Evaluation(total / int(counted.sum()), right, counted)


def _sum(longer: Tensor, row: Tensor) -> Tensor:
    """The sum of two rows, the shorter one padded with zeros."""
    length = max(len(longer), len(row))
    return F.pad(longer, (0, length - len(longer))) + F.pad(row, (0, length - len(row)))
