"""What single heads and neurons of a language model do."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from gptviz.interp.dictionaries import features as of_features
from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.reading.next_token import probabilities
from gptviz.interp.trace import run
from gptviz.interp.units import head_scores as scoring
from gptviz.interp.units import head_weights
from gptviz.interp.units import neurons as of_neurons
from gptviz.interp.units.activity import Activity, Observable, observe
from gptviz.interp.units.head_activity import HeadSide
from gptviz.interp.units.head_scores import (
    HeadScores,
    Stack,
    scored_tokens,
    scores_of_stack,
    stacks_of,
)
from gptviz.interp.units.head_scores import repeated_tokens as draw_repeated_tokens
from gptviz.interp.units.head_weights import HeadInput, copying
from gptviz.interp.units.layers import observable_layer
from gptviz.interp.units.unit import unit
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine import progress
from gptviz.settings.kinds import Count, CountOrNone, Length

from .core import LoadedModel, answer_space_of, end_tokens, stack_of
from .data import rows, tested_rows
from .dictionaries import open_dictionary
from .settings import check_settings
from .writing import generate

_OF_DICTIONARY = "dictionary."


@check_settings
def activity(
    lm: LoadedModel,
    layer: str,
    text: str | None = None,
    most: Count = 16_384,
    *,
    written: Length = 0,
    side: HeadSide = "query",
) -> Activity:
    """What the units of a layer do over the rows of `text`, or of the data held out: where each has
    its highest numbers, how often, how much, and at which tokens.

    Args:
        layer: "blocks.1.mlp", whose neurons have their activations; "blocks.1.attention", whose
            heads have the length of the vector that each adds to the stream; or "dictionary.NAME",
            whose features have their activations.
        most: how many tokens are read at most.
        written: how many tokens the model writes after `text`; then it reads what it wrote, and
            nothing else.
        side: of heads, whether the number is at the token that reads (query), or at the token that
            is read (key).
    """
    units = observable(lm, layer, side)
    progress.report(0, 0, doing="getting the text")
    if written and text is not None:
        # to forget tokens one by one would take ten times as long
        slide = -(-lm.model.config.context_length // 2)
        text = generate(lm, text, written, go_on=True, seed=0, slide=slide) or text
    for observation in observe(units, rows(lm, text, written or most)):
        activity = observation.activity()
        progress.show_so_far(activity)
    return activity


@check_settings
def neurons(lm: LoadedModel, block: int, text: str | None = None, most: Count = 16_384) -> Activity:
    """The `activity` of the neurons of a block's MLP."""
    return activity(lm, f"blocks.{block}.mlp", text, most)


def observable(lm: LoadedModel, layer: str, side: HeadSide = "query") -> Observable:
    """The units of a layer, which is named as in `activity`; a ValueError if it is not made of
    units.
    """
    if lm.model.encoder is not None:
        raise ValueError(
            f"{lm.name} has two stacks: use gptviz.interp.units.activity.observe on one of them"
        )
    if layer.startswith(_OF_DICTIONARY):
        return of_features.observable_features(
            lm.model, open_dictionary(lm, layer.removeprefix(_OF_DICTIONARY))
        )
    return observable_layer(lm.model, layer, side)


