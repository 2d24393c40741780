"""What is fitted to a language model over a text, and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from gptviz.interp.changing import directions
from gptviz.interp.changing.directions import Direction, How
from gptviz.interp.reading import fitted_lens as lenses
from gptviz.interp.reading import probes
from gptviz.interp.reading.fitted_lens import FittedLens, LensKind
from gptviz.interp.reading.layers import layers
from gptviz.interp.reading.probes import Probed
from gptviz.runs import fitted

from .core import LanguageModel, method
from .data import rows

# The most tokens of a text that a lens is fitted to.
MOST_TOKENS = 16_384


@method
def fitted_lens(lm: LanguageModel, kind: LensKind, text: str | None = None) -> FittedLens:
    """The Jacobian or the tuned lens of this model: see `gptviz.interp.reading.fitted_lens`. It is fitted once, and kept in the
    user's folder.

    Args:
        kind: "jacobian" or "tuned".
        text: what it is fitted to; by default the data that was held out of training.

    Raises:
        ValueError: as in `rows`, and as in `fitted_lens.fit`.
        OSError: the data is not here, or the lens cannot be kept.
    """
    digest = _digest(lm, kind, text)
    config, tensors = lm.model.config, fitted.kept(digest)
    n_layer = len(layers(config))
    shapes = {"matrices": (n_layer, config.d_model, config.d_model), "biases": (n_layer, config.d_model)}
    if {name: tuple(each.shape) for name, each in tensors.items()} == shapes | {"measured": (2, 2, n_layer)}:
        measured = tensors.pop("measured").double().numpy()
        return FittedLens(**{name: each.to(lm.device) for name, each in tensors.items()}, measured=measured)
    found = lenses.fit(lm.model, rows(lm, text, MOST_TOKENS), kind)
    kept = {"matrices": found.matrices, "biases": found.biases, "measured": torch.from_numpy(found.measured)}
    fitted.keep(digest, kept)
    return found


@method
def probe_labels(lm: LanguageModel) -> dict[str, str]:
    """The labels that probes of this model can be fitted to, in words, by name: first those of its task."""
    task = lm.task
    own = {} if task is None else {name: name.capitalize() for name in task.token_labels(task.held_out(1).ids)}
    return own | probes.FROM_TEXT


@method
def probe(lm: LanguageModel, label: str, text: str | None = None) -> Probed:
    """How well a label of tokens can be read from the stream after each layer: see `gptviz.interp.reading.probes`.

    Args:
        label: one of `probe_labels`.
        text: what is read; by default the data that was held out of training, as always for a label of the task.

    Raises:
        ValueError: there is no such label; as in `rows`; or as in `probes.probe`.
        OSError: the data is not here.
    """
    return probes.probe(lm.model, *_labelled(lm, label, text))


def _labelled(lm: LanguageModel, label: str, text: str | None) -> tuple[Sequence[Tensor], list[list[str | None]]]:
    """The rows that are read, and of each the labels of its tokens."""
    if label not in (known := probe_labels(lm)):
        raise ValueError(f"{lm.name} has no label {label!r:.40}: choose one of {', '.join(known)}")
    if label not in probes.FROM_TEXT and lm.task is not None:
        ids = lm.task.held_out(probes.MOST_TOKENS // lm.task.length).ids[:, :-1]  # from the last token nothing is guessed
        values = lm.task.token_labels(ids)[label].tolist()
        own = [[None if value < 0 else str(value) for value in row] for row in values]
        return [torch.from_numpy(row) for row in ids], own
    read = rows(lm, text, probes.MOST_TOKENS)
    pieces = [[lm.tokenizer.piece(one) for one in row.tolist()] for row in read]
    return read, [probes.text_labels(some, label) for some in pieces]


@method
def label_direction(lm: LanguageModel, label: str, value: str, text: str | None = None, *, block: int | None = None) -> Direction:
    """The direction that leads to the tokens that have one label from those that have another: the difference of their means. It
    is kept as `direction` keeps its own.

    Args:
        label: as in `probe`, and so is `text`.
        value: the label that it leads to, one of `Probed.classes`.
        block: as in `direction`.

    Raises:
        ValueError: there is no such block, no token has this label or all have it, or as in `probe`.
        OSError: as in `probe`, or it cannot be kept.
    """
    lm = lm.original
    read, labels = _labelled(lm, label, text)
    flat = [one for row in labels for one in row]
    streams = probes.streams(lm.model, read, np.array([one is not None for one in flat]))
    after = [index for index, layer in enumerate(layers(lm.model.config)) if layer.tap.endswith("resid_post")]
    every, has = torch.from_numpy(streams[after]).transpose(0, 1), torch.tensor([one == value for one in flat if one is not None])
    called = fitted.named(f"{label}-{value}", _digest(lm, "label", label, value, text, str(block)))
    return _kept(lm, called, *directions.contrast(every[has], every[~has]), block)


@method
def direction(
    lm: LanguageModel,
    toward: Sequence[str],
    away: Sequence[str],
    *,
    block: int | None = None,
    how: How = "means",
    name: str = "direction",
) -> Direction:
    """The direction in the stream of this model, without edits, that leads from the texts of one list to those of another, at
    their last tokens. It is found on three quarters of each list, tested on the others, and kept in the user's folder: its edit
    is `lm.edited(found.edit(2))`.

    Args:
        toward: the texts that it leads to.
        away: the texts that it leads away from; if there are as many, those at the same place are a pair.
        block: after which block it acts, counted from 0; after all of them unless given.
        how: "means", the difference of the means, or "component", the first principal component.
        name: what it is called; a digest of the model and of all this is added to it.

    Raises:
        ValueError: there is no such block, a text is empty, or as in `directions.ends` and `directions.contrast`.
        OSError: it cannot be kept.
    """
    lm = lm.original
    called = fitted.named(name, _digest(lm, repr((tuple(toward), tuple(away), block, how))))
    if (known := directions.found(called)) is not None:
        return known
    rows = [[lm.seen(lm.encode(text)) for text in texts] for texts in (toward, away)]
    every = directions.ends(lm.model, [*rows[0], *rows[1]]).float().cpu()
    return _kept(lm, called, *directions.contrast(every[: len(toward)], every[len(toward) :], how), block)


def _kept(lm: LanguageModel, name: str, vectors: Tensor, separation: Tensor, block: int | None) -> Direction:
    """The direction with these vectors [block, d_model], which is kept; it acts after this block, or all of them."""
    count = lm.model.config.n_layer
    if block is not None and not 0 <= block < count:
        raise ValueError(f"there is no block {block}: they are counted from 0 to {count - 1}")
    acts = range(count) if block is None else (block,)
    found = Direction(name, {each: vectors[each].clone() for each in acts}, separation.numpy())
    directions.keep(found)
    return found


def _digest(lm: LanguageModel, *settings: str | None) -> str:
    """Tells the weights of a model, its edits and some settings from all others."""
    said = repr((lm.model.config, lm.edits, lm.edit_text, settings)).encode("utf-8", "backslashreplace")
    return hashed(said, lm.model.state_dict().values())[:32]


def hashed(said: bytes, tensors: Iterable[Tensor]) -> str:
    """The SHA-256 of some bytes and of the numbers of tensors."""
    found = hashlib.sha256(said)
    for tensor in tensors:
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()
