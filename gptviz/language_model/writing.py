"""Texts that a language model writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal

import numpy as np
from torch import Tensor

from gptviz.generate.decoding import Beams, beam_search
from gptviz.generate.generation import Generation, until_drawn, without_end
from gptviz.generate.sampling import Sampling
from gptviz.generate.speculation import (
    DRAFTED,
    Drafter,
    LookupDrafter,
    ModelDrafter,
    Speculated,
    Speculation,
)
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine import progress
from gptviz.settings.kinds import Length, LengthPenalty, Size
from gptviz.settings.known_names import name_known
from gptviz.text import Tokenizer

from .core import LoadedModel, decode_answer, end_tokens, special_tokenizer
from .settings import check_settings


@check_settings
def generation(
    lm: LoadedModel, prompt: str, sampling: Sampling | None = None, **options: Any
) -> Generation:
    """A `Generation` that begins with the prompt; `options` are the arguments of that class."""
    _check_continues(lm)
    return Generation(
        lm.model, lm.encode(prompt), sampling, **{"never": lm.tokenizer.unused_ids} | options
    )


def _check_continues(lm: LoadedModel) -> None:
    if lm.model.config.kind == "classifier":
        raise ValueError(f"{lm.name} is a classifier and writes no text: classify the text instead")
    if lm.model.config.kind == "encoder-decoder":
        raise ValueError(f"{lm.name} answers a text and does not continue it: ask for its answer")


def sequence_length(lm: LoadedModel) -> int | None:
    """How many tokens each sequence of the model's task has; None without a task, or where they
    are not equally long.
    """
    task = lm.task
    if task is None:
        return None
    return task.sequence_length


@check_settings
def to_write(lm: LoadedModel, length: int, tokens: int) -> int:
    """How many of so many `tokens` are written after `length` tokens: no more than complete a
    sequence of its task.
    """
    whole = sequence_length(lm)
    if whole is None:
        return tokens
    return min(tokens, max(0, whole - length))


@check_settings
def generate(
    lm: LoadedModel,
    prompt: str,
    max_new_tokens: Length = 200,
    *,
    go_on: bool = False,
    slide: int = 1,
    **sampling: Any,
) -> str:
    """The text that follows `prompt`, without the prompt; `sampling` are the fields of `Sampling`.

    For an encoder–decoder, this is its `answer`: with its likeliest tokens unless a `sampling` is
    given.

    Args:
        max_new_tokens: the most tokens that are written; fewer where the model ends its text, or a
            sequence of its task ends.
        go_on: write on there; an end token is then a part of the text.
        slide: how many tokens a decoder forgets at a time past its context length, see
            `Generation`; more are faster.
    """
    if lm.model.config.kind == "encoder-decoder":
        return answer(lm, prompt, min(max_new_tokens, lm.model.config.context_length), **sampling)
    grown = generation(lm, prompt, _sampling(sampling), slide=slide)
    ends = frozenset() if go_on else end_tokens(lm)
    if go_on:
        most = max_new_tokens
    else:
        most = to_write(lm, grown.prompt_length, max_new_tokens)
    tokens = [
        int(step.tokens[0])
        for step in progress.report_each(until_drawn(grown, ends), most, "token")
    ]
    return lm.tokenizer.continuation(without_end(tokens, ends)[0])


@check_settings
def speculate(
    lm: LoadedModel,
    prompt: str,
    drafter: LoadedModel | Literal["prompt"],
    max_new_tokens: Length = 200,
    *,
    drafted: int = DRAFTED,
    go_on: bool = False,
    **sampling: Any,
) -> Speculated:
    """A text drawn from this model with the help of a drafter, as rounds: what was drafted,
    accepted, refused, and why.

    The text is distributed as that of `generate`. With the same seed it is another one, unless the
    temperature is 0.

    Args:
        drafter: a smaller model with the same vocabulary; or "prompt", which copies what followed
            the last tokens earlier in the text.
        max_new_tokens: the most tokens that are written; fewer as in `generate`.
        drafted: how many tokens a round drafts at most, from 1 to 16.
        go_on: write on where the model ends its text, or a sequence of its task ends.
        sampling: the fields of `Sampling`, for both models.
    """
    grown = speculation(
        lm, lm.encode(prompt), drafter, _sampling(sampling), drafted=drafted, go_on=go_on
    )
    if go_on:
        most = max_new_tokens
    else:
        most = to_write(lm, len(grown.ids), max_new_tokens)
    return Speculated(tuple(grown.rounds(most)))


@check_settings
def speculation(
    lm: LoadedModel,
    ids: Tensor,
    drafter: LoadedModel | Literal["prompt"],
    sampling: Sampling,
    *,
    drafted: int = DRAFTED,
    go_on: bool = False,
) -> Speculation:
    """A `Speculation` that begins with the ids [T] of a prompt; the arguments are those of
    `speculate`.
    """
    _check_continues(lm)
    if isinstance(drafter, str):
        if drafter != "prompt":
            raise ValueError(f'{drafter!r:.80} is no drafter: give "prompt", or an opened model')
        proposes: Drafter = LookupDrafter(lm.tokenizer.vocab_size)
    else:
        _check_continues(drafter)
        if _used_labels(drafter.tokenizer) != _used_labels(lm.tokenizer):
            sizes = f"{drafter.tokenizer.vocab_size:,} and {lm.tokenizer.vocab_size:,} tokens"
            raise ValueError(
                f"{drafter.name} cannot draft for {lm.name}: their vocabularies differ ({sizes})"
            )
        proposes = ModelDrafter(
            drafter.model, sampling, drafter.tokenizer.unused_ids, lm.tokenizer.vocab_size
        )
    never = lm.tokenizer.unused_ids
    ends = frozenset[int]() if go_on else end_tokens(lm)
    return Speculation(
        lm.model, proposes, ids, sampling, most_drafted=drafted, never=never, ends=ends
    )


def _used_labels(tokenizer: Tokenizer) -> list[str]:
    """The visible forms of the tokens, without the unused ones at the end."""
    return tokenizer.labels()[: tokenizer.vocab_size - len(tokenizer.unused_ids)]


@check_settings
def answer(lm: LoadedModel, text: str, longest: Size | None = None, **sampling: Any) -> str:
    """An encoder–decoder's answer to `text`, as `decoded` returns it; `sampling` are the fields of
    `Sampling`.
    """
    return lm.tokenizer.decode(
        decode_answer(lm, text, longest, _sampling(sampling) if sampling else None)[0]
    )


@check_settings
def beams(
    lm: LoadedModel,
    text: str,
    width: Size,
    longest: Size | None = None,
    length_penalty: LengthPenalty = 0.0,
) -> Beams:
    """The answers to `text` that a beam search of this `width` finds: see
    `gptviz.generate.decoding.beam_search`.

    Args:
        width: how many outputs are kept at each step; 1 is greedy decoding.
        longest: the most tokens of an answer, its end token included; by default the context.
        length_penalty: 0 compares the probabilities of whole answers, which favours short ones; 1
            compares the mean per token.
    """
    source = lm.source(text)
    special = special_tokenizer(lm)
    ends = special.start, special.end
    return beam_search(lm.model, source, *ends, width, longest, length_penalty, special.unused_ids)


@check_settings
def beam_sums(lm: LoadedModel, search: Beams) -> LabelledArray:
    """The log-probability of each candidate of a beam search, in nats: of its last token, and the
    sum over all its tokens. [output, of] without the root; the name of an output is its text, and
    says where it was cut.
    """
    texts = [lm.tokenizer.decode(ids) for ids in search.outputs]
    names = list[str]()
    values = list[tuple[float, float]]()
    for node, text in zip(search.nodes, texts, strict=True):
        if node.parent is None:
            continue
        # a special token has no text
        if text == texts[node.parent]:
            end = lm.tokenizer.label(node.token)
        else:
            end = ""
        names.append(f"{text}{end}{'' if node.kept else ' (cut)'}")
        values.append((node.log_probability, node.total))
    axes = (Axis("output", tuple(names)), Axis("of", ("its last token", "all of it")))
    return LabelledArray(np.array(values), axes, "log-probability (nats)")


def _sampling(settings: Mapping[str, Any]) -> Sampling:
    """How tokens are drawn, from the fields of `Sampling` by name. A TypeError if there is no such
    field.
    """
    known = [field.name for field in fields(Sampling)]
    for name in settings:
        if name not in known:
            raise TypeError(
                f"{name!r:.40} is no setting of how tokens are drawn{name_known(name, known)}"
            )
    return Sampling(**settings)