@check_settings
def promoted(lm: LoadedModel, name: str, most: Count = 8) -> LabelledArray:
    """The tokens whose logits a neuron or a feature, such as "blocks.1.mlp.neuron.17", raises most,
    then those that it lowers most, the lowest last: `most` of each. How much an activation of 1
    adds: see `gptviz.interp.units.neurons.promoted_tokens`.
    """
    of = unit(name, lm.model.config)
    if of.is_neuron:
        written = of_neurons.columns(lm.model, of.block or 0)[:, of.index or 0]
    else:
        read, feature = _feature(lm, name)
        written = read.decoder[feature]
    values = of_neurons.promoted_tokens(lm.model, written)
    order = np.argsort(-values, kind="stable").tolist()
    most = min(most, len(order) // 2)
    some = [*order[:most], *order[len(order) - most :]]
    return LabelledArray(
        values[some], (Axis("token", tuple(map(lm.tokenizer.label, some))),), "added to the logit"
    )


@check_settings
def unit_set(
    lm: LoadedModel, prompt: str, name: str, value: float, top: Count = 5
) -> LabelledArray:
    """The guesses after `prompt` as the model is, and with a neuron or a feature set to `value` at
    every token: the probabilities of the `top` likeliest of both, [before or after, guess]. The
    unit is named as in `promoted`.
    """
    ids, _ = lm.inputs(prompt)
    read = (
        run(one.model, ids[None], ["logits"], logits_at=slice(-1, None))
        for one in (lm, lm.edited(f"{name}={value:g}"))
    )
    sides = [probabilities(one["logits"].flatten(0, -2)[-1].float().cpu()) for one in read]
    some = list(
        dict.fromkeys(i for side in sides for i in np.argsort(-side, kind="stable")[:top].tolist())
    )
    what = {"label": "label", "token": "next token"}[answer_space_of(lm).noun]
    axes = (
        Axis("side", ("before", "after")),
        Axis("guess", tuple(map(answer_space_of(lm).label, some))),
    )
    return LabelledArray(np.stack(sides)[:, some], axes, f"probability of the {what}")


@check_settings
def nearest_features(lm: LoadedModel, name: str, most: Count = 8) -> LabelledArray:
    """The features of the same dictionary that write most alike, [feature]: see
    `gptviz.interp.dictionaries.features.nearest_features`.
    """
    return of_features.nearest_features(*_feature(lm, name), most)


@check_settings
def written_by(lm: LoadedModel, prompt: str, name: str) -> LabelledArray:
    """What each part of the model adds to the activation of a feature, [part], at the token of
    `prompt` where that is highest: see `gptviz.interp.dictionaries.features.written_by_parts`.
    """
    ids, _ = lm.inputs(prompt)
    at, values = of_features.written_by_parts(lm.model, ids, *_feature(lm, name))
    return replace(values, unit=f"added, at {lm.tokenizer.label(int(ids[at]))}")


def _feature(lm: LoadedModel, name: str) -> tuple[Dictionary, int]:
    """The dictionary of the feature of this name, and the number of the feature."""
    of = unit(name, lm.model.config)
    if of.kind != "feature" or of.index is None:
        raise ValueError(
            f"{name} is no feature: name one as in dictionary.{lm.name}-features.feature.17"
        )
    read = open_dictionary(lm, of.called)
    if of.index >= len(read.encoder):
        raise ValueError(
            f"{name}: there is no feature {of.index}; features are counted from 0 to "
            f"{len(read.encoder) - 1}"
        )
    return read, of.index


@check_settings
def repeated_tokens(lm: LoadedModel) -> Tensor:
    """Random tokens, each sequence repeated once, as a text of this model, [sequences, tokens]; a
    ValueError without room.
    """
    tokenizer = lm.tokenizer
    special = {lm.tokenizer.padding, lm.tokenizer.unknown_id, *end_tokens(lm)}
    without = {token for token in special if token is not None}
    room = lm.model.config.context_length
    ids = draw_repeated_tokens(
        tokenizer.vocab_size, room, without=without, before=tokenizer.before, after=tokenizer.after
    )
    return ids.to(lm.device)


def repeats_of(lm: LoadedModel) -> Tensor | None:
    """The `repeated_tokens`, or None where there is no room for them: scores over them have no
    meaning there.
    """
    with suppress(ValueError):
        return repeated_tokens(lm)
    return None


@check_settings
def second_half(lm: LoadedModel, repeated: Tensor) -> int:
    """The position at which the second half of `repeated_tokens` begins."""
    before = len(lm.tokenizer.before)
    after = len(lm.tokenizer.after)
    return before + (repeated.shape[1] - before - after) // 2


@check_settings
def head_scores(
    lm: LoadedModel,
    prompt: str | None = None,
    *,
    stack: Stack = "decoder",
    held_out: CountOrNone = 0,
    losses: bool = False,
) -> HeadScores:
    """The scores of every head of one stack: see `gptviz.interp.units.head_scores`. In a text in
    which no token comes back, the scores of repeats are over repeated random tokens.

    Args:
        prompt: the text that the heads read, at most 1,024 tokens of it; without it they read
            repeated random tokens. It is the source of an encoder–decoder, whose decoder reads its
            own answer.
        stack: whose heads these are.
        held_out: about how many tokens of the data held out of training the heads read, in the
            place of a prompt.
        losses: whether there is also `delta_loss`, how much the loss rises without the head: a pass
            for every head.
    """
    if prompt is None and lm.model.encoder is not None:
        raise ValueError(
            f"{lm.name} reads a text and writes another: give a prompt for its heads to read"
        )
    model = stack_of(lm, stack)
    repeats = repeats_of(lm) if lm.model.encoder is None else None
    if held_out:
        scores = scoring.scores_over_texts(model, rows(lm, most=held_out), repeats)
        if stack == "decoder" and lm.model.config.kind != "classifier":
            scores = scores.with_scores(copying=copying(lm.model))
    else:
        scores = scores_of_stack(lm.model, stack, *_read_by_heads(lm, prompt), repeats)
    if losses:
        return with_losses(lm, scores, prompt, held_out=held_out)
    return scores


def with_losses(
    lm: LoadedModel, scores: HeadScores, prompt: str | None = None, *, held_out: int = 0
) -> HeadScores:
    """Scores that `head_scores` gave of the same text, with `delta_loss`: a pass for every head."""
    if held_out:
        texts = tested_rows(lm, held_out)["loss"]
        return scores.with_losses(scoring.rises_without(lm.model, texts, scores.heads))
    ids, source = _read_by_heads(lm, prompt)
    first = second_half(lm, ids) if prompt is None else 1
    rises = scoring.losses_without(lm.model, ids, scores.heads, source, counted_from=first)
    return scores.with_losses(rises)


def _read_by_heads(lm: LoadedModel, prompt: str | None) -> tuple[Tensor, Tensor | None]:
    """The tokens [B, T] of a prompt, or repeated random ones, and the source [1, S] of an
    encoder–decoder.
    """
    if prompt is None:
        return repeated_tokens(lm), None
    ids, source = lm.inputs(prompt)
    read = scored_tokens(ids, lm.model.config)[None]
    return read, None if source is None else source[None]


@check_settings
def composition(
    lm: LoadedModel, reads: HeadInput = "key", *, stack: Stack = "decoder"
) -> LabelledArray:
    """How much of what one head of a stack writes another one reads by its query, key or value,
    [reader, writer], only from weights: see `gptviz.interp.units.head_weights.composition`.
    """
    return head_weights.composition(stack_of(lm, stack), reads)


@check_settings
def heads(
    lm: LoadedModel, prompt: str | None = None, *, losses: bool = False
) -> list[dict[str, Any]]:
    """The `head_scores` of all stacks, a row for each head; None if one has no meaning. See
    `gptviz.interp.units.head_scores`.
    """
    every = (head_scores(lm, prompt, stack=stack, losses=losses) for stack in stacks_of(lm.model))
    return [row for scores in every for row in scores.rows()]
