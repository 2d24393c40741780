"""The facts that one pass over a text gives about the texts and models that it can be compared
with.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptviz.model import Transformer

from ..explaining.attribution import PartValue, attribute_logit
from ..explaining.decomposition import Stream
from .next_token import logits_after, probabilities


@dataclass(frozen=True)
class ReadOnce:
    """The facts that the page Compare needs from the text of A."""

    #: the probability of every token [vocab_size] to come after the text
    distribution: npt.NDArray[np.float64]
    #: the head that adds most to the logit of the likeliest token, or None if none adds to it, or
    #: if that logit is no sum of what the parts of the model add
    strongest: PartValue | None


def read_once(model: Transformer, ids: Sequence[int]) -> ReadOnce:
    """Read `ids` with a decoder."""
    try:
        stream = Stream(model, ids, [len(ids) - 1])
    except ValueError:  # a part of the model lets no sum through
        logits = logits_after(model, ids, slice(len(ids) - 1, len(ids)))[0]
        return ReadOnce(probabilities(logits), None)
    heads: list[PartValue] = []
    with suppress(ValueError):  # the logit is no sum
        heads = [
            part
            for part in attribute_logit(stream).parts
            if ".head." in part.name and part.value > 0
        ]
    return ReadOnce(
        probabilities(stream.logits), max(heads, key=lambda part: part.value, default=None)
    )
