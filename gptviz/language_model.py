"""A language model: a trained transformer with its tokenizer, which gives texts, probabilities and every tensor between."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import fields, replace
from itertools import islice, takewhile
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gptviz.interp.changing import attribution_patching, patching
from gptviz.interp.changing import edits as unit_edits
from gptviz.interp.changing.ablation import NOT_COUNTED, Rows, loss
from gptviz.interp.changing.corrupting import likeliest_answers, one_token_changed, ranked
from gptviz.interp.changing.edits import Inputs
from gptviz.interp.changing.fewer_bits import FewerBits, divergences, errors, most_first, weight
from gptviz.interp.changing.patching import Patched, PromptPair
from gptviz.interp.changing.strength import STRENGTHS, losses_along
from gptviz.interp.compare import Side
from gptviz.interp.explaining import context_use as use
from gptviz.interp.explaining.attribution import Attribution, attribute
from gptviz.interp.explaining.circuit import MOST_NODES, Circuit, circuit
from gptviz.interp.explaining.circuit_check import Checked, check
from gptviz.interp.explaining.circuit_reads import means
from gptviz.interp.over_prompts import SAYS, Asked, How, Spread, measured, spread
from gptviz.interp.over_training.history import History
from gptviz.interp.over_training.measures import Given, Measure, Question, measure_named
from gptviz.interp.reading import embeddings
from gptviz.interp.reading.classification import judge, label_probabilities
from gptviz.interp.reading.costs import Costs, costs
from gptviz.interp.reading.experts import routing
from gptviz.interp.reading.lens import Lens, lens
from gptviz.interp.reading.next_token import probability_of
from gptviz.interp.reading.row_losses import row_losses
from gptviz.interp.reading.stream import StreamSummary, stream
from gptviz.interp.trace import Trace, run
from gptviz.interp.units.head_scores import repeated_tokens, scored, scores_of_model, with_losses
from gptviz.interp.units.neurons import Activity, observe
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import progress
from gptviz.model import Transformer
from gptviz.model.lora import MergedTransformer
from gptviz.text import CharTokenizer, Encoding, SpecialTokensTokenizer, Tokenizer

from .data.batches import Batch, Generated
from .data.classification import padded
from .data.registry import source_from, task_of
from .data.rows import first_batches, held_out_rows, rows_of_text
from .data.seen import MOST_ROWS, Row, data_rows, text_rows
from .data.trained_on import Share, Trained, followed
from .generate.decoding import Beams, beam_search, decode, until_end
from .generate.generation import Generation, until_drawn, window_start, without_end
from .generate.sampling import Sampling
from .generate.speculation import DRAFTED, Drafter, LookupDrafter, ModelDrafter, Speculated, Speculation
from .model.costs.effort import n_parameters
from .model.devices import device as choose_device
from .model.precision import STORED, said
from .model.precision import check as check_precision
from .runs import checkpoints, imports
from .runs.card import Card
from .settings.known_names import instead
from .text.datasets.base import Task
from .text.datasets.prompt_pairs import PromptRow
from .text.datasets.tasks import Modular
from .text.datasets.word_kinds import with_another_word
from .text.tokenizers.pieces import Piece, pieces

# The most bad rows of a list that a message names.
MOST_NAMED = 5
# Of a reference text for edits, the most tokens that are read, and how many at a time.
MOST_REFERENCE, LONGEST_PIECE = 8_192, 1_024
MOST_DRAWN = 10**8  # rows that a run was trained on are drawn again, if there are no more
MOST_ANSWERED = 10_000  # tokens of rows whose right answers are counted


class TextTrace(Trace):
    """A trace that knows its model and its text, as `LanguageModel.trace` returns it; `gptviz.show` draws it.

    Attributes:
        lm: the model.
        prompt: the text that it read.
        is_own: whether the model computed it by itself: no value was replaced by a function, and an encoder–decoder wrote its own
            answer.
    """

    def __init__(self, trace: Trace, lm: LanguageModel, prompt: str, *, is_own: bool) -> None:
        super().__init__(trace.ids, dict(trace), trace.source)
        self.lm, self.prompt, self.is_own = lm, prompt, is_own


class LanguageModel:
    """A trained model that is ready to use, as `gptviz.load` returns it.

    Attributes:
        name: the checkpoint's name.
        model: the transformer, in evaluation mode.
        tokenizer: text to ids and back.
        card: how it was made and how good it is.
        step: the training step of the snapshot, or None for the model as it was last saved.
        precision: what was asked for when it was opened, one of `gptviz.model.precision.PRECISIONS`.
        edits: what is switched off or replaced in it, as texts; see `edited`.
        edit_text: the reference text of these edits, or None if they need none.
    """

    def __init__(
        self,
        name: str,
        model: Transformer,
        tokenizer: Tokenizer,
        card: Card,
        step: int | None = None,
        precision: str = STORED,
    ) -> None:
        self.name, self.model, self.tokenizer, self.card = name, model, tokenizer, card
        self.step, self.precision = step, precision
        self.edits: tuple[str, ...] = ()
        self.edit_text: str | None = None
        self._original: LanguageModel | None = None

    @property
    def original(self) -> LanguageModel:
        """The same model without edits: itself where it has none."""
        return self if self._original is None else self._original

    def edited(self, *edits: str, text: str | None = None) -> LanguageModel:
        """This model with pieces switched off or replaced: all that it computes, from `trace` to `generate`, is with these edits.

        It shares all weights that are not edited, and none is touched. An edit is a unit and what becomes of it:

        - `blocks.1.attention.head.3`, `blocks.1.attention`, `blocks.1.mlp`, `blocks.1.mlp.neuron.17`, `embed`: switched off, what
          it computes is replaced by zero. Of a head that is what it hands to the output projection; of a whole attention or MLP,
          what it adds to the stream, its bias included.
        - `…=mean`: replaced by its mean over the tokens of `text`.
        - `blocks.1.attention.head.3=uniform`, `=previous`, `=from`, also of a whole attention: its pattern, over all tokens that
          it may read, on the previous token, or that over the beginning of `text`. Positions count from the beginning; a query
          beyond the end of `text` keeps its own row.
        - `blocks.0.mlp.neuron.17=4.2`: a neuron set to a number.
        - `blocks.0.mlp.expert.3`: an expert of a mixture adds nothing; the other experts keep the weights that the router gave.
        - `positions`, `positions=shuffled`: no positions; or the places of the context in a random order, always the same.
        - `weights=4bit.g32`, `blocks.0.mlp.up.weight=Q4_0`: all matrices, or one, in few bits: see `gptviz.model.quantising`.
          What they stand for is computed with in float32; the means of other edits are then those of this model.
        - `adapter=0.5`: of a LoRA adapter the strength: 0 is its base to the bit, 1 is as trained, 2 goes twice as far.

        Args:
            edits: added to those that this model has.
            text: the reference text of all edits, read as a prompt, a long one in pieces.

        Raises:
            ValueError: the model has no such unit, an edit is not possible or lacks a `text`, or this model's edits have another.
        """
        if not edits:
            return self
        if text is not None and self.edit_text not in (None, text):
            raise ValueError("the edits of this model have another reference text already: give all edits at once")
        model, reference = self.original.model, self.edit_text if text is None else text
        every = unit_edits.edits((*self.edits, *edits), model.config)
        used = reference if any(one.needs_text for one in every) else None
        twin = copy(self.original)
        twin.model = unit_edits.edited(model, every, () if used is None else self.original.readings(used))
        twin.edits, twin.edit_text, twin._original = tuple(one.text for one in every), used, self.original
        return twin

    def fewer_bits(self, kind: str, prompt: str | None = None, *, matrix: str | None = None) -> FewerBits:
        """What this model loses if its weights are kept in fewer bits: see `gptviz.interp.changing.fewer_bits`. The model with
        them is `lm.edited(f"weights={kind}")`.

        Args:
            kind: how a matrix is kept, such as "4bit.g32", "8bit.row" or "Q4_0": see `gptviz.model.quantising`.
            prompt: a text for the loss, and for how far each guess moves; without it, the loss is over held-out data, if they are
                here.
            matrix: the name of one matrix; all of them unless given.

        Raises:
            ValueError: there is no such kind or matrix; the prompt is empty, or given to a model that is no decoder; there is too
                little memory.
        """
        if prompt is not None and self.model.config.kind != "decoder":
            raise ValueError(
                f"{self.name} is a {self.model.config.kind}: leave the prompt out, and the loss is over held-out data"
            )
        twin = self.edited(f"{matrix or unit_edits.WEIGHTS}={kind}")
        config = self.model.config
        kept = unit_edits.quantisers(unit_edits.edits(twin.edits, config), config)
        found = FewerBits(twin.edits, weight(config, kept), most_first(errors(self.model, twin.model, kept)))
        rows: list[Rows] = []
        if prompt is not None:
            ids = self.inputs(prompt)[0]
            found = replace(found, divergence=divergences(self.model, twin.model, ids.tolist()))
            if len(ids) > 1:
                targets = torch.cat((ids[1:], ids.new_tensor([NOT_COUNTED])))
                rows, found = [Rows(Inputs(ids[None]), targets[None])], replace(found, text="the prompt")
        else:
            with suppress(ValueError, OSError):  # they are not here, or nobody knows what it was trained on
                rows = self.tested_rows()["loss"]
                found = replace(found, text="held-out data")
        return replace(found, loss=(loss(self.model, rows), loss(twin.model, rows))) if rows else found

    def readings(self, text: str) -> list[Inputs]:
        """The pieces of a reference text for edits, as the model reads it.

        Raises:
            ValueError: the text is empty or, for an encoder–decoder, too long.
        """
        config = self.model.config
        if config.kind != "decoder":
            ids, source = self.inputs(text)
            return [Inputs(ids[None], None if source is None else source[None])]
        pieces = self.encode(text)[:MOST_REFERENCE].split(min(config.context_length, LONGEST_PIECE))
        return [Inputs(piece[None]) for piece in pieces]

    def __repr__(self) -> str:
        config, step = self.model.config, "" if self.step is None else f" after {self.step:,} steps"
        step += f", edited ({', '.join(self.edits)})" if self.edits else ""
        return (
            f"<LanguageModel {self.name}{step}: {config.kind}, {n_parameters(self.model):,} parameters, "
            f"{self.tokenizer.vocab_size:,} tokens ({self.tokenizer.kind}), context "
            f"{config.context_length:,}, {said(self.model)}, on {self.device}>"
        )

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        return self.model.embed.weight.device

    def encode(self, text: str) -> Tensor:
        """The token ids [T] of `text`. What the vocabulary lacks is named in a warning.

        Raises:
            TypeError: it is no text.
            ValueError: the text is empty.
        """
        if not isinstance(text, str):
            raise TypeError(f'{text!r:.80} is no text: give a string, such as "O Romeo"')
        encoding = self.tokenizer.encode(text)
        if encoding.unknown:
            warnings.warn(encoding.unknown_sentence(), stacklevel=_depth() + 1)
        return self.tensor(encoding)

    def tensor(self, encoding: Encoding) -> Tensor:
        """The ids [T] of an encoding, on the model's device.

        Raises:
            ValueError: the encoding has no ids; for a classifier, none but those that are put around every text.
        """
        if self.model.config.kind == "classifier":
            if len(encoding.ids) <= len(self.tokenizer.before) + len(self.tokenizer.after):
                raise ValueError(f"the text to classify has {self.tokenizer.without}")
        elif not encoding.ids:
            raise ValueError("the prompt is empty: type at least one character for the model to go on from, or to answer")
        return torch.tensor(encoding.ids, device=self.device)

    def seen(self, ids: Tensor) -> Tensor:
        """The part of `ids` [T] that the model sees: the last `context_length`; for an encoder, the first."""
        if self.model.config.kind != "decoder":
            return ids.new_tensor(self.tokenizer.beginning(ids.tolist(), self.model.config.context_length))
        return ids[window_start(len(ids), self.model.config.context_length) :]

    def generation(self, prompt: str, sampling: Sampling | None = None, **options: Any) -> Generation:
        """A `Generation` that begins with the prompt; `options` are the arguments of that class.

        Raises:
            ValueError: the prompt is empty, or the model is a classifier, which writes nothing, or an encoder–decoder, which
                does not go on with a text.
        """
        self._check_continues()
        return Generation(self.model, self.encode(prompt), sampling, **{"never": self.tokenizer.unused_ids} | options)

    def _check_continues(self) -> None:
        if self.model.config.kind == "classifier":
            raise ValueError(f"{self.name} is a classifier and writes no text: classify the text instead")
        if self.model.config.kind == "encoder-decoder":
            raise ValueError(f"{self.name} answers a text and does not continue it: ask for its answer")

    @property
    def end_tokens(self) -> frozenset[int]:
        """The tokens that end a text, where the model has such; most models that were trained on chats have."""
        return frozenset(token for token in self.card.end_tokens if token < self.tokenizer.vocab_size)

    @property
    def sequence_length(self) -> int | None:
        """How many tokens each sequence of the model's task has; None without a task, or where they are not equally long."""
        task = self.task
        return None if task is None or task.end is not None else task.length

    def to_write(self, length: int, most: int) -> int:
        """How many of `most` tokens are written after `length` tokens: no more than complete a sequence of its task."""
        whole = self.sequence_length
        return most if whole is None else min(most, max(0, whole - length))

    def generate(self, prompt: str, max_new_tokens: int = 200, *, go_on: bool = False, slide: int = 1, **sampling: Any) -> str:
        """The text that follows `prompt`, without the prompt; `sampling` are the fields of `Sampling`.

        For an encoder–decoder, this is its `answer`: with its likeliest tokens unless a `sampling` is given.

        Args:
            prompt: what the model goes on with, or answers.
            max_new_tokens: the most tokens that are written; fewer where the model ends its text, or a sequence of its task ends.
            go_on: write on there; an end token is then a part of the text.
            slide: how many tokens a decoder forgets at a time past its context length, see `Generation`; more are faster.
            sampling: the fields of `Sampling`.

        Raises:
            ValueError: as in `generation`; a `sampling` or a number of tokens that is not possible.
        """
        if not isinstance(max_new_tokens, int) or max_new_tokens < 0:
            raise ValueError(f"max_new_tokens is {max_new_tokens!r:.80}; it must be a whole number, 0 or more")
        if self.model.config.kind == "encoder-decoder":
            return self.answer(prompt, min(max_new_tokens, self.model.config.context_length), **sampling)
        grown = self.generation(prompt, _sampling(sampling), slide=slide)
        ends = frozenset() if go_on else self.end_tokens
        most = max_new_tokens if go_on else self.to_write(grown.prompt_length, max_new_tokens)
        steps = progress.each(until_drawn(grown, ends), most, "token")
        tokens = [int(step.tokens[0]) for step in steps]
        return self.tokenizer.continuation(without_end(tokens, ends)[0])

    def speculate(
        self,
        prompt: str,
        drafter: LanguageModel | Literal["prompt"],
        max_new_tokens: int = 200,
        *,
        drafted: int = DRAFTED,
        go_on: bool = False,
        **sampling: Any,
    ) -> Speculated:
        """A text drawn from this model with the help of a drafter, as rounds: what was drafted, accepted, refused, and why.

        The text is distributed as that of `generate`. With the same seed it is another one, unless the temperature is 0.

        Args:
            prompt: what the model goes on with.
            drafter: a smaller model with the same vocabulary; or "prompt", which copies what followed the last tokens earlier in
                the text.
            max_new_tokens: the most tokens that are written; fewer as in `generate`.
            drafted: how many tokens a round drafts at most, from 1 to 16.
            go_on: write on where the model ends its text, or a sequence of its task ends.
            sampling: the fields of `Sampling`, for both models.

        Raises:
            ValueError: one of the models does not continue a text, their vocabularies differ, the prompt is empty, a setting is
                not possible, or this model looks ahead.
        """
        if not isinstance(max_new_tokens, int) or max_new_tokens < 0:
            raise ValueError(f"max_new_tokens is {max_new_tokens!r:.80}; it must be a whole number, 0 or more")
        grown = self.speculation(self.encode(prompt), drafter, _sampling(sampling), drafted=drafted, go_on=go_on)
        most = max_new_tokens if go_on else self.to_write(len(grown.ids), max_new_tokens)
        return Speculated(tuple(grown.rounds(most)))

    def speculation(
        self,
        ids: Tensor,
        drafter: LanguageModel | Literal["prompt"],
        sampling: Sampling,
        *,
        drafted: int = DRAFTED,
        go_on: bool = False,
    ) -> Speculation:
        """A `Speculation` that begins with the ids [T] of a prompt; the arguments are those of `speculate`.

        Raises:
            ValueError: as in `speculate`.
        """
        self._check_continues()
        if isinstance(drafter, str):
            if drafter != "prompt":
                raise ValueError(f'{drafter!r:.80} is no drafter: give "prompt", or an opened model')
            proposes: Drafter = LookupDrafter(self.tokenizer.vocab_size)
        else:
            drafter._check_continues()
            if drafter.tokenizer.labels() != self.tokenizer.labels():
                sizes = f"{drafter.tokenizer.vocab_size:,} and {self.tokenizer.vocab_size:,} tokens"
                raise ValueError(f"{drafter.name} cannot draft for {self.name}: their vocabularies differ ({sizes})")
            proposes = ModelDrafter(drafter.model, sampling, drafter.tokenizer.unused_ids)
        never, ends = self.tokenizer.unused_ids, frozenset[int]() if go_on else self.end_tokens
        return Speculation(self.model, proposes, ids, sampling, most_drafted=drafted, never=never, ends=ends)

    @property
    def special_tokens(self) -> SpecialTokensTokenizer:
        """The tokenizer of an encoder–decoder, which has start, end and padding.

        Raises:
            ValueError: the model is no encoder–decoder, or its tokenizer has no special tokens.
        """
        if self.model.config.kind != "encoder-decoder":
            raise ValueError(f"{self.name} is a {self.model.config.kind}: only an encoder–decoder answers a text with another")
        if not isinstance(self.tokenizer, SpecialTokensTokenizer):
            raise ValueError(f"{self.name} cannot answer: its tokens ({self.tokenizer.kind}) have no start and end tokens")
        return self.tokenizer

    def source(self, text: str) -> Tensor:
        """The tokens that an encoder reads of `text`: its ids and the end token, [S].

        Raises:
            ValueError: the text is empty or longer than the model's context, or the model is no encoder–decoder.
        """
        ids = torch.cat((self.encode(text), torch.tensor([self.special_tokens.end], device=self.device)))
        if len(ids) > (most := self.model.config.context_length):
            raise ValueError(f"the source has {len(ids):,} tokens with its end; {self.name} reads at most {most:,}: shorten it")
        return ids

    def decoded(self, text: str, longest: int | None = None, sampling: Sampling | None = None) -> tuple[list[int], bool]:
        """An encoder–decoder's answer to `text`: its tokens, and whether it ends.

        An answer without an end is cut after `longest` tokens, by default after `context_length`.

        Args:
            sampling: how each token is drawn; None takes the likeliest.

        Raises:
            ValueError: as in `source`, or an impossible `longest`.
        """
        source, special = self.source(text), self.special_tokens
        ids = decode(self.model, source[None], special.start, special.end, sampling, longest, special.unused_ids)[0]
        return until_end(ids, special.end)

    def answer(self, text: str, longest: int | None = None, **sampling: Any) -> str:
        """An encoder–decoder's answer to `text`, as `decoded` returns it; `sampling` are the fields of `Sampling`.

        Raises:
            ValueError: as in `decoded`; a `sampling` that is not possible.
        """
        return self.tokenizer.decode(self.decoded(text, longest, _sampling(sampling) if sampling else None)[0])

    def beams(self, text: str, width: int, longest: int | None = None, length_penalty: float = 0.0) -> Beams:
        """The answers to `text` that a beam search of this `width` finds: see `gptviz.generate.decoding.beam_search`.

        Raises:
            ValueError: as in `source`, or an impossible width or `longest`.
        """
        source, special = self.source(text), self.special_tokens
        ends = special.start, special.end
        return beam_search(self.model, source, *ends, width, longest, length_penalty, special.unused_ids)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of a classifier's labels, or "0", "1", … if its card has none that differ. Empty for other models."""
        named, n_label = self.card.labels or (), self.model.config.n_label
        return named if len(named) == len(set(named)) == n_label else tuple(map(str, range(n_label)))

    def classify(self, text: str) -> dict[str, float]:
        """The probability of every label, by name, for the first `context_length` tokens of `text`.

        `gptviz.interp.reading.classification.classify` also gives what each word adds to each label.

        Raises:
            ValueError: there is no token in the text, or the model is no classifier.
        """
        result = judge(self.model, self.seen(self.encode(text)))
        return dict(zip(self.labels, result.probabilities.tolist(), strict=True))

    def probabilities(self, texts: Sequence[str]) -> Float64Array:
        """The probability of every label for each of `texts`: [texts, n_label]. A text without words is read as one unknown word.

        Raises:
            ValueError: the model is no classifier.
        """
        config = self.model.config
        return label_probabilities(self.model, padded(self.tokenizer, texts, config.context_length, config.padding))

    def trace(
        self,
        prompt: str,
        names: Iterable[str] = ("*",),
        target: str | None = None,
        *,
        edits: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
    ) -> TextTrace:
        """The values that the model computes over the tokens of `prompt` that it sees, by tap name.

        For example `trace("O Romeo")["blocks.2.attention.pattern"]` [1, head, query, key]. `names` (shell patterns)
        choose the tensors to keep, `edits` replace values during the forward pass: see `gptviz.interp.trace.run`.

        An encoder–decoder reads `prompt` as its source, and writes `target`: its decoder reads the start token and the tokens of
        `target`, by default of its own answer.

        Raises:
            ValueError: the prompt is empty; for an encoder–decoder, also as in `source`.
        """
        ids, source = self.inputs(prompt, target)
        found = run(self.model, ids[None], names, source=None if source is None else source[None], edits=edits)
        return TextTrace(found, self, prompt, is_own=not edits and target is None)

    def inputs(self, prompt: str, target: str | None = None) -> tuple[Tensor, Tensor | None]:
        """The tokens that the model reads of `prompt`: the ids [T] and None. For an encoder–decoder those that its decoder reads
        and those that its encoder reads: see `trace`.

        Raises:
            ValueError: as in `trace`.
        """
        if self.model.config.kind != "encoder-decoder":
            if target is not None:
                raise ValueError(f"{self.name} is a {self.model.config.kind}: only an encoder–decoder has a target to write")
            return self.seen(self.encode(prompt)), None
        source, start = self.source(prompt), self.special_tokens.start
        # An answer without an end fills the context: with the start token before it, its last token has no place.
        written = self.decoded(prompt)[0] if target is None else self.special_tokens.encode_answer(target).ids
        ids = [start, *written] if target is not None else [start, *written][: self.model.config.context_length]
        return torch.tensor(ids, device=self.device), source

    def stream(self, prompt: str, target: str | None = None) -> StreamSummary:
        """The residual stream after every layer, and what each sublayer writes into it: see `gptviz.interp.reading.stream`.

        Raises:
            ValueError: as in `trace`; the model is a classifier.
        """
        ids, source = self.inputs(prompt, target)
        return stream(self.model, ids.tolist(), None if source is None else source.tolist())

    def lens(self, prompt: str, target: str | None = None, *, top: int = 5, blocks_only: bool = False) -> Lens:
        """The guesses of the model if it stopped after each layer: see `gptviz.interp.reading.lens`.

        Args:
            prompt: the text that the model reads; for an encoder–decoder its source.
            target: what an encoder–decoder writes; by default its own answer.
            top: how many of the likeliest tokens are kept of each layer and position.
            blocks_only: leave out the layers within a block.

        Raises:
            ValueError: as in `trace`; the model is a classifier, or `top` is below 1.
        """
        if top < 1:
            raise ValueError(f"top is {top}; it must be 1 or more")
        ids, source = self.inputs(prompt, target)
        return lens(self.model, ids.tolist(), None if source is None else source.tolist(), top=top, blocks_only=blocks_only)

    def token(self, text: str | int) -> int:
        """The token that stands for exactly `text`; of a classifier, the label of this name. An id stays as it is.

        Raises:
            ValueError: there is none.
        """
        if isinstance(text, int):
            return text
        if self.model.config.kind == "classifier":
            if text not in self.labels:
                raise ValueError(f"{text!r:.80} is no label of {self.name}; its labels are {', '.join(self.labels)}"[:400])
            return self.labels.index(text)
        return self._of_vocabulary(text)

    def _of_vocabulary(self, text: str | int) -> int:
        """As `token`, of the vocabulary for a classifier too."""
        if isinstance(text, int):
            return text
        if (found := self.tokenizer.id_of(text)) is not None:
            return found
        read = self.tokenizer.encode(text)
        ids = read.ids[self.tokenizer.inside(read.ids)]
        if len(ids) == 1 and not read.unknown:
            return ids[0]
        pieces = " · ".join(self.tokenizer.label(i) for i in ids[:20])
        raise ValueError(f"{text!r:.80} is no single token of {self.name}" + (f": it is read as {pieces}" if pieces else ""))

    def attribute(
        self,
        prompt: str,
        token: str | int | None = None,
        position: int | None = None,
        against: str | int | None = None,
        target: str | None = None,
        neurons_of: str | None = None,
    ) -> Attribution:
        """How much each part of the model adds to the logit of a token: see `gptviz.interp.explaining.attribution`.

        Args:
            prompt: the text that the model reads; for an encoder–decoder its source.
            token: whose logit, as text or id; by default the likeliest. Of a classifier, a label.
            position: the token is guessed after the token at this position; by default the last.
            against: another token, whose logit is taken from it.
            target: what an encoder–decoder writes; by default its own answer.
            neurons_of: an MLP whose neurons are told apart too.

        Raises:
            ValueError: as in `trace`, `token` and `gptviz.interp.explaining.attribution.attribute`.
        """
        ids, source = self.inputs(prompt, target)
        chosen, other = (None if each is None else self.token(each) for each in (token, against))
        read = None if source is None else source.tolist()
        return attribute(self.model, ids.tolist(), chosen, position, other, read, neurons_of)

    def circuit(
        self,
        prompt: str,
        token: str | int | None = None,
        position: int | None = None,
        against: str | int | None = None,
        share: float = 0.8,
        *,
        beyond_mean: bool = True,
        most: int = MOST_NODES,
    ) -> Circuit:
        """The parts that the logit of a token owes most to, and what each owes to those before it: see
        `gptviz.interp.explaining.circuit`.

        Args:
            prompt: the text that the model reads.
            token: whose logit, as text or id; by default the likeliest.
            position: the token is guessed after the token at this position; by default the last.
            against: another token, whose logit is taken from it.
            share: how much is traced back to tokens within the graph, above 0, at most 1.
            beyond_mean: whether only that counts which parts add beyond their means over the positions of this text; else all
                that they add. A text of a single token has no such mean.
            most: the most nodes that the graph may have.

        Raises:
            ValueError: the model is not a decoder, or as in `encode`, `token` and `gptviz.interp.explaining.circuit.circuit`.
        """
        if self.model.config.kind != "decoder":
            raise ValueError(f"a circuit is that of a decoder's guess, and {self.name} is a {self.model.config.kind}")
        ids, _ = self.inputs(prompt)
        chosen, other = (None if each is None else self.token(each) for each in (token, against))
        usual = means(self.model, ids[None]) if beyond_mean and len(ids) > 1 else None
        at = len(ids) - 1 if position is None else position
        return circuit(self.model, ids, at, chosen, other, share, usual=usual, most=most)

    def check_circuit(self, found: Circuit, text: str | None = None) -> Checked:
        """The share of the answer that is left with everything outside a circuit at its mean: see
        `gptviz.interp.explaining.circuit_check`.

        Args:
            found: the circuit.
            text: what the means are taken over, all its positions; by default the text of the circuit itself.

        Raises:
            ValueError: the text is empty.
        """
        ids = torch.tensor(found.ids, device=self.device) if text is None else self.seen(self.encode(text))
        return check(found, self.model, means(self.model, ids[None]))

    def rows(self, text: str | None = None, most: int = 16_384) -> list[Tensor]:
        """Rows of token ids to read, of at most `most` tokens together: of `text`, or of the data that was held out of training.

        Raises:
            ValueError: the text has no token; or, without a text, nobody knows what the model learned from, or it is not here.
        """
        if text is not None:
            return rows_of_text(text, self.tokenizer, self.model.config, most)
        if self.card.source is None:
            raise ValueError(f"the card of {self.name} does not say what it learned from: give a text")
        source = source_from(dict(self.card.source))
        return held_out_rows(source, self.model, self.tokenizer, most, self.labels)

    def tested_rows(self, most: int = 2_048, *, of: Literal["data", "tasks", "answers"] = "data") -> dict[str, list[Rows]]:
        """The first rows that were held out of training, about `most` tokens of them, with the tokens whose prediction counts in
        the loss: of a task only its answers. As "loss"; or by the "tasks" that the model's task mixes; or as "held out" beside
        "learned", the rows that it was trained on, if they are so few that they come again and again.

        Raises:
            ValueError: nobody knows what the model learned from, it does not fit the model, or its task mixes no others.
            OSError: it is not on this machine.
        """
        data = source_from(dict(self.card.source or {})).data(self.tokenizer, self.model.config)
        if of == "data":
            parts: Mapping[str, Iterable[Batch]] = {"loss": data.validation()}
        elif of == "answers":
            parts = {"held out": data.validation(), "learned": data.trained_on()}
        else:
            parts = data.validation_by_part() if isinstance(data, Generated) else {}
        if not parts:
            raise ValueError(f"{self.name} was not trained on a mixture of tasks")
        first = {name: [one.to(self.device) for one in first_batches(each, most)] for name, each in parts.items()}
        return {name: [Rows(Inputs(*some.inputs), some.targets) for some in each] for name, each in first.items() if each}

    def neurons(self, block: int, text: str | None = None, most: int = 16_384) -> Activity:
        """The activity of the neurons of a block's MLP over the rows of `text`, or of the data held out: see
        `gptviz.interp.units.neurons`.

        Raises:
            ValueError: as in `rows`; there are no neurons in this block; or the model is an encoder–decoder.
        """
        if self.model.encoder is not None:
            raise ValueError(f"{self.name} has two stacks: use gptviz.interp.units.neurons.observe on one of them")
        *_, seen = observe(self.model, block, self.rows(text, most))
        return seen.activity()

    def experts(self, prompt: str) -> LabelledArray:
        """How much each expert counts for each token of `prompt` that the model sees: [block, token, expert], 0 where the router
        did not choose it. See `gptviz.interp.reading.experts`.

        Raises:
            ValueError: the model has no experts, or as in `trace`.
        """
        if self.model.encoder is not None:
            raise ValueError(f"{self.name} has two stacks: use gptviz.interp.reading.experts.routing on one of them")
        ids, _ = self.inputs(prompt)
        return routing(self.model, ids, tuple(self.tokenizer.label(one) for one in ids.tolist()))

    def pieces(self, text: str) -> list[Piece]:
        """The tokens of `text`, each with its number, its bytes, and its kind: see `gptviz.text.tokenizers.pieces`.

        Raises:
            ValueError: the tokenizer cannot read the text at all.
        """
        return pieces(self.tokenizer, self.tokenizer.encode(text))

    def context_use(self, prompt: str, how: use.How = "replaced") -> use.ContextUse:
        """How much of `prompt` the model uses, its likeliest next token being the last guess: see
        `gptviz.interp.explaining.context_use`.

        Args:
            prompt: the text that the model reads.
            how: what leaving a token out means.

        Raises:
            ValueError: the prompt is empty, the model is no decoder, or there is no such way to leave a token out.
        """
        ids = self.seen(self.encode(prompt)).tolist()
        return use.context_use(self.model, use.with_guess(self.model, ids), how, self.tokenizer.inside(ids).start)

    def repeated_tokens(self) -> Tensor:
        """Random tokens of the vocabulary, each sequence of which is repeated once, as a text of this model: [sequences, tokens].

        Raises:
            ValueError: the context is too short, or the vocabulary too small.
        """
        tokenizer, special = self.tokenizer, {self.tokenizer.padding, self.tokenizer.unknown_id, *self.end_tokens}
        without = {token for token in special if token is not None}
        room = self.model.config.context_length
        ids = repeated_tokens(tokenizer.vocab_size, room, without=without, before=tokenizer.before, after=tokenizer.after)
        return ids.to(self.device)

    @property
    def repeats(self) -> Tensor | None:
        """The `repeated_tokens`, or None where there is no room for them: scores over them have no meaning there."""
        with suppress(ValueError):
            return self.repeated_tokens()
        return None

    def second_half(self, repeated: Tensor) -> int:
        """The position at which the second half of repeated tokens [sequences, tokens] begins."""
        before, after = len(self.tokenizer.before), len(self.tokenizer.after)
        return before + (repeated.shape[1] - before - after) // 2

    def heads(self, prompt: str | None = None, *, losses: bool = False) -> list[dict[str, Any]]:
        """The scores of every head, a row each: `gptviz.interp.units.head_scores.SCORES` defines them. None if one has no
        meaning.

        They are computed over the tokens of `prompt` that the model sees, at most 1,024 of them, or, without a prompt, over
        repeated random tokens. In a text in which no token comes back, the scores of repeats are over repeated random tokens.

        An encoder–decoder reads `prompt` as its source, and the decoder its own answer. With `losses`, there is also
        `delta_loss`: how much the loss rises without the head, which takes a pass for every head.

        Raises:
            ValueError: as in `trace`; an encoder–decoder was given no prompt; or `losses` of a classifier were asked for.
        """
        if prompt is None:
            if self.model.encoder is not None:
                raise ValueError(f"{self.name} reads a text and writes another: give a prompt for its heads to read")
            ids = self.repeated_tokens()
            rows = scores_of_model(self.model, ids)
            return with_losses(self.model, rows, ids, counted_from=self.second_half(ids)) if losses else rows
        ids, source = self.inputs(prompt)
        read = scored(ids, self.model.config)
        rows = scores_of_model(self.model, read, source, self.repeats)
        return with_losses(self.model, rows, read, source) if losses else rows

    def pair(self, clean: str, corrupted: str, right: str | int | None = None, wrong: str | int | None = None) -> PromptPair:
        """Two prompts of one length and their answers, for `patch`.

        For an encoder–decoder the prompts are sources: its decoder reads the beginning that both its answers have in common.

        Args:
            clean: the prompt that values are taken from.
            corrupted: the prompt that they are put into.
            right: a token, as text or id, or a label of a classifier; by default the likeliest after the clean prompt.
            wrong: the same for the corrupted prompt; if that is `right`, the likeliest other one.

        Raises:
            ValueError: the prompts do not have the same number of tokens, or as in `token`.
        """
        texts = (clean, corrupted)
        if self.model.config.kind == "encoder-decoder":
            sources = [tuple(self.source(text).tolist()) for text in texts]
            common = takewhile(lambda both: both[0] == both[1], zip(*(self.decoded(text)[0] for text in texts), strict=False))
            written = (self.special_tokens.start, *(token for token, _ in common))[: self.model.config.context_length]
            patching.check_lengths(len(sources[0]), len(sources[1]))
            unanswered = PromptPair(written, written, 0, 0, sources[0], sources[1])
        else:
            whole = [self.encode(text) for text in texts]
            patching.check_lengths(len(whole[0]), len(whole[1]))
            seen = [tuple(self.seen(ids).tolist()) for ids in whole]
            unanswered = PromptPair(seen[0], seen[1], 0, 0)
        likeliest = likeliest_answers(self.model, unanswered)
        return replace(
            unanswered,
            right=likeliest[0] if right is None else self.token(right),
            wrong=likeliest[1] if wrong is None else self.token(wrong),
        )

    def patch(
        self,
        clean: str,
        corrupted: str,
        right: str | int | None = None,
        wrong: str | int | None = None,
        what: str = "resid_pre",
        *,
        exact: bool = True,
    ) -> Patched:
        """How much of the answer comes back if a piece of what the model computed for the clean prompt is put into the pass over
        the corrupted one, for each piece: see `gptviz.interp.changing.patching`.

        Args:
            clean: as in `pair`.
            corrupted: as in `pair`.
            right: as in `pair`.
            wrong: as in `pair`.
            what: the kind of piece, such as "resid_pre" or "attention.z": see `gptviz.interp.changing.patchable`.
            exact: compute every patch; else guess them from a few backward passes, and check that with some patches: the result
                is a `Preview` (`gptviz.interp.changing.attribution_patching`), which says how far it can be trusted.

        Raises:
            ValueError: as in `pair`; the model has no such pieces.
        """
        pair = self.pair(clean, corrupted, right, wrong)
        if not exact:
            return attribution_patching.preview(self.model, pair, [what])[what]
        return patching.patch(self.model, pair, what)

    @property
    def task(self) -> Task | None:
        """The task that a decoder has learned, in its own tokens; None for other data."""
        task = task_of(self.card.source) if self.model.config.kind == "decoder" else None
        return task if task is not None and self.tokenizer.to_json() == task.tokenizer.to_json() else None

    def corrupted(self, ids: Sequence[int], seen: Sequence[int] | None = None) -> str:
        """A prompt that differs from `ids` in one token, and has another answer; empty if none was found. For a model from
        elsewhere, one word is replaced by another of its kind: any other token would leave nonsense.

        Args:
            ids: the tokens of the prompt.
            seen: the end of them that is read; by default as much as the model sees.
        """
        read = self.seen(torch.tensor(ids)).tolist() if seen is None else list(seen)
        before = list(ids[: len(ids) - len(read)])
        if self.card.imported_from is None:
            found = one_token_changed(self.model, read)
        else:
            texts = with_another_word(self.tokenizer.decode(ids[self.tokenizer.inside(ids)]))
            others = [list(self.tokenizer.encode(text).ids) for text in texts]
            fitting = [
                tuple(other[len(before) :]) for other in others if len(other) == len(ids) and other[: len(before)] == before
            ]
            found = ranked(self.model, read, fitting)
        for changed in found:
            whole = [*before, *changed]
            text = self.tokenizer.decode(whole[self.tokenizer.inside(whole)])
            # Not every row of tokens is what some text is read as.
            if self.tokenizer.encode(text).ids == whole:
                return text
        return ""

    def example_pairs(self, count: int = 20, part: str = "") -> list[PromptRow]:
        """Pairs of prompts for `over_prompts`, `count` of them or fewer: held-out prompts of the task that the model has learned,
        of which it knows the answer, and the same with one token changed so that it answers otherwise. `part` names one of the
        tasks that this task mixes.

        Raises:
            ValueError: it has not learned a task.
        """
        if self.task is None:
            raise ValueError(f"{self.name} has not learned a task that writes prompts: give a list of them")
        found: list[PromptRow] = []
        for prompt, right in self.task.example_prompts(3 * count, part):
            ids = self.tokenizer.encode(prompt).ids
            with torch.inference_mode():
                is_right = int(self.model(self.seen(torch.tensor(ids))[None].to(self.device))[0, -1].argmax()) == right
            if is_right and len(found) < count and (corrupted := self.corrupted(ids)):
                found.append(PromptRow(prompt, corrupted, self.tokenizer.label(right)))
        return found

    def over_prompts(self, rows: Sequence[PromptRow], how: How = "patch") -> Spread:
        """What a list of prompts says of every head and every MLP: see `gptviz.interp.over_prompts`.

        Args:
            rows: the prompts, such as `gptviz.text.datasets.prompt_pairs.prompt_rows` reads from a file, or `example_pairs`.
            how: "patch", for which each row needs a corrupted prompt; "attribute" or "switch off".

        Raises:
            ValueError: there is no row, the model is no decoder, or some rows do not fit it; the message names their lines.
        """
        return spread(list(self.each_prompt(rows, how)), how)

    def each_prompt(self, rows: Sequence[PromptRow], how: How = "patch") -> Iterator[dict[str, float]]:
        """What each prompt of a list says of every head and every MLP, by name, one after the other; as `over_prompts`."""
        if how not in SAYS:
            raise ValueError(f"how is {how!r:.40}; it must be one of {', '.join(SAYS)}")
        asked = self._asked(rows, how)

        def values(row: PromptRow, one: Asked) -> dict[str, float]:
            try:
                return measured(self.model, one, how)
            except ValueError as error:
                raise ValueError(f"{row.place or repr(row.clean)}: {error}") from None

        yield from progress.each((values(*each) for each in zip(rows, asked, strict=True)), len(rows), "prompt")

    def _asked(self, rows: Sequence[PromptRow], how: How) -> list[Asked]:
        """The rows of a list as this model reads them.

        Raises:
            ValueError: as in `over_prompts`.
        """
        if self.model.config.kind != "decoder":
            raise ValueError(f"{self.name} is a {self.model.config.kind}: lists of prompts are for decoders")
        if not rows:
            raise ValueError("the list has no prompts")
        found, wrong = list[Asked](), list[str]()
        for row in rows:
            try:
                found.append(self._asked_one(row))
                if how == "patch" and not row.corrupted:
                    raise ValueError("there is no corrupted prompt, which a patch needs")
                if (found[-1].wrong is None) != (found[0].wrong is None):
                    raise ValueError("only some rows have a wrong answer or a corrupted prompt: give all of them one, or none")
            except ValueError as error:
                wrong.append(f"{row.place or repr(row.clean)}: {error}")
        if wrong:
            more = f"; and {len(wrong) - MOST_NAMED:,} others" if len(wrong) > MOST_NAMED else ""
            raise ValueError("; ".join(wrong[:MOST_NAMED]) + more)
        return found

    def _asked_one(self, row: PromptRow) -> Asked:
        for text in filter(None, (row.clean, row.corrupted)):
            if (encoding := self.tokenizer.encode(text)).unknown:
                raise ValueError(encoding.unknown_sentence())
        right, wrong = (self._shown(text) if text else None for text in (row.right, row.wrong))
        if row.corrupted:
            pair = self.pair(row.clean, row.corrupted, right, wrong)
            return Asked(pair.clean, pair.right, pair.wrong, pair.corrupted)
        ids = tuple(self.seen(self.encode(row.clean)).tolist())
        if right is None:
            right = likeliest_answers(self.model, PromptPair(ids, ids, 0, 0))[0]
        return Asked(ids, right, wrong)

    def _shown(self, text: str) -> int:
        """As `token`; also by the visible form of a token.

        Raises:
            ValueError: as in `token`.
        """
        try:
            return self.token(text)
        except ValueError:
            if text not in (labels := self.tokenizer.labels()):
                raise
            return labels.index(text)

    def over_training(
        self,
        measure: str,
        prompt: str | None = None,
        token: str | int | None = None,
        against: str | int | None = None,
    ) -> History:
        """A measure at every snapshot of this model, with its edits: see `gptviz.interp.over_training`.

        Args:
            measure: its name, such as "loss" or "heads.induction": see `gptviz.interp.over_training.measures.MEASURES`.
            prompt: what the model reads, for measures of what it makes of a text; heads read repeated random tokens without one.
                For an encoder–decoder its source: the decoder reads the answer of this model, the same at every snapshot.
            token: the token that is guessed after it, as text or id; by default the likeliest for this model. Of a classifier, a
                label.
            against: another one, which it is compared with.

        Raises:
            ValueError: there is no such measure, it needs a prompt or tokens that are missing, or the model has no snapshots, or
                lacks what is measured.
            OSError: the data that were held out are not on this machine.
        """
        return History.of(*self._followed(measure, Question(prompt or "", token, against)))

    def _followed(self, name: str, question: Question) -> tuple[Measure, dict[int, dict[str, float]]]:
        chosen = measure_named(name, self.model.config.kind)
        steps = tuple(checkpoints.snapshots(checkpoints.find(self.name)))
        if not steps:
            raise ValueError(f"{self.name} has no snapshots of its training: train one that keeps some, with --snapshots")
        given = self.given(chosen, question)

        def values(step: int) -> tuple[int, dict[str, float]]:
            lm = load(self.name, str(self.device), step, self.precision).edited(*self.edits, text=self.edit_text)
            return step, chosen.compute(lm.model, given)

        return chosen, dict(progress.each(map(values, steps), len(steps), "snapshot"))

    def given(self, measure: Measure, question: Question) -> Given:
        """What a measure reads at every snapshot of this model.

        Raises:
            ValueError: as in `over_training`.
            OSError: as in `over_training`.
        """
        needs, config = measure.needs, self.model.config
        measure_named(measure.name, config.kind)
        if not config.n_layer and needs in ("texts for heads", "held-out data") and measure.name != "loss":
            raise ValueError(f"{self.name} has no blocks: it has no heads and no MLPs to measure")
        if needs == "weights":
            return Given()
        if needs == "vowels":
            kinds = [self.tokenizer.kind_of(token) for token in range(config.vocab_size)]
            found = {kind: [token for token, own in enumerate(kinds) if own == kind] for kind in ("vowel", "consonant")}
            if len(found["vowel"]) < 2 or not found["consonant"]:
                raise ValueError(f"the tokens of {self.name} are no single letters: it has no vowels")
            return Given(kinds=found)
        if needs == "held-out data":
            return Given(rows=self.tested_rows())
        if needs == "tasks":
            return Given(rows=self.tested_rows(of="tasks"))
        if config.kind == "decoder" and needs in ("answers", "a clock") and self.task is None:
            raise ValueError(f"{self.name} has learned no task with known answers")
        if needs == "answers":
            return Given(rows=self.tested_rows(MOST_ANSWERED, of="answers"))
        if needs == "a clock":
            if not isinstance(self.task, Modular):
                raise ValueError(f"{self.name} has not learned sums on a clock")
            return Given(clock=self.task)
        if needs == "held-out texts":
            return Given(held_out=[row.tolist() for row in self.rows(most=use.most_data(self.model)) if len(row) > 1])
        crosses = config.kind == "encoder-decoder"
        if needs == "texts for heads" and not question.prompt and not crosses:
            repeats = self.repeated_tokens()
            return Given(texts=repeats, repeats=repeats, counted_from=self.second_half(repeats))
        if needs == "two tokens":
            if question.token is None or question.against is None:
                raise ValueError(f"the measure {measure.name} compares two tokens: name both, as token and as against")
            return Given(token=self._of_vocabulary(question.token), against=self._of_vocabulary(question.against))
        if not question.prompt:
            raise ValueError(f"the measure {measure.name} needs a prompt")
        ids, source = self.inputs(question.prompt)
        read = None if source is None else tuple(source.tolist())
        if needs == "texts for heads":
            return Given(source=read, texts=scored(ids, config), repeats=None if crosses else self.repeats)
        if needs == "a token" and crosses:
            ids = ids[:1]  # the start token: what is guessed is the first token of the answer
        whole = tuple(ids.tolist())
        token, against = (None if one is None else self.token(one) for one in (question.token, question.against))
        if needs == "a token" and token is None:
            token = likeliest_answers(self.model, PromptPair(whole, whole, 0, 0, read, read))[0]
        if token is not None and token == against:
            raise ValueError("token and against are the same: there is nothing to compare")
        return Given(whole, read, token or 0, against)

    @property
    def base(self) -> LanguageModel | None:
        """The model whose weights this LoRA adapter changes, or None if it is no adapter."""
        if not isinstance(self.original.model, MergedTransformer):
            return None
        folder = checkpoints.base_of(_folder_called(self.name))
        card = checkpoints.read_card(folder)
        return LanguageModel(checkpoints.name_of(folder), self.original.model.base, self.tokenizer, card, None, self.precision)

    def along_strength(self, strengths: Sequence[float] = STRENGTHS, most: int = 2_048) -> LabelledArray:
        """Of a LoRA adapter the loss [text, strength] in nats per token, without other edits, on the data that were held out when
        it was trained, and on those of its base: what is learned from one text, and what is forgotten of the other. A warning
        names data that are not on this machine, which are left out.

        Args:
            strengths: 0 is the base, 1 what was trained.
            most: about how many tokens of each text are read.

        Raises:
            ValueError: it is no adapter, or neither of these data are here.
        """
        model, base = self.original.model, self.base
        if base is None or not isinstance(model, MergedTransformer):
            raise ValueError(f"{self.name} is no LoRA adapter: there is no strength to change")
        texts, missing = dict[str, list[Rows]](), list[str]()
        for one in (self, base):
            try:
                texts[one.data_title] = one.tested_rows(most)["loss"]
            except (ValueError, OSError) as error:
                missing.append(f"{one.data_title} is left out: {error}")
        if not texts:
            raise ValueError("; ".join(missing))
        for line in missing:
            warnings.warn(line, stacklevel=_depth() + 1)
        return losses_along(model, texts, strengths)

    @property
    def data_title(self) -> str:
        """The name of the data that this model learned from, with its own name."""
        return f"{self.card.task or self.card.corpus or 'unknown data'} ({self.name})"

    def side(self, prompt: str) -> Side:
        """This model with a text, as one of two sides to compare: see `gptviz.interp.compare`.

        Raises:
            ValueError: as in `trace`; the model is no decoder.
        """
        if self.model.config.kind != "decoder":
            raise ValueError(f"{self.name} is a {self.model.config.kind}: only decoders are compared")
        ids = tuple(self.inputs(prompt)[0].tolist())
        return Side(self.model, ids, tuple(self.tokenizer.labels()), self.name, self.repeats)

    def answers(self, sentences: Sequence[str], words: Sequence[str]) -> LabelledArray:
        """How likely each of `words` is to come next after each of the `sentences`, [sentence, word]. A word may have several
        tokens: then its probability is that of all of them.

        Raises:
            ValueError: the model is no decoder, has never seen a word or a part of a sentence, or reads them as other tokens when
                they stand together; there are no sentences or no words.
        """
        asked = self._asked_words(sentences, words)
        values = [[probability_of(self.model, prompt, word) for word in some] for prompt, some in asked]
        axes = Axis("sentence", tuple(sentences)), Axis("word", tuple(words))
        return LabelledArray(np.array(values), axes, "probability")

    def nearest(self, word: str | int, count: int = 5) -> dict[str, float]:
        """The `count` tokens whose embeddings have the largest cosine with that of `word`, a token, the nearest first, with that
        cosine; special tokens, which are no text, are left out.

        Raises:
            ValueError: there is no such token.
        """
        special = {token for token in range(self.tokenizer.vocab_size) if self.tokenizer.is_special(token)}
        rows, token = embeddings.vectors(self.model, "embedding"), self.token(word)
        found = embeddings.neighbours(rows, self.tokenizer.labels(), token, count + len(special))
        cosines = zip(found.ids, found.similarity.values.tolist(), strict=True)
        words = ((self.tokenizer.label(one), cosine) for one, cosine in cosines if one not in special)
        return dict(islice(words, count))

    def shares_in_data(self, sentences: Sequence[str], words: Sequence[str]) -> list[list[Share]]:
        """How often each of `words` came after each of the `sentences` in the data that this model was trained on:
        [sentence][word]. The rows of a task are drawn again as the run drew them, up to this step; a text is read as a whole.

        Raises:
            ValueError: as in `answers`, and as in `trained_on`.
            OSError: as in `trained_on`.
        """
        asked = [(torch.tensor(prompt), list(map(torch.tensor, some))) for prompt, some in self._asked_words(sentences, words)]
        return followed(self.trained_on(), [prompt for prompt, _ in asked], [some for _, some in asked])

    def data_rows(self, text: str | None = None, most: int = MOST_ROWS) -> list[Row]:
        """Single rows, a sentence or a line each: of `text`, or of the data that this model was trained on and of those held out,
        at most `most` of each, with how often it had read each up to this step.

        Raises:
            ValueError: the text has no token or fewer than two; without a text as in `trained_on`.
            OSError: as in `trained_on`.
        """
        context = self.model.config.context_length
        if text is None:
            return data_rows(self.trained_on(), self.tokenizer, context, most)
        ids = self.encode(text).cpu()
        if len(ids) < 2:
            raise ValueError("the text has one token: a loss needs at least 2")
        return [row for row, _ in text_rows(ids, self.tokenizer, context, most)]

    def losses_of_rows(self, rows: Sequence[Row]) -> LabelledArray:
        """The loss of each row [row], such as `data_rows` gives them, in nats per token.

        Raises:
            ValueError: there is no row, the model is no decoder, or a row has tokens that this model lacks, or too many.
        """
        config = self.model.config
        if not rows or config.kind != "decoder":
            raise ValueError(
                "there is no row to read" if not rows else f"{self.name} is a {config.kind}: only decoders read rows"
            )
        if (
            max(max(row.ids) for row in rows) >= config.vocab_size
            or max(len(row.ids) for row in rows) > config.context_length + 1
        ):
            raise ValueError(f"the rows are made of other tokens than those of {self.name}, or are longer than its context")
        losses = row_losses(self.model, [(row.ids, row.counted) for row in rows])
        return LabelledArray(losses, (Axis("row", tuple(row.text for row in rows)),), "loss, nats per token")

    def trained_on(self) -> Trained:
        """What this model was trained on, up to its step: all its batches can be drawn again.

        Raises:
            ValueError: the card does not say what it learned from and how, or the model is no decoder.
            OSError: the data are not on this machine.
        """
        if self.model.config.kind != "decoder":
            raise ValueError(f"{self.name} is a {self.model.config.kind}: the rows of decoders alone are drawn again")
        recipe, steps = self.card.recipe or {}, self.card.steps if self.step is None else self.step
        size, seed = recipe.get("batch_size"), recipe.get("seed")
        if self.card.source is None or steps is None or not isinstance(size, int) or not isinstance(seed, int) or size < 1:
            raise ValueError(f"the card of {self.name} does not say what it was trained on, and how")
        if size * max(steps, 1) > MOST_DRAWN:
            raise ValueError(f"{self.name} was trained on {size * steps:,} rows: at most {MOST_DRAWN:,} are drawn again")
        return Trained(source_from(dict(self.card.source)).data(self.tokenizer, self.model.config), size, seed, steps)

    def _asked_words(self, sentences: Sequence[str], words: Sequence[str]) -> list[tuple[list[int], list[list[int]]]]:
        """The tokens of each sentence, as far as the model sees them, and those of each word after it."""
        if not sentences or not words:
            raise ValueError("give at least one sentence to complete, and one word to complete it with")
        if self.model.config.kind != "decoder":
            raise ValueError(f"{self.name} is a {self.model.config.kind}: only decoders complete sentences")
        asked = []
        for sentence in sentences:
            prompt = list(self.tokenizer.encode(sentence).ids)
            after = [self._after(sentence, prompt, word) for word in words]
            room = self.model.config.context_length - max(map(len, after)) + 1
            asked.append((prompt[-max(room, 1) :], after))
        return asked

    def _after(self, sentence: str, prompt: list[int], word: str) -> list[int]:
        """The tokens of a word after a sentence, whose own tokens are `prompt`."""
        is_joined = self.tokenizer.kind == CharTokenizer.kind or sentence[-1:].isspace() or not word[:1].isalnum()
        read = self.tokenizer.encode(f"{sentence}{'' if is_joined else ' '}{word}")
        if read.unknown:
            raise ValueError(f"{self.name} cannot answer {sentence!r:.80} with {word!r:.40}: {read.unknown_sentence()}")
        if not prompt or not word.strip() or read.ids[: len(prompt)] != prompt or len(read.ids) == len(prompt):
            raise ValueError(
                f"{self.name} reads {sentence!r:.80} with {word!r:.40} as other tokens than the two alone: end the sentence "
                "before a whole word"
            )
        return list(read.ids[len(prompt) :])

    def costs(self, batch: int = 1, context: int | None = None) -> Costs:
        """The costs of this model for `batch` texts of `context` tokens (by default as many as it can read): see
        `gptviz.interp.reading.costs`.

        Raises:
            ValueError: an impossible batch, or more tokens than the context holds.
        """
        return costs(self.model.config, batch, context)


