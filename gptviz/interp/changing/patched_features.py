"""Patching of features: what a model answers to a corrupted prompt if a feature of a dictionary has
at every position the activation that it has there after the clean prompt.

Where it differs, the feature's row of the decoder is added so often as its activation changes; what
the dictionary misses stays.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor

from gptviz.labelled_array import Axis
from gptviz.machine import progress
from gptviz.model import Transformer
from gptviz.model.edited import EditedTransformer

from ..dictionaries.dictionary import Dictionary, dictionary_for
from ..trace import run
from .patchable import Quantity
from .patching import Patched, PromptPair, check_pair, patch, rows_at_once

OF_DICTIONARY: Final = "dictionary."
# The features that are patched: those whose activations differ most between the prompts.
MOST_FEATURES = 64


def patch_named(model: Transformer, pair: PromptPair, what: str) -> Patched:
    """As `patch`, also of the features of a dictionary, `dictionary.NAME`."""
    if what.startswith(OF_DICTIONARY):
        name = what.removeprefix(OF_DICTIONARY)
        return patch_features(model, pair, dictionary_for(name, model.config))
    return patch(model, pair, what)


@torch.inference_mode()
def patch_features(model: Transformer, pair: PromptPair, dictionary: Dictionary) -> Patched:
    """Patch each feature of a dictionary whose activation differs between the two prompts, at all
    positions, one feature at a time; those that differ most, 64 at most. A ValueError if model or
    prompts do not fit, or no feature differs.
    """
    check_pair(model, pair)
    here = dictionary.to(model.embed.weight.device)
    ids = pair.ids(model.embed.weight.device)
    trace = run(model, ids, [here.tap, "logits"], logits_at=slice(-1, None))
    clean, corrupted = pair.answer(trace["logits"]).tolist()
    active = here.encode(trace[here.tap])  # [2, T, feature]
    apart = (active[0] - active[1]).abs().amax(0)
    order = apart.argsort(descending=True, stable=True)[:MOST_FEATURES]
    features = [one for one in order.tolist() if apart[one] > 0]
    if not features:
        raise ValueError(f"no feature of {dictionary.name} differs between these prompts")
    answers: list[float] = []
    at_once = rows_at_once(model.config, len(pair.clean))
    for first in range(0, len(features), at_once):
        some = features[first : first + at_once]
        with progress.part(first, len(features), len(some)):
            answers += _answers(model, pair, here, some)
    quantity = Quantity(
        f"{OF_DICTIONARY}{dictionary.name}",
        f"Features of {dictionary.name}",
        "the activation of the feature at every position",
        "feature",
    )
    places = Axis("feature", tuple(map(str, features)))
    values = np.array([answers])
    return Patched(quantity, places, values, clean, corrupted, first=dictionary.block)


def _answers(
    model: Transformer, pair: PromptPair, dictionary: Dictionary, features: list[int]
) -> list[float]:
    """The answer to the corrupted prompt with each of the features as after the clean one."""
    rows = [0] + [1] * len(features)

    def put(read: Tensor, given: Tensor) -> Tensor:
        active = dictionary.encode(read)  # [1 + patches, T, feature]
        put_in = given.clone()
        for row, feature in enumerate(features, 1):
            by = active[0, :, feature] - active[row, :, feature]
            put_in[row] += (by[:, None] * dictionary.decoder[feature]).to(given)
        return put_in

    twin = EditedTransformer(model, dict(dictionary.replace(put)), {})
    ids = pair.ids(model.embed.weight.device)[rows]
    logits = run(twin, ids, ["logits"], logits_at=slice(-1, None))["logits"]
    patched: list[float] = pair.answer(logits).tolist()
    return patched[1:]
