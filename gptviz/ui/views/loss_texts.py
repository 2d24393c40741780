"""The texts that a loss is over: the prompt, or some of what was held out when the model was
trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gptviz.interp.changing.ablation import Rows, loss
from gptviz.interp.changing.before_after import Guess, guess
from gptviz.interp.changing.edits import edit_unit, edited_by_each
from gptviz.interp.units.unit import Unit, heads_and_mlps
from gptviz.labelled_array import Float64Array
from gptviz.language_model import LanguageModel, changing, data
from gptviz.machine.errors import reason_of
from gptviz.model.costs.effort import LITTLE, effort
from gptviz.ui.shell.subject import AskedAnalysis, ModelKey, Subject, ask, language_model
from gptviz.ui.widgets import controls, escape_markdown, jobs

from . import held_out

PROMPT = "the prompt"
HELD_OUT = "held-out data"


@dataclass(frozen=True)
class LossText:
    """The text over which a loss is measured: the `prompt`, or data held out, for which that is
    None.
    """

    which: str
    prompt: str | None = None


def unit_of(lm: LanguageModel) -> str:
    """The unit of a loss."""
    if lm.kind.guesses == "label":
        return "nats per text"
    return "nats per token"


def choose(subject: Subject) -> LossText:
    """The control for the text; the prompt where data held out is not here."""
    if subject.lm.card.source is not None:
        options = [PROMPT, HELD_OUT]
    else:
        options = [PROMPT]
    which = PROMPT
    if len(options) > 1:
        which = controls.select(
            "Loss over",
            options,
            key="over",
            # Of a task only the answers count, and a prompt may be without one.
            default=HELD_OUT if subject.kind.continues and subject.on_task else PROMPT,
            segmented=True,
            help="The loss is the mean surprise, −ln of the probability that the model gave to "
            "what really came: over the prompt "
            f"above, or over the first {held_out.MOST_TOKENS:,} tokens or so of "
            f"{held_out.describe_texts(subject.key)}, of which only the "
            "answers count where the data have answers.",
        )
    if which == HELD_OUT:
        try:
            rows(subject.key.unedited, LossText(HELD_OUT))
        except (ValueError, OSError, KeyError, TypeError) as error:
            st.info(
                f"The held-out data cannot be read ({escape_markdown(reason_of(error))}): the loss "
                "is over "
                "the prompt."
            )
            which = PROMPT
    if which == HELD_OUT:
        return LossText(which)
    return LossText(PROMPT, subject.text)


def rows(key: ModelKey, text: LossText) -> Sequence[Rows]:
    """The text as the model of `key` reads it, with what it has to predict; read-only, shared by
    all sessions.

    Raises:
        ValueError: the data held out does not fit the model, or there is nothing to predict.
        OSError: it is not on this machine.
    """
    if text.prompt is None:
        return held_out.scored_rows(key.unedited)
    return ask(key.unedited, data.counted_rows, "Reading the prompt", prompt=text.prompt).value


def ask_guess(key: ModelKey, prompt: str) -> AskedAnalysis[Guess]:
    """The probabilities of tokens or labels after the prompt, and the loss over it, with the edits
    of `key`.
    """
    return ask(key, changing.guess, "Reading the prompt", prompt=prompt)


def loss_of(key: ModelKey, text: LossText) -> float:
    """The loss of the model, with its edits, over the text."""
    if text.prompt is None:
        return _loss_held_out(key)
    return ask_guess(key, text.prompt).value.loss


@st.cache_data(max_entries=256, show_spinner=False)
def _loss_held_out(key: ModelKey) -> float:
    return loss(language_model(key).model, held_out.scored_rows(key.unedited))


@jobs.data("Switching off one head after the other", max_entries=32)
def without_each(key: ModelKey, prompt: str) -> dict[Unit, Float64Array]:
    """The guess after the prompt without each head; empty for a model that needs more than a moment
    for that.
    """
    model, ((read, _),) = language_model(key).model, rows(key, LossText(PROMPT, prompt))
    heads = [unit for unit in heads_and_mlps(model.config) if unit.is_head]
    if effort(model, max(part.shape[1] for part in read if part is not None), len(heads)) > LITTLE:
        return {}
    twins = edited_by_each(model, [edit_unit(head) for head in heads])
    return {edit.unit: guess(twin, read.before_answer) for edit, twin in twins}
