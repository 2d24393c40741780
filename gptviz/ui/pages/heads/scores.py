"""What heads read, the scores of all, and the pattern of each: what the views of the page share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import streamlit as st
import torch

from gptviz.interp.changing.ablation import loss, loss_with_each
from gptviz.interp.changing.edits import UnitEdit
from gptviz.interp.reading import attention as patterns
from gptviz.interp.reading.cross_attention import SOURCE, WRITES
from gptviz.interp.units.head_scores import (
    LOSS_TOKENS,
    SCORES,
    AttentionPart,
    HeadScores,
    head_scores,
    losses_without,
    scored,
    scores_over_texts,
)
from gptviz.interp.units.head_weights import HeadInput, by_chance, composition, copying
from gptviz.interp.units.unit import Unit, unit
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import job, progress
from gptviz.machine.job import Job
from gptviz.model import Transformer
from gptviz.model.costs.effort import LITTLE, effort
from gptviz.ui.records.heads import READS
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.shell.subject.bar import read_prompt
from gptviz.ui.views import attention, encoder_decoder, held_out
from gptviz.ui.views.contrasts import known_contrasts
from gptviz.ui.views.read import Read
from gptviz.ui.views.texts import OWN, PASSAGES, text_of
from gptviz.ui.widgets import addresses, controls, jobs

RANDOM, PROMPT, HELD_OUT = "Repeated random tokens", "The prompt", "Held-out data"
# The key in the address of the head that is shown.
CHOSEN = "unit"
# How many tokens of a long text are on the picture of a head's pattern.
MOST_SHOWN = 128
# Kinds of heads; a head is said to be of a kind from this share on.
KINDS = ("induction", "previous_token", "first_token", "duplicate_token")
CLEARLY = 0.3


@dataclass(frozen=True)
class HeadSetting:
    """Which heads are scored, and what they read.

    Attributes:
        key: the model.
        stack: as in `Read`.
        read: the text that they read, or None if it is none of the reader's.
        held_out: whether they read data that were held out of the model's training; else, without a text, they read repeated
            random tokens.
        text: the text that is read in place of the prompt; empty for any other.
    """

    key: ModelKey
    stack: str
    read: Read | None
    held_out: bool = False
    text: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """How many blocks there are, and heads in each."""
        config = language_model(self.key).model.config
        return encoder_decoder.n_blocks(config, self.stack), config.n_head

    def unit(self, block: int, head: int) -> Unit:
        """A head of the stack."""
        part: AttentionPart = "cross_attention" if self.stack == attention.CROSS else "attention"
        return Unit(part, block, head, in_encoder=self._in_encoder)

    @property
    def _in_encoder(self) -> bool:
        return self.stack == encoder_decoder.ENCODER and language_model(self.key).model.encoder is not None


class HeadTexts(NamedTuple):
    """The tokens that heads read.

    Attributes:
        rows: the texts, each [T].
        source: what an encoder reads with them, [1, S], or None if there is none.
    """

    rows: tuple[torch.Tensor, ...]
    source: torch.Tensor | None = None

    @property
    def ids(self) -> torch.Tensor:
        """All texts as one tensor [texts, T], where they are equally long."""
        return torch.stack(self.rows)


def setting(subject: Subject, stack: str, view: str) -> HeadSetting:
    """The control `over`: what the heads read, where the view shows what comes of it. An encoder–decoder reads the prompt and
    writes its own answer.
    """
    read = attention.stack_read(subject, stack)
    if subject.kind == "encoder-decoder" or subject.lm.repeats is None:
        return HeadSetting(subject.key, stack, read)
    about = (
        "Random tokens that are repeated once: what follows a token in the second half can only be known from the first half, so "
        "heads that look back cannot be mistaken for heads that know the language. Your own prompt. Or "
        f"{held_out.said(subject.key)}, where these are on this machine. For a model from elsewhere, passages of old books that "
        "come with gptviz, or a text of yours."
    )
    options = [RANDOM, PROMPT]
    options += [HELD_OUT] if subject.kind == "decoder" and held_out.is_here(subject.key) else []
    options += [PASSAGES, OWN] if subject.is_imported else []
    # The skill that a model was trained for shows in texts that need it, not in random tokens.
    usual = HELD_OUT if known_contrasts(subject.lm) else RANDOM
    fits = len(options) <= 3  # side by side, in one line with the other choices
    over = controls.select("Heads read", options, key="over", default=usual, help=about, segmented=fits, disabled=view == READS)
    if over in (PASSAGES, OWN):
        other = read_prompt(subject.key, subject.lm, text_of(over, subject.prompt), subject.prompt, needs_prompt=False)
        return HeadSetting(subject.key, stack, attention.stack_read(other, stack), text=other.prompt)
    return HeadSetting(subject.key, stack, read if over == PROMPT else None, over == HELD_OUT)


def score(names: tuple[str, ...], first: str) -> str:
    """The control `score`: what colours and orders the heads; `first` unless something else is chosen."""
    about = "Colours the cells, and orders the table. Each column of the table says how its score is defined."
    return controls.select("Score", names, key="score", default=first, help=about, format_func=lambda name: SCORES[name].title)


def text(setting: HeadSetting) -> HeadTexts:
    """The tokens that the heads read."""
    lm = language_model(setting.key)
    if setting.held_out:
        return HeadTexts(held_out.texts(setting.key))
    if setting.read is None:
        return HeadTexts(tuple(lm.repeated_tokens()))
    ids = scored(torch.tensor(setting.read.ids, device=lm.device), lm.model.config)
    source = setting.read.source
    return HeadTexts((ids,), None if source is None else torch.tensor([source], device=lm.device))


@jobs.data("Scoring the heads", max_entries=32)
def scores(setting: HeadSetting) -> HeadScores:
    """The scores of all heads of the stack."""
    lm, read = language_model(setting.key), text(setting)
    repeats = lm.repeats if (setting.held_out or setting.read is not None) and lm.model.encoder is None else None
    stack = stack_of(setting.key, setting.stack)
    if setting.held_out:
        found = scores_over_texts(stack, read.rows, repeats)
    else:
        found = head_scores(stack, read.ids, read.source, crosses=setting.stack == attention.CROSS, repeats=repeats)
    copies = setting.stack == encoder_decoder.DECODER and lm.model.config.kind != "classifier"
    return found.including(copying=_copying(setting.key)) if copies else found


def stack_of(key: ModelKey, stack: str) -> Transformer:
    """The transformer whose blocks the heads of the `stack` are in."""
    return encoder_decoder.stack_of(language_model(key).model, stack)


@st.cache_data(max_entries=32, show_spinner=False)
def _copying(key: ModelKey) -> Float64Array:
    return copying(language_model(key).model)


def losses(setting: HeadSetting) -> Callable[[], None] | None:
    """Begins, or finds, the computation of the loss without each head. Where it takes a moment it is done at once; else somebody
    has to ask for it. Gives what shows how far it is, or None if there is no such loss.
    """
    lm = language_model(setting.key)
    read = text(setting)
    if lm.model.config.kind == "classifier" or max(map(len, read.rows)) < 2:
        return None
    heads = [setting.unit(block, head) for block, head in np.ndindex(setting.shape)]
    tokens = sum(map(len, read.rows))
    tokens = tokens if setting.held_out else min(tokens, LOSS_TOKENS)
    key, title = ("head losses", setting), f"The loss without each of {len(heads):,} heads"
    begins = effort(lm.model, tokens, len(heads)) <= LITTLE
    _, show = jobs.on_demand(key, title, lambda _: _rises(setting, heads), begins=begins)
    label = "Compute the loss without each head"
    about = f"{len(heads):,} forward passes; they go on while you look at other pages."
    return partial(show, label, label, "head losses", about)


def _rises(setting: HeadSetting, heads: Sequence[Unit]) -> dict[Unit, float]:
    """How much the loss rises without each head; over data held out, the loss of what counts there."""
    lm = language_model(setting.key)
    if setting.held_out:
        rows = held_out.tested(setting.key)
        with progress.part(0, 1 + len(heads)):
            usual = loss(lm.model, rows)
        each = loss_with_each(lm.model, rows, [UnitEdit(head) for head in heads])
        return {one.unit: value - usual for one, value in each}
    read = text(setting)
    ids, source = read.ids, read.source
    decoded = ids
    if lm.model.encoder is not None and setting.stack == encoder_decoder.ENCODER:
        decoded, source = torch.tensor([encoder_decoder.decoder_ids(setting.key, tuple(ids[0].tolist()))]), ids
    first = lm.second_half(ids) if setting.read is None else 1
    return dict(losses_without(lm.model, decoded, heads, source, counted_from=first))


def with_losses(setting: HeadSetting, found: HeadScores) -> HeadScores:
    """The scores with the loss without each head, where that is known."""
    ready: Job[dict[Unit, float]] | None = job.found(("head losses", setting))
    if ready is None or ready.value is None:
        return found
    changes = [ready.value[setting.unit(block, head)] for block, head in np.ndindex(setting.shape)]
    return found.including(delta_loss=np.array(changes).reshape(setting.shape))


def chosen(setting: HeadSetting, first: tuple[int, int]) -> tuple[int, int]:
    """The block and the head that the address asks for; `first` where it asks for none of this stack."""
    config = language_model(setting.key).model.config
    found = controls.linked(CHOSEN, lambda asked: unit(asked, config), setting.unit(*first))
    if found.block is None or found.index is None or found != setting.unit(found.block, found.index):
        return first  # a head of another stack
    return found.block, found.index


def choose(setting: HeadSetting, block: int, head: int) -> None:
    """Put a head into the address."""
    addresses.write(CHOSEN, setting.unit(block, head).name)


def known(found: HeadScores) -> tuple[str, ...]:
    """The scores that some head has."""
    return tuple(name for name in SCORES if not np.isnan(found.values[name]).all())


def first_score(setting: HeadSetting, found: HeadScores) -> str:
    """The score that the page opens on: over data held out the loss without a head, where that is known; else induction, where
    there is a head of that kind, or the kind that some head is most of.
    """
    if setting.held_out and "delta_loss" in known(found):
        return "delta_loss"
    shares = {name: float(np.nanmax(found.values[name])) for name in KINDS if name in known(found)}
    if shares.get("induction", 0.0) >= CLEARLY or not shares:
        return next(name for name in ("induction", *known(found)) if name in known(found))
    return max(shares, key=shares.__getitem__)


def ranked(found: HeadScores, name: str) -> list[tuple[int, int]]:
    """Block and head of all heads, the highest score first; those without one last."""
    values = np.nan_to_num(found.values[name], nan=-np.inf)
    order = np.argsort(-values, axis=None, kind="stable")
    return [(int(block), int(head)) for block, head in zip(*np.unravel_index(order, values.shape), strict=True)]


@st.cache_data(max_entries=32, show_spinner=False)
def pattern(setting: HeadSetting, block: int, head: int) -> LabelledArray:
    """The pattern of one head over the first text that it reads, or over the last tokens of that."""
    lm, read = language_model(setting.key), text(setting)
    ids, source = read.rows[0].tolist(), None if read.source is None else read.source[0].tolist()
    part: patterns.AttentionPart = "cross_attention" if setting.stack == attention.CROSS else "attention"
    values = patterns.pattern(stack_of(setting.key, setting.stack), ids, block, head, source, part)
    label = lm.tokenizer.label
    written = setting.read.written if setting.read is not None and part == "cross_attention" else ()
    queries = [label(i) for i in written or ids][-MOST_SHOWN:]
    keys = [label(i) for i in (source if part == "cross_attention" else ids) or ()][-MOST_SHOWN:]
    names = (WRITES, SOURCE) if part == "cross_attention" else (patterns.QUERY, patterns.KEY)
    axes = Axis(names[0], tuple(queries)), Axis(names[1], tuple(keys))
    return LabelledArray(values[-MOST_SHOWN:, -MOST_SHOWN:], axes, patterns.UNIT)


@jobs.data("Multiplying the weights of the heads", max_entries=16)
def composed(key: ModelKey, stack: str, reads: HeadInput) -> LabelledArray:
    """See `gptviz.interp.units.head_weights.composition`."""
    return composition(stack_of(key, stack), reads)


def chance(key: ModelKey, stack: str) -> float:
    """The composition expected by chance."""
    return by_chance(stack_of(key, stack))