def _sampling(settings: Mapping[str, Any]) -> Sampling:
    """How tokens are drawn, from the fields of `Sampling` by name.

    Raises:
        TypeError: there is no such field.
        ValueError: as in `Sampling`.
    """
    known = [field.name for field in fields(Sampling)]
    for name in settings:
        if name not in known:
            raise TypeError(f"{name!r:.40} is no setting of how tokens are drawn{instead(name, known)}")
    return Sampling(**settings)


def _depth() -> int:
    """How many functions of this package, one inside the other, lead to the one that asks: a warning names the line outside."""
    depth = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        depth, frame = depth + 1, frame.f_back
    return depth


def load(name: str | Path, device: str | None = None, step: int | None = None, precision: str = STORED) -> LanguageModel:
    """Open a model on `device` (default: the fastest).

    A name is that of a checkpoint; else that of a model on the Hugging Face hub, such as "gpt2", which is imported once: from the
    cache of `huggingface_hub`, or fetched with a bar that shows how far it is. A `Path` leads to a checkpoint, or to a model of
    another program (a folder with config.json and weights, a .gguf file, nanoGPT's ckpt.pt), which is opened where it is.

    With `step`, the snapshot after that many steps of training. There is a warning if `name` is a model of the user's that hides
    one which came with gptviz.

    `precision` is what weights are multiplied in: "float32", "bfloat16" or "float16"; "stored" is what the file has where this
    machine multiplies in it, else float32. In memory a weight has as many bytes as in its file, or fewer if these are enough. See
    `gptviz.model.precision`.

    Raises:
        CheckpointError: there is no such checkpoint or snapshot, or it cannot be opened; the message says why and what to do.
        TypeError: `name` is neither a text nor a `Path`.
        ValueError: there is no such device or precision.
    """
    if not isinstance(name, str | Path):
        raise TypeError(f'{name!r:.80} names no model: give a name such as "shakespeare", or a pathlib.Path')
    on = choose_device(device)
    check_precision(precision)
    if isinstance(name, Path):
        folder = name.absolute()
        if not os.path.lexists(folder):
            raise checkpoints.CheckpointError(f"there is no file and no folder at {name}")
        if step is None and (opened := imports.in_place(folder, on, precision)) is not None:
            return LanguageModel(opened.name, opened.model, opened.tokenizer, opened.card, precision=precision)
    else:
        folder = _folder_called(name)
        if name in checkpoints.hidden():
            warnings.warn(checkpoints.about_hiding(name, folder), stacklevel=2)
    opened = checkpoints.load(folder, on, step, precision)
    return LanguageModel(opened.name, opened.model, opened.tokenizer, opened.card, step, precision)


def _folder_called(name: str) -> Path:
    """The checkpoint of this name, else that of the model which has the name on the hub, imported now if it was not before.

    Raises:
        CheckpointError: there is neither.
    """
    try:
        return checkpoints.find(name)
    except checkpoints.CheckpointError as error:
        missing = error
    if not imports.could_be_on_hub(name):
        path = f". A file or folder is opened with load(pathlib.Path({name!r:.80}))" if set(name) & set("/\\") else ""
        raise checkpoints.CheckpointError(f"{missing}{path}")
    try:
        return imports.of_hub(name)
    except checkpoints.CheckpointError as error:
        raise checkpoints.CheckpointError(f"{missing}. It was looked for on the Hugging Face hub too: {error}") from None
