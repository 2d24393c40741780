"""The strength of a LoRA adapter: what is learned and what is forgotten from its base to the tuned
model, and beyond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine import progress
from gptviz.model.lora import MergedTransformer

from .ablation import Rows, loss

# From the base to twice as far as the adapter was trained.
STRENGTHS = tuple(step / 8 for step in range(17))


def losses_along(
    model: MergedTransformer,
    texts: Mapping[str, Sequence[Rows]],
    strengths: Sequence[float] = STRENGTHS,
) -> LabelledArray:
    """The loss [text, strength] in nats per token of a base with its adapter, with each of these
    strengths (0 is the base, 1 what was trained), on each of these texts, rows on the model's
    device.
    """
    table = np.zeros((len(texts), len(strengths)))
    for column, strength in enumerate(strengths):
        at = model.with_strength(strength).eval()
        for row, rows in enumerate(texts.values()):
            with progress.part(
                column * len(texts) + row, len(texts) * len(strengths), step="reading"
            ):
                table[row, column] = loss(at, rows)
    axes = (
        Axis("text", tuple(texts)),
        Axis("strength", tuple(f"{strength:g}" for strength in strengths)),
    )
    return LabelledArray(table, axes, "nats per token")
