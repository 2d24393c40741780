"""What is fitted to a language model over a text, and kept."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from gptviz.interp.changing import directions
from gptviz.interp.changing.directions import Direction
from gptviz.interp.held_out import beginnings
from gptviz.interp.reading import fitted_lens as lenses
from gptviz.interp.reading import probes
from gptviz.interp.reading.fitted_lens import FittedLens
from gptviz.interp.reading.layers import ends_of_blocks, layers
from gptviz.interp.reading.probes import Probed
from gptviz.model import Transformer
from gptviz.pretrained import published_lenses
from gptviz.runs import fitted
from gptviz.settings.fields import check_number, whole_number
from gptviz.settings.kinds import HowFound, LensKind
from gptviz.text.datasets.labelled_texts import labelled_of

from .core import LoadedModel
from .data import effort_of_rows, rows_to_fit
from .settings import check_settings

# The most tokens of a text that a lens is fitted to.
MOST_TOKENS = 16_384
# Of each model, by the bytes that stand before its weights, the versions of these and the hash: to
# read all weights takes seconds.
_HASHES: WeakKeyDictionary[Transformer, dict[bytes, tuple[list[int], str]]] = WeakKeyDictionary()


@check_settings
def fitted_lens(
    lm: LoadedModel, kind: LensKind, text: str | None = None, *, kept: str | None = None
) -> FittedLens:
    """The Jacobian or the tuned lens of this model, without edits: see
    `gptviz.interp.reading.fitted_lens`. It is fitted once, and kept in the user's folder.

    Args:
        kind: "jacobian" or "tuned".
        text: what it is fitted to; by default the data that was held out of training, or what the
            model writes itself where its data are not known.
        kept: the name of a lens that `read_lens` read: it is not fitted, but measured over the
            text.
    """
    lm = lm.original
    if kept is not None:
        return kept_lens(lm, kept).measure_over(lm.model, rows_to_fit(lm, text, MOST_TOKENS))
    name = _name_of_lens(lm, kind, text)
    with suppress(ValueError):
        lens = kept_lens(lm, name)
        if fitted.is_kept(name):
            return lens
        return _kept_as(lens)
    return _kept_as(
        replace(lenses.fit(lm.model, rows_to_fit(lm, text, MOST_TOKENS), kind), name=name)
    )


def effort_of_lens(lm: LoadedModel, kind: LensKind, text: str | None = None) -> float:
    """About how many multiplications it takes to fit a lens; 0 for one that is kept."""
    lm = lm.original
    with suppress(ValueError):
        kept_lens(lm, _name_of_lens(lm, kind, text))
        return 0
    return effort_of_rows(lm, text, MOST_TOKENS) + lenses.effort_of_fit(lm.model, kind)


def _name_of_lens(lm: LoadedModel, kind: LensKind, text: str | None) -> str:
    """The name that a lens is kept under."""
    return _digest(lm, kind, text, "held out by distinct rows")


def _kept_as(lens: FittedLens) -> FittedLens:
    """A lens, which is kept under its name. A ValueError if its numbers are not all finite."""
    if not all(each.isfinite().all() for each in (lens.matrices, lens.biases)):
        raise ValueError(
            "the numbers of this lens are not all finite: fit it to other text, or take another "
            "file"
        )
    numbers = {
        "at": torch.tensor(lens.at),
        fitted.MEASURED: torch.from_numpy(lens.measured),
        "support": torch.tensor([lens.fitted_to, lens.per_number], dtype=torch.float64),
    }
    fitted.keep(lens.name, numbers | {"matrices": lens.matrices, "biases": lens.biases})
    return lens


@check_settings
def kept_lens(lm: LoadedModel, name: str) -> FittedLens:
    """The lens that was fitted to this model, or read, and is kept under this name."""
    # not a path, which a link may have made up
    if re.fullmatch("[0-9a-f]{32}", name):
        tensors = fitted.kept_tensors(name)
    else:
        tensors = {}
    tokens, per_number = tensors.pop("support", torch.tensor([0, math.nan])).tolist()
    if tensors.keys() != {"at", fitted.MEASURED, "matrices", "biases"}:
        raise ValueError(
            f"there is no lens {name:.40} on this machine: read its file again under Logit lens"
        )
    at = tuple(tensors["at"].tolist())
    size = lm.model.config.d_model
    if (
        tensors["matrices"].shape != (len(at), size, size)
        or at[-1] != len(layers(lm.model.config)) - 1
    ):
        raise ValueError(
            f"the lens {name:.40} is that of another model, with "
            f"{tensors['matrices'].shape[-1]:,} numbers in its stream"
        )
    maps, biases = (tensors[each].to(lm.device) for each in ("matrices", "biases"))
    measured = tensors[fitted.MEASURED].double().numpy()
    return FittedLens(at, maps, biases, measured, name, int(tokens), per_number)


@check_settings
def read_lens(lm: LoadedModel, path: str | Path) -> str:
    """Read a published Jacobian lens, a file of jlens, Neuronpedia, TransformerLens or
    `write_lens`, and keep it. Returns its name, for `lm.lens(prompt, kept=name)`. It has a row for
    each block that the file has, and the model's own guess, since a lens ends after the last block.
    """
    path = Path(path)
    config = lm.model.config
    every = layers(lm.model.config)
    maps, biases, target = published_lenses.read_lens(path, lenses.MOST_BYTES)
    size = len(next(iter(maps.values())))
    last = len(every) - 1
    ends = {every[row].block: row for row in ends_of_blocks(every)[1:]}
    if size != config.d_model or not maps.keys() <= ends.keys():
        raise ValueError(
            f"{path.name} is the lens of another model: it has {size:,} numbers and goes up to "
            f"block {max(maps)}; {lm.name} has "
            f"{config.d_model:,}, and {config.n_layer} blocks"
        )
    if target not in (None, config.n_layer - 1):
        raise ValueError(
            f"{path.name}: target_layer is {target!r:.40}: it leads to another block than the "
            f"last, {config.n_layer - 1}, and the model's head reads only the stream after that"
        )
    rows_of = {
        ends[block]: (maps[block], biases.get(block, torch.zeros(size))) for block in sorted(maps)
    }
    # the last block has no matrix, or one that changes nothing
    same = torch.eye(size), torch.zeros(size)
    own = rows_of.setdefault(last, same)
    if not all(map(torch.equal, own, same)):
        raise ValueError(
            f"{path.name}: the matrix of the last block, {config.n_layer - 1}, changes the stream "
            "that the model's head reads: a lens of this model has none there"
        )
    matrices, offsets = (torch.stack(each) for each in zip(*rows_of.values(), strict=True))
    name = hashlib.sha256(
        repr([*rows_of]).encode() + matrices.numpy().tobytes() + offsets.numpy().tobytes()
    ).hexdigest()[:32]
    return _kept_as(
        FittedLens(tuple(rows_of), matrices, offsets, np.full((2, 2, len(rows_of)), np.nan), name)
    ).name


@check_settings
def write_lens(
    lm: LoadedModel, path: str | Path, kind: LensKind = "jacobian", text: str | None = None
) -> None:
    """Write a lens as `fitted_lens` gives it, for the end of each block but the last, as a file for
    `read_lens`. A Jacobian lens opens in jlens and TransformerLens too; they have no tuned lenses,
    and refuse the file of one. A ValueError if the model has one block.
    """
    lens = fitted_lens(lm, kind, text)
    every = layers(lm.model.config)
    ends = ends_of_blocks(every)[1:-1]
    maps, biases = (
        {every[row].block or 0: each[row] for row in ends} for each in (lens.matrices, lens.biases)
    )
    published_lenses.write(Path(path).absolute(), maps, biases if kind == "tuned" else {})


@check_settings
def probe_labels(lm: LoadedModel) -> dict[str, str]:
    """The labels that probes of this model can be fitted to, in words, by name: first those of its
    task.
    """
    task = lm.task
    if task is None:
        own = {}
    else:
        own = {name: name.capitalize() for name in task.token_labels(task.held_out(1).ids)}
    return own | probes.FROM_TEXT | {probes.TABLE: probes.OF_TABLE}


@check_settings
def probe(lm: LoadedModel, label: str, text: str | None = None) -> Probed:
    """How well a label of tokens can be read from the stream after each layer: see
    `gptviz.interp.reading.probes`.

    Args:
        label: one of `probe_labels`.
        text: what is read; by default the data that was held out of training, as always for a label
            of the task, or what the model writes itself where its data are not known. For the label
            "table" a CSV table with the columns text and label: each label is that of the last
            token of its text.
    """
    rows, labels = _label_rows(lm, label, text)
    return probes.probe(lm.model, rows, labels, label=probe_labels(lm)[label])


def _label_rows(
    lm: LoadedModel, label: str, text: str | None
) -> tuple[Sequence[Tensor], list[list[str | None]]]:
    """The rows that are read, and of each the labels of its tokens."""
    if label not in (known := probe_labels(lm)):
        raise ValueError(f"{lm.name} has no label {label!r:.40}: choose one of {', '.join(known)}")
    if label == probes.TABLE:
        table = labelled_of((text or "").encode(), "table")
        # tables are often sorted by their labels
        order = np.random.default_rng(0).permutation(len(table))
        read = [lm.seen(lm.encode(table.texts[i])) for i in order[: probes.MOST_TOKENS]]
        names = [table.names[table.labels[i]] for i in order[: len(read)]]
        return read, [
            [*([None] * (len(row) - 1)), name] for row, name in zip(read, names, strict=True)
        ]
    if label not in probes.FROM_TEXT and lm.task is not None:
        # from the last token nothing is guessed
        ids = lm.task.held_out(probes.MOST_TOKENS // lm.task.length).ids[:, :-1]
        own = [
            [None if value < 0 else str(value) for value in row]
            for row in lm.task.token_labels(ids)[label].tolist()
        ]
        return [torch.from_numpy(row) for row in ids], own
    read = rows_to_fit(lm, text, probes.MOST_TOKENS)
    pieces = [[lm.tokenizer.piece(one) for one in row.tolist()] for row in read]
    return read, [probes.text_labels(some, label) for some in pieces]


@check_settings
def label_direction(
    lm: LoadedModel, label: str, value: str, text: str | None = None, *, block: int | None = None
) -> Direction:
    """The direction that leads to the tokens that have one label from those that have another: the
    difference of their means. It is kept as `direction` keeps its own.

    Args:
        label: as in `probe`, and so is `text`.
        value: the label that it leads to, one of `Probed.classes`.
        block: as in `direction`.
    """
    lm = lm.original
    read, labels = _label_rows(lm, label, text)
    flat = [one for row in labels for one in row]
    streams = probes.streams(lm.model, read, np.array([one is not None for one in flat]))
    begun = [number for row in beginnings(row.tolist() for row in read) for number in row]
    texts = [
        [number for number, one in zip(begun, flat, strict=True) if one is not None and is_it(one)]
        for is_it in (value.__eq__, value.__ne__)
    ]
    after = [
        index
        for index, layer in enumerate(layers(lm.model.config))
        if layer.tap.endswith("resid_post")
    ]
    every = torch.from_numpy(streams[after]).transpose(0, 1)
    has = torch.tensor([one == value for one in flat if one is not None])
    called = fitted.name_with_digest(
        f"{label}-{value}", _digest(lm, "label", label, value, text, str(block))
    )
    found = directions.contrast(every[has], every[~has], texts=(texts[0], texts[1]))
    return _keep_direction(lm, called, *found, block)


@check_settings
def direction(
    lm: LoadedModel,
    toward: Sequence[str],
    away: Sequence[str],
    *,
    block: int | None = None,
    how: HowFound = "means",
    name: str = "direction",
) -> Direction:
    """The direction in the stream of this model, without edits, that leads from the texts of one
    list to those of another, at their last tokens. It is found on three quarters of each list,
    tested on the others, and kept in the user's folder: its edit is `lm.edited(direction.edit(2))`.

    Args:
        toward: the texts that it leads to.
        away: the texts that it leads away from; if there are as many, those at the same place are a
            pair.
        block: after which block it acts, counted from 0; after all of them unless given.
        how: "means", the difference of the means, or "component", the first principal component.
        name: what it is called; a digest of the model and of all this is added to it.
    """
    lm = lm.original
    found_by = repr((tuple(toward), tuple(away), block, how))
    called = fitted.name_with_digest(name, _digest(lm, found_by))
    if (known := directions.find_direction(called)) is not None:
        return known
    rows = [[lm.seen(lm.encode(text)) for text in texts] for texts in (toward, away)]
    every = directions.stream_at_ends(lm.model, [*rows[0], *rows[1]]).float().cpu()
    lists = every[: len(toward)], every[len(toward) :]
    read = [[tuple(row.tolist()) for row in some] for some in rows]
    return _keep_direction(lm, called, *directions.contrast(*lists, how, (read[0], read[1])), block)


def _keep_direction(
    lm: LoadedModel, name: str, vectors: Tensor, separation: Tensor, block: int | None
) -> Direction:
    """The direction with these vectors [block, d_model], which is kept; it acts after this block,
    or all of them.
    """
    count = lm.model.config.n_layer
    if block is not None:
        check_number(whole_number(0, count - 1), "block", block)
    acts = range(count) if block is None else (block,)
    direction = Direction(name, {each: vectors[each].clone() for each in acts}, separation.numpy())
    directions.keep(direction)
    return direction


def _digest(lm: LoadedModel, *settings: str | None) -> str:
    """Tells the weights of a model, its edits and some settings from all others."""
    said = repr((lm.model.config, lm.edits, lm.edit_text, settings)).encode(
        "utf-8", "backslashreplace"
    )
    return hash_weights(lm.model, said)[:32]


def hash_weights(model: Transformer, before: bytes = b"") -> str:
    """The hash of some bytes and of the weights of a model. It is computed once, and again where a
    weight was changed in place.
    """
    tensors = list(model.state_dict().values())
    versions = [tensor._version for tensor in tensors]
    known = _HASHES.setdefault(model, {})
    if known.get(before, (None, ""))[0] != versions:
        known[before] = versions, hash_tensors(before, tensors)
    return known[before][1]


def hash_tensors(said: bytes, tensors: Iterable[Tensor]) -> str:
    """The SHA-256 of some bytes and of the numbers of tensors."""
    digest = hashlib.sha256(said)
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
