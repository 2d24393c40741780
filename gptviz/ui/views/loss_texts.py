"""The texts that a loss is over: the prompt, or some of what was held out when the model was trained."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
import torch

from gptviz.interp.changing.ablation import NOT_COUNTED, Rows, loss
from gptviz.interp.changing.before_after import guess, guess_and_loss
from gptviz.interp.changing.edits import Inputs, UnitEdit, edited_by_each
from gptviz.interp.units.unit import Unit, heads_and_mlps
from gptviz.labelled_array import Float64Array
from gptviz.language_model import LanguageModel
from gptviz.machine.memory import release_memory
from gptviz.model.costs.effort import LITTLE, effort
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.widgets import controls, escaped, jobs

from . import encoder_decoder, held_out

PROMPT, HELD_OUT = "the prompt", "held-out data"


@dataclass(frozen=True)
class LossText:
    """The text over which a loss is measured: the prompt, with its tokens, or data held out, whose `ids` are empty."""

    which: str
    ids: tuple[int, ...] = ()


def unit_of(lm: LanguageModel) -> str:
    """The unit of a loss."""
    return "nats per text" if lm.model.config.kind == "classifier" else "nats per token"


def choose(subject: Subject) -> LossText:
    """The control for the text; the prompt where data held out is not here."""
    options = [PROMPT, HELD_OUT] if subject.lm.card.source is not None else [PROMPT]
    which = PROMPT
    if len(options) > 1:
        which = controls.select(
            "Loss over",
            options,
            key="over",
            # Of a task only the answers count, and a prompt may be without one.
            default=HELD_OUT if subject.kind == "decoder" and subject.on_task else PROMPT,
            segmented=True,
            help="The loss is the mean surprise, −ln of the probability that the model gave to what really came: over the prompt "
            f"above, or over the first {held_out.MOST_TOKENS:,} tokens or so of {held_out.said(subject.key)}, of which only the "
            "answers count where the data have answers.",
        )
    if which == HELD_OUT:
        try:
            rows(subject.key.unedited, LossText(HELD_OUT))
        except (ValueError, OSError, KeyError, TypeError) as error:
            st.info(f"The held-out data cannot be read ({escaped(str(error))}): the loss is over the prompt.")
            which = PROMPT
    return LossText(which) if which == HELD_OUT else LossText(PROMPT, subject.seen)


# Read-only, shared by all sessions.
@st.cache_resource(max_entries=8, show_spinner=False)
def rows(key: ModelKey, text: LossText) -> tuple[Rows, ...]:
    """The text as the model of `key`, which has no edits, reads it, with what it has to predict.

    Of a prompt, a classifier has to predict the label that it gives the text itself, an encoder–decoder its own answer: a loss
    then says how much of its own opinion is left.

    Raises:
        ValueError: the data held out does not fit the model, or there is nothing to predict.
        OSError: it is not on this machine.
    """
    lm = language_model(key)
    return held_out.tested(key) if text.which == HELD_OUT else (_of_prompt(key, lm, text.ids),)


def _of_prompt(key: ModelKey, lm: LanguageModel, ids: tuple[int, ...]) -> Rows:
    reading = reading_of(key, ids)
    if lm.model.config.kind == "classifier":
        return Rows(reading, torch.tensor([int(guess(lm.model, reading).argmax())], device=lm.device))
    targets = reading.ids.roll(-1, dims=1)
    targets[:, -1] = NOT_COUNTED
    own = encoder_decoder.answer(key, ids)
    if own is not None and own.ended and len(own.written) == reading.ids.shape[1]:
        targets[:, -1] = own.written[-1]
    return Rows(reading, targets)


def reading_of(key: ModelKey, ids: tuple[int, ...]) -> Inputs:
    """The prompt as the model of `key` reads it; the decoder of an encoder–decoder reads its own answer."""
    lm = language_model(key)
    if lm.model.config.kind != "encoder-decoder":
        return Inputs(torch.tensor([ids], device=lm.device))
    read = encoder_decoder.decoder_ids(key, ids)
    return Inputs(torch.tensor([read], device=lm.device), torch.tensor([ids], device=lm.device))


def loss_of(key: ModelKey, text: LossText) -> float:
    """The loss of the model, with its edits, over the text."""
    if text.which == PROMPT and language_model(key).model.config.kind == "decoder":
        return _read(key, text.ids)[1]
    return _loss_over(key, text)


def guess_of(key: ModelKey, ids: tuple[int, ...]) -> Float64Array:
    """The probabilities of tokens or labels after the prompt, with edits; the tokens read are those without edits."""
    return _read(key, ids)[0] if language_model(key).model.config.kind == "decoder" else _guess_of(key, ids)


@st.cache_data(max_entries=256, show_spinner=False)
def _loss_over(key: ModelKey, text: LossText) -> float:
    return loss(language_model(key).model, rows(key.unedited, text))


@jobs.data("Reading the prompt", max_entries=64)
def _guess_of(key: ModelKey, ids: tuple[int, ...]) -> Float64Array:
    return guess(language_model(key).model, _guessed(key, ids))


@jobs.data("Switching off one head after the other", max_entries=32)
def without_each(key: ModelKey, ids: tuple[int, ...]) -> dict[Unit, Float64Array]:
    """The guess after the prompt without each head; empty for a model that needs more than a moment for that."""
    model = language_model(key).model
    heads = [unit for unit in heads_and_mlps(model.config) if unit.is_head]
    if effort(model, len(ids), len(heads)) > LITTLE:
        return {}
    reading = _guessed(key, ids)
    return {one.unit: guess(twin, reading) for one, twin in edited_by_each(model, [UnitEdit(head) for head in heads])}


def _guessed(key: ModelKey, ids: tuple[int, ...]) -> Inputs:
    """The tokens read before the guess; an encoder–decoder guesses the first token of its answer."""
    reading = reading_of(key.unedited, ids)
    return reading if reading.source is None else reading._replace(ids=reading.ids[:, :1])


# One pass gives both.
@jobs.data("Reading the prompt", max_entries=64)
def _read(key: ModelKey, ids: tuple[int, ...]) -> tuple[Float64Array, float]:
    (prompt,) = rows(key.unedited, LossText(PROMPT, ids))
    found = guess_and_loss(language_model(key).model, prompt.reading, prompt.targets)
    release_memory()  # while two texts are written meanwhile, each in a thread with its own heap
    return found
