"""Dictionaries of a language model: fitted, kept, found again, and what they read in a prompt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import torch

from gptviz.data.registry import source_from
from gptviz.data.trained_on import draw_seed
from gptviz.interp.changing.ablation import Rows
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.dictionaries import dictionary as kept
from gptviz.interp.dictionaries import features as of_features
from gptviz.interp.dictionaries import fitting
from gptviz.interp.dictionaries.dictionary import Dictionary, Target
from gptviz.interp.dictionaries.fitting import FittedKind
from gptviz.interp.dictionaries.quality import Quality, measure_quality
from gptviz.interp.held_out import split_rows
from gptviz.interp.trace import run
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine import progress
from gptviz.pretrained import sae_lens
from gptviz.runs import fitted
from gptviz.settings.kinds import Cost, Seed, Size

from .core import LoadedModel, find_tokens
from .data import effort_of_rows, rows_to_fit, tested_rows
from .fitted import hash_tensors, hash_weights
from .settings import check_settings

# The tokens of a text that are read at most, the last fifth of which is held out, and those over
# which a dictionary is measured.
MOST_TOKENS = 200_000
MOST_MEASURED = 16_384
# The share of the distinct rows that is held out.
HELD_OUT = 0.2
# The rows of the data that are read at a time, and how often they are drawn until one is new.
ROWS = 64
MOST_DRAWN = 100


@check_settings
def fit_dictionary(
    lm: LoadedModel,
    block: int,
    size: Size | None = None,
    kind: FittedKind = "topk",
    *,
    k: Size = 16,
    cost: Cost = 0.4,
    steps: Size = 2_000,
    seed: Seed = 0,
    text: str | None = None,
    name: str | None = None,
    target: Target = "stream",
) -> Dictionary:
    """A dictionary of the stream of this model, without edits, after a block, or of the output of
    the block's MLP, a transcoder; it is kept in the user's folder, and its features are units. See
    `gptviz.interp.dictionaries`.

    Args:
        size: the number of features; default: four times as many as the stream has numbers.
        k: of "topk", how many features are active at a token.
        cost: of "relu", what the sum of the activations costs beside the error.
        seed: decides where the features begin, and which tokens a step reads.
        text: what it is fitted to, without its last fifth; by default the data that the model was
            trained on, or what it writes itself where they are not known.
        name: what it is called; a digest of its numbers is added to it. By default it is called
            after the block.
        target: what the features give back: the stream after the block, or the MLP's output, from
            what the MLP reads.
    """
    lm = lm.original
    with progress.part(0, 5, doing="reading the text"):
        read, wanted = fitting.read_and_given(lm.model, block, target, to_fit(lm, text))
    with progress.part(1, 5, 4):
        size = 4 * lm.model.config.d_model if size is None else size
        given = None if target == "stream" else wanted
        fresh = fitting.Fit(
            read, block, size, kind, k=k, cost=cost, steps=steps, seed=seed, given=given
        ).finish()
    return keep_dictionary(lm, fresh, usual_name(block, target) if name is None else name)


def usual_name(block: int, target: Target) -> str:
    """What a dictionary is called that was given no name."""
    return f"{'MLP' if target == 'mlp' else 'block'} {block}"


def effort_of_dictionary(
    lm: LoadedModel, size: int | None = None, steps: int = 2_000, text: str | None = None
) -> float:
    """About how many multiplications it takes to fit a dictionary: see `fit_dictionary`."""
    lm = lm.original
    size = 4 * lm.model.config.d_model if size is None else size
    reading = effort_of_rows(lm, text, min(MOST_TOKENS, fitting.MOST_VECTORS))
    return reading + fitting.effort_of_fit(lm.model.config.d_model, size, steps)


def keep_dictionary(lm: LoadedModel, fresh: Dictionary, name: str) -> Dictionary:
    """A dictionary of this model, kept under this name and a digest."""
    of_model = replace(fresh, model=hash_weights(lm.original.model))
    named = replace(
        of_model, name=fitted.name_with_digest(name, hash_tensors(b"", of_model.tensors().values()))
    )
    kept.keep(named)
    return named.to(lm.device)


@check_settings
def dictionaries(lm: LoadedModel) -> list[str]:
    """The names of the dictionaries that were fitted to this model, as it is without edits; the one
    that ships comes first.
    """
    every = {name: kept.find_dictionary(name) for name in kept.names()}
    fitting = {
        name: each.model
        for name, each in every.items()
        if each is not None and kept.fits_config(each, lm.model.config)
    }
    return [name for name, model in fitting.items() if model == hash_weights(lm.original.model)]


@check_settings
def open_dictionary(lm: LoadedModel, name: str | None = None) -> Dictionary:
    """The dictionary of this name, or the first of `dictionaries`."""
    if name is None and not (known := dictionaries(lm)):
        raise ValueError(
            f"{lm.name} has no dictionary yet: fit one with gptviz dictionary, or "
            "lm.fit_dictionary(block)"
        )
    return kept.dictionary_for(known[0] if name is None else name, lm.model.config).to(lm.device)


@check_settings
def features(lm: LoadedModel, prompt: str, dictionary: str | None = None) -> LabelledArray:
    """How active the features of a dictionary are at each token of a prompt, [token, feature]: of
    all that are active at some token, the most active first. A feature is called by its number.
    """
    read = open_dictionary(lm, dictionary)
    ids, _ = lm.inputs(prompt)
    active = read.encode(
        run(lm.model, ids[None], [read.tap], logits_at=slice(-1, None))[read.tap][0]
    ).numpy(force=True)
    most = np.argsort(-active.sum(0), kind="stable")
    some = most[: int((active > 0).any(0).sum())]
    axes = (
        Axis("token", tuple(map(lm.tokenizer.label, ids.tolist()))),
        Axis("feature", tuple(map(str, some.tolist()))),
    )
    return LabelledArray(active[:, some], axes, "activation")


@check_settings
def feature_attribution(
    lm: LoadedModel,
    prompt: str,
    dictionary: str | None = None,
    token: str | int | None = None,
    position: int | None = None,
    against: str | int | None = None,
) -> LabelledArray:
    """What each active feature of a dictionary adds to the logit of a token, and what the
    dictionary misses, [part]: see `gptviz.interp.dictionaries.features.direct_effects`.
    """
    ids, _ = lm.inputs(prompt)
    chosen, other = find_tokens(lm, token, against)
    return of_features.direct_effects(
        lm.model, ids.tolist(), open_dictionary(lm, dictionary), chosen, position, other
    )


@check_settings
def dictionary_quality(
    lm: LoadedModel, dictionary: str | None = None, text: str | None = None
) -> Quality:
    """How good a dictionary is over the data that was held out of training, or over the last fifth
    of the distinct rows of a text: see `gptviz.interp.dictionaries.quality`.

    Of a task whose sentences are so few that training reads all of them, a fifth of the distinct
    ones is held out of dictionaries.
    """
    if _knows_data(lm, text):
        held_out = _held_out(lm)
    else:
        held_out = _split(lm, text)[1]
    return measure_quality(lm.model, open_dictionary(lm, dictionary), held_out)


@check_settings
def compare_dictionaries(lm: LoadedModel, text: str | None = None) -> dict[str, Quality]:
    """How good each of the `dictionaries` of this model is, by its name, over the same text: see
    `dictionary_quality`.
    """
    names = dictionaries(lm)
    measured = (dictionary_quality(lm, name, text) for name in names)
    return dict(zip(names, progress.report_each(measured, len(names), "dictionary"), strict=True))


@check_settings
def write_dictionary(lm: LoadedModel, dictionary: str, path: str | Path) -> None:
    """Write a dictionary: to a file that ends with `.safetensors`, in float16 as those that ship;
    else to a folder of SAELens.
    """
    path = Path(path).absolute()
    written = open_dictionary(lm, dictionary)
    if path.suffix != ".safetensors":
        sae_lens.write(path, vars(written), written.kind, lm.name)
        return
    tensors = written.tensors().items()
    fitted.write(
        path,
        {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in tensors},
    )


@check_settings
def read_dictionary(lm: LoadedModel, folder: str | Path, name: str | None = None) -> Dictionary:
    """The dictionary in a folder of SAELens, kept as one of this model, under the name of the
    folder unless another is given.
    """
    folder = Path(folder).absolute()
    config = lm.model.config
    foreign = Dictionary(**sae_lens.read_folder(folder, centres=config.norm == "layernorm"))
    if not kept.fits_config(foreign, config):
        raise ValueError(
            f"{folder.name} reads vectors of {foreign.encoder.shape[1]:,} numbers after block "
            f"{foreign.block}; {lm.name} has "
            f"{config.n_layer} blocks, and vectors of {config.d_model:,} numbers"
        )
    return keep_dictionary(lm, foreign, folder.name if name is None else name)


def to_fit(lm: LoadedModel, text: str | None) -> Iterator[Rows]:
    """Rows of the model's data as training draws them, without end and without those held out; or
    the first four fifths of a text.
    """
    if not _knows_data(lm, text):
        yield from _split(lm, text)[0]
        return
    data = source_from(dict(lm.card.source or {})).data(lm.tokenizer, lm.model.config)
    held_out = {tuple(row) for some in _held_out(lm) for row in some.reading.ids.tolist()}
    drawn = MOST_DRAWN
    for step in count():
        batch = data.training(ROWS, draw_seed(0, step, "dictionary"))
        new = [i for i, row in enumerate(batch.inputs[0].tolist()) if tuple(row) not in held_out]
        drawn = MOST_DRAWN if new else drawn - 1
        if not drawn:
            raise ValueError(
                f"all rows that {lm.name} is trained on are equal to rows held out: give a text"
            )
        if new:
            some = batch.rows(new).to(lm.device)
            yield Rows(Inputs(*some.inputs), some.targets)


def _knows_data(lm: LoadedModel, text: str | None) -> bool:
    """Whether a dictionary is fitted to the data that the model learned from: no text is given, and
    its card names them.
    """
    return text is None and lm.card.source is not None


def _held_out(lm: LoadedModel) -> list[Rows]:
    """The rows of the model's data that no dictionary is fitted to."""
    every = tested_rows(lm, MOST_MEASURED)["loss"]
    if lm.task is None or lm.task.is_new:
        return every
    ids = torch.cat([some.reading.ids for some in every])
    targets = [some.targets for some in every]
    _, held_out = split_rows([tuple(row) for row in ids.tolist()], HELD_OUT)
    return [Rows(Inputs(ids[held_out]), torch.cat(targets)[held_out])]


def _split(lm: LoadedModel, text: str | None) -> tuple[list[Rows], list[Rows]]:
    """The rows of a text, or those that the model writes itself, every prediction of which counts:
    those that a dictionary is fitted to, and those held out.
    """
    every = rows_to_fit(lm, text, MOST_TOKENS)
    # [rows, T]; the last may be shorter
    ids = torch.stack([row for row in every if len(row) == len(every[0])]).to(lm.device)
    read = [tuple(row) for row in ids.tolist()]
    fitted_to, held_out = split_rows(read, max(HELD_OUT, 1 / len(set(read))))
    if not fitted_to:
        fitted_to = held_out
        held_out = []
    if not held_out or ids.shape[1] < 2:
        raise ValueError(
            "the text is too short for a dictionary, or repeats itself: it needs two different "
            "rows of tokens at least, one of them held out"
        )
    held_out = held_out[: 1 + MOST_MEASURED // ids.shape[1]]
    parts = [
        [Rows(Inputs(some[:, :-1]), some[:, 1:]) for some in ids[part].split(ROWS)]
        for part in (fitted_to, held_out)
    ]
    return parts[0], parts[1]
