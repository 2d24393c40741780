"""A trained transformer with its tokenizer: how it reads a text, with or without edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import NamedTuple, Self

import torch
from torch import Tensor

from gptviz.data.registry import learned_task
from gptviz.generate.decoding import decode, until_end
from gptviz.generate.generation import window_start
from gptviz.generate.sampling import Sampling
from gptviz.interp.changing import edits as unit_edits
from gptviz.interp.changing.edit import Edit, Inputs
from gptviz.interp.trace import Trace, run
from gptviz.machine.warning import warn_caller
from gptviz.model import Transformer
from gptviz.model.costs.effort import n_parameters
from gptviz.model.kinds import MODEL_KINDS, Kind, ModelKind
from gptviz.model.lora import MergedTransformer
from gptviz.model.precision import STORED, describe_types
from gptviz.runs import checkpoints
from gptviz.runs.card import Card
from gptviz.settings.kinds import Size
from gptviz.text import Encoding, SpecialTokensTokenizer, Tokenizer
from gptviz.text.datasets.base import Task

from .answer_space import AnswerSpace, of_labels, of_tokens
from .opening import folder_called
from .settings import check_settings

# Of a reference text for edits, the most tokens that are read, and how many at a time.
MOST_REFERENCE = 8_192
LONGEST_PIECE = 1_024


class TextTrace(Trace):
    """A trace that knows its model and its text, as `LoadedModel.trace` returns it; `gptviz.show`
    draws it.
    """

    def __init__(self, trace: Trace, lm: LoadedModel, prompt: str, *, is_own: bool) -> None:
        super().__init__(trace.ids, dict(trace), trace.source)
        self.lm = lm  #: the model
        self.prompt = prompt  #: the text that it read
        #: whether the model computed all by itself: no value was replaced, and an encoder–decoder
        #: wrote its own answer
        self.is_own = is_own


class Reading(NamedTuple):
    """The tokens that a model reads."""

    #: [T]; in an encoder–decoder, those that its decoder reads: the start token and what it writes
    ids: Tensor
    #: [S], the tokens that the encoder of an encoder–decoder reads; None for other models
    source: Tensor | None = None
    #: the token that follows the last of `ids`, where that is known: the end token after a complete
    #: answer
    following: int | None = None


class LoadedModel:
    """A trained model with its tokenizer, and how it reads a text. The functions of the other files
    take one; `LanguageModel` makes them methods.
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
        self.name = name
        self.model = model
        self.tokenizer = tokenizer
        self.card = card
        self.step = step
        self.precision = precision
        self.changes: tuple[Edit, ...] = ()
        self.edit_text: str | None = None
        self._original: Self | None = None

    @property
    def original(self) -> Self:
        """The same model without edits: itself where it has none."""
        if self._original is None:
            return self
        return self._original

    @property
    def edits(self) -> tuple[str, ...]:
        """The edits that it has, as texts, in the order of the model's parts."""
        return tuple(edit.text for edit in self.changes)

    def edited(self, *edits: str | Edit, text: str | None = None) -> Self:
        """This model with pieces switched off or replaced: all that it computes, from `trace` to
        `generate`, is with these edits.

        It shares all weights that are not edited, and none is touched. An edit is an object, such
        as `direction * 2`, or its text, a unit and what becomes of it:

        - `blocks.1.attention.head.3`, `blocks.1.attention`, `blocks.1.mlp`,
          `blocks.1.mlp.neuron.17`, `embed`: switched off, what
          it computes is replaced by zero. Of a head that is what it hands to the output projection;
          of a whole attention or MLP, what it adds to the stream, its bias included.
        - `…=mean`: replaced by its mean over the tokens of `text`.
        - `blocks.1.attention.head.3=uniform`, `=previous`, `=from`, also of a whole attention: its
          pattern, over all tokens that
          it may read, on the previous token, or that over the beginning of `text`. Positions count
          from the beginning; a query beyond the end of `text` keeps its own row.
        - `blocks.0.mlp.neuron.17=4.2`: a neuron set to a number, from -100,000 to 100,000 as all
          numbers of edits.
        - `blocks.0.mlp.expert.3`: an expert of a mixture adds nothing; the other experts keep the
          weights that the router gave.
        - `positions`, `positions=shuffled`: no positions; or the places of the context in a random
          order, always the same.
        - `weights=4bit.g32`, `blocks.0.mlp.up.weight=Q4_0`: all matrices, or one, in few bits: see
          `gptviz.model.quantising`.
          What they stand for is computed with in float32; the means of other edits are then those
          of this model.
        - `direction.number-1f0c2a9b=2`: a direction (see `lm.direction`) is added to the stream, 2
          times its spread; without a
          number it is taken out of the stream.
        - `swap.blocks.1.mlp.17.42=1`: tokens 17 and 42 change places in the stream after a layer
          (see `lm.swap`); at 0.5 half the
          way.
        - `adapter=0.5`: of a LoRA adapter the strength: 0 is its base to the bit, 1 is as trained,
          2 goes twice as far.

        Args:
            edits: added to those that this model has.
            text: the reference text of all edits, read as a prompt, a long one in pieces.

        Raises:
            ValueError: the model has no such unit, an edit is not possible or lacks a `text`, or
                this model's edits have another.
        """
        if not edits:
            return self
        if text is not None and self.edit_text not in (None, text):
            raise ValueError(
                "the edits of this model have another reference text already: give all edits at "
                "once"
            )
        model = self.original.model
        reference = self.edit_text if text is None else text
        every = unit_edits.edits((*self.changes, *edits), model.config)
        if any(edit.needs_text for edit in every):
            used = reference
        else:
            used = None
        twin = copy(self.original)
        twin.model = unit_edits.edit_model(
            model, every, () if used is None else read_reference(self.original, used)
        )
        twin.changes = every
        twin.edit_text = used
        twin._original = self.original
        return twin

    def __repr__(self) -> str:
        config = self.model.config
        step = "" if self.step is None else f" after {self.step:,} steps"
        step += f", edited ({', '.join(self.edits)})" if self.edits else ""
        return (
            f"<{type(self).__name__} {self.name}{step}: {config.kind}, "
            f"{n_parameters(self.model):,} "
            "parameters, "
            f"{self.tokenizer.vocab_size:,} tokens ({self.tokenizer.kind}), context "
            f"{config.context_length:,}, {describe_types(self.model)}, on {self.device}>"
        )

    @property
    def kind(self) -> ModelKind:
        """The kind of the model, by its output for a text: its next token, a label, or another
        text.
        """
        return MODEL_KINDS[self.model.config.kind]

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        return self.model.embed.weight.device

    def encode(self, text: str) -> Tensor:
        """The token ids [T] of `text`. What the vocabulary lacks is named in a warning; a TypeError
        if it is no text.
        """
        if not isinstance(text, str):
            raise TypeError(f'{text!r:.80} is no text: give a string, such as "O Romeo"')
        encoding = self.tokenizer.encode(text)
        if encoding.unknown:
            warn_caller(encoding.unknown_sentence())
        return ids_of(self, encoding)

    def seen(self, ids: Tensor) -> Tensor:
        """The part of `ids` [T] that the model sees: the last `context_length`; for an encoder, the
        first.
        """
        if self.model.config.kind != "decoder":
            return ids.new_tensor(
                self.tokenizer.beginning(ids.tolist(), self.model.config.context_length)
            )
        return ids[window_start(len(ids), self.model.config.context_length) :]

    def source(self, text: str) -> Tensor:
        """The tokens that an encoder reads of `text`: its ids and the end token, [S]; a ValueError
        if they are too many.
        """
        ids = torch.cat(
            (self.encode(text), torch.tensor([special_tokenizer(self).end], device=self.device))
        )
        if len(ids) > (most := self.model.config.context_length):
            raise ValueError(
                f"the source has {len(ids):,} tokens with its end; {self.name} reads at most "
                f"{most:,}: shorten it"
            )
        return ids

    def trace(
        self,
        prompt: str,
        names: Iterable[str] = ("*",),
        target: str | None = None,
        *,
        edits: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
    ) -> TextTrace:
        """The values that the model computes over the tokens of `prompt` that it sees, by tap name.

        For example `trace("O Romeo")["blocks.2.attention.pattern"]` [1, head, query, key]. `names`
        (shell patterns) choose the tensors to keep, `edits` replace values during the forward pass:
        see `gptviz.interp.trace.run`. The decoder of an encoder–decoder reads the start token and
        the tokens of `target`.
        """
        ids, source = self.inputs(prompt, target)
        traced = run(
            self.model,
            ids[None],
            names,
            source=None if source is None else source[None],
            edits=edits,
        )
        return TextTrace(traced, self, prompt, is_own=not edits and target is None)

    def inputs(self, prompt: str, target: str | None = None) -> tuple[Tensor, Tensor | None]:
        """The `ids` and the `source` of `read_prompt`."""
        return read_prompt(self, prompt, target)[:2]

    @property
    def task(self) -> Task | None:
        """The task that a decoder has learned, in its own tokens; None for other data."""
        is_decoder = self.model.config.kind == "decoder"
        if is_decoder:
            return learned_task(self.card.source, self.tokenizer)
        return None

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of a classifier's labels, or "0", "1", … if its card has none that differ.
        Empty for other models.
        """
        named = self.card.labels or ()
        n_label = self.model.config.n_label
        if len(named) == len(set(named)) == n_label:
            return named
        return tuple(map(str, range(n_label)))

    def token(self, text: str | int) -> int:
        """The token that stands for exactly `text`; of a classifier, the label of this name. An id
        stays as it is.

        Raises:
            ValueError: there is none.
        """
        if isinstance(text, int) or self.kind.guesses == "token":
            return token_of_vocabulary(self, text)
        if text not in self.labels:
            raise ValueError(
                f"{text!r:.80} is no label of {self.name}; its labels are {', '.join(self.labels)}"[
                    :400
                ]
            )
        return self.labels.index(text)

    @property
    def base(self) -> Self | None:
        """The model whose weights this LoRA adapter changes, or None if it is no adapter."""
        if not isinstance(self.original.model, MergedTransformer):
            return None
        folder = checkpoints.base_of(folder_called(self.name))
        return type(self)(
            checkpoints.name_of(folder),
            self.original.model.base,
            self.tokenizer,
            checkpoints.read_card(folder),
            None,
            self.precision,
        )


def require(lm: LoadedModel, kind: Kind, why: str) -> None:
    """Refuse a model of another kind with a ValueError that says `why` the kind matters."""
    if lm.model.config.kind != kind:
        raise ValueError(f"{lm.name} is {MODEL_KINDS[lm.model.config.kind].with_article}: {why}")


def ids_of(lm: LoadedModel, encoding: Encoding) -> Tensor:
    """The ids [T] of an encoding, on the model's device. A ValueError if there are none but
    those around every text.
    """
    if lm.model.config.kind == "classifier":
        if len(encoding.ids) <= len(lm.tokenizer.before) + len(lm.tokenizer.after):
            raise ValueError(f"the text to classify has {lm.tokenizer.without}")
    elif not encoding.ids:
        raise ValueError(
            "the prompt is empty: type at least one character for the model to go on from, or "
            "to answer"
        )
    return torch.tensor(encoding.ids, device=lm.device)


def end_tokens(lm: LoadedModel) -> frozenset[int]:
    """The tokens that end a text, where the model has such; most models that were trained on
    chats have.
    """
    return frozenset(token for token in lm.card.end_tokens if token < lm.tokenizer.vocab_size)


def special_tokenizer(lm: LoadedModel) -> SpecialTokensTokenizer:
    """The tokenizer of an encoder–decoder, which has start, end and padding."""
    require(lm, "encoder-decoder", "only an encoder–decoder answers a text with another")
    if not isinstance(lm.tokenizer, SpecialTokensTokenizer):
        raise ValueError(
            f"{lm.name} cannot answer: its tokens ({lm.tokenizer.kind}) have no start and "
            "end tokens"
        )
    return lm.tokenizer


def read_prompt(lm: LoadedModel, prompt: str, target: str | None = None) -> Reading:
    """The tokens that the model reads of `prompt`: see `LoadedModel.trace`."""
    if lm.model.config.kind != "encoder-decoder":
        if target is not None:
            raise ValueError(
                f"{lm.name} is {MODEL_KINDS[lm.model.config.kind].with_article}: only an "
                "encoder–decoder has a target to write"
            )
        return Reading(lm.seen(lm.encode(prompt)))
    source = lm.source(prompt)
    special = special_tokenizer(lm)
    end = None
    if target is not None:
        ids = [special.start, *special.encode_answer(target).ids]
    else:
        written, ended = decode_answer(lm, prompt)
        # An answer without an end fills the context: with the start token before it, its last
        # token has no place.
        ids = [special.start, *written][: lm.model.config.context_length]
        if ended and len(ids) > len(written):
            end = special.end
        else:
            end = None
    return Reading(torch.tensor(ids, device=lm.device), source, end)


def read_reference(lm: LoadedModel, text: str) -> list[Inputs]:
    """The pieces of a reference text for edits, as the model reads it; an encoder–decoder
    refuses one that is too long.
    """
    config = lm.model.config
    if config.kind != "decoder":
        ids, source = lm.inputs(text)
        return [Inputs(ids[None], None if source is None else source[None])]
    pieces = lm.encode(text)[:MOST_REFERENCE].split(min(config.context_length, LONGEST_PIECE))
    return [Inputs(piece[None]) for piece in pieces]


def answer_space_of(lm: LoadedModel) -> AnswerSpace:
    """What the logits of the model are of."""
    if lm.kind.guesses == "label":
        return of_labels(lm.labels)
    return of_tokens(lm.tokenizer)


def data_title(lm: LoadedModel) -> str:
    """The name of the data that this model learned from, with its own name."""
    return f"{lm.card.task or lm.card.corpus or 'unknown data'} ({lm.name})"


@check_settings
def decode_answer(
    lm: LoadedModel, text: str, longest: Size | None = None, sampling: Sampling | None = None
) -> tuple[list[int], bool]:
    """An encoder–decoder's answer to `text`, with its likeliest tokens unless a `sampling` is
    given: its tokens, and whether it ends.

    An answer without an end is cut after `longest` tokens, by default after `context_length`.
    """
    source = lm.source(text)
    special = special_tokenizer(lm)
    ids = decode(
        lm.model,
        source[None],
        special.start,
        special.end,
        sampling,
        longest,
        special.unused_ids,
    )[0]
    return until_end(ids, special.end)


def stack_of(lm: LoadedModel, stack: str) -> Transformer:
    """The "encoder" of a model; or, as "decoder" or for its "cross"-attention, the model itself.

    Raises:
        ValueError: it has no encoder.
    """
    if stack == "decoder" or (stack == "cross" and lm.model.encoder is not None):
        return lm.model
    if lm.model.encoder is None:
        raise ValueError(f"{lm.name} has one stack, which is called decoder here")
    return lm.model.encoder


def find_tokens(lm: LoadedModel, *texts: str | int | None) -> list[int | None]:
    """`token` of each of them; None stays."""
    return [None if text is None else lm.token(text) for text in texts]


def token_of_vocabulary(lm: LoadedModel, text: str | int) -> int:
    """As `token`, of the vocabulary for a classifier too."""
    if isinstance(text, int):
        return text
    if (token := lm.tokenizer.id_of(text)) is not None:
        return token
    read = lm.tokenizer.encode(text)
    ids = read.ids[lm.tokenizer.text_slice(read.ids)]
    if len(ids) == 1 and not read.unknown:
        return ids[0]
    pieces = " · ".join(lm.tokenizer.label(i) for i in ids[:20])
    raise ValueError(
        f"{text!r:.80} is no single token of {lm.name}"
        + (f": it is read as {pieces}" if pieces else "")
    )
