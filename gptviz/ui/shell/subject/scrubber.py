"""The scrubber: a slider over the snapshots of a model's training. Every page that reads a model
has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from gptviz.figures.kit.format import percent, power
from gptviz.model.costs.effort import n_parameters
from gptviz.runs import checkpoints
from gptviz.runs.card import Card
from gptviz.settings.address_values import one_of
from gptviz.ui.widgets import addresses, controls, escape_markdown
from gptviz.ui.widgets.playing import Player

from .models import ModelKey, language_model, model_key

P = ParamSpec("P")
R = TypeVar("R")
# The option for the model as it was saved last. During a run, its step changes from time to time.
LAST = "last"
# Limits of a comparison over all of training: the number of snapshots, and the sum of their
# parameters.
MOST_COMPARED = 128
MOST_PARAMETERS = 64_000_000

ABOUT = """The model as it was after this many steps of its training; “last” is the model as it was saved last. All pages follow.
The arrow keys move the slider too. The loss is the validation loss in nats per token, from the evaluation nearest to this step
(≈ means: not exactly at this step); perplexity is e to the power of the loss."""

PLAYER = Player(
    "scrubber",
    "step",
    "Play the training from this step to the end; at the end, play it from the start.",
)


def steps(name: str) -> tuple[int, ...]:
    """The steps of which the model called `name` has a snapshot; none if there is no such model."""
    try:
        return tuple(checkpoints.snapshots(checkpoints.find(name)))
    except checkpoints.CheckpointError:
        return ()


def has_step(name: str, asked: object) -> bool:
    """Whether the model called `name` has the snapshot that a link or a slider's value names."""
    return str(asked) in map(str, steps(name))


def scrubber(folder: Path, card: Card, about: Any) -> int | None:
    """The slider with its play button. Returns the step, None for the model as saved last.

    Args:
        about: the container for a line about the step.
    """
    options = [*map(str, checkpoints.snapshots(folder)), LAST]
    PLAYER.button(options, LAST)
    chosen = str(
        controls.notch(
            "Training step",
            options,
            key="step",
            default=LAST,
            help="",
            label_visibility="collapsed",
        )
    )
    step, _, how_good = readout(chosen, card).partition(": ")
    about.caption(
        escape_markdown(step), help=f"{how_good}. {ABOUT}" if how_good else ABOUT, width="content"
    )
    PLAYER.go_on(options, chosen)
    if chosen == LAST:
        return None
    return int(chosen)


def without_snapshots() -> None:
    """Used instead of `scrubber` for a model without snapshots: forget a step chosen before, and
    warn if a link asks for one.
    """
    addresses.accept_values("step", one_of([LAST]))
    if (
        st.session_state.pop("step", LAST) == LAST
        and (asked := st.query_params.get("step", LAST)) != LAST
    ):
        why = ", which is not available here; showing the model as it was saved"
        controls.warn_of_link("step =", asked, why)
    PLAYER.stop()


def readout(chosen: str, card: Card) -> str:
    """The step that is shown, and the validation loss measured nearest to it (with ≈ if that was at
    another step).
    """
    if card.revisions:
        # the model as it was saved last is the last of them
        return f"Revision {card.revisions.get(chosen, [*card.revisions.values()][-1])}"
    step = card.steps if chosen == LAST else int(chosen)
    if step is None:
        return "As saved last"
    measurement = nearest_measurement(card, step)
    if measurement is None:
        return f"Step {step:,}"
    at, loss, accuracy = measurement
    about = "" if at == step else "≈ "
    # Perplexity is about choosing a next token: it has no meaning for a classifier.
    if card.labels is None or accuracy is None:
        how_good = f"perplexity {math.exp(min(loss, 50)):.3g}"
    else:
        how_good = f"{percent(accuracy)} right"
    return f"Step {step:,}: loss {about}{power(loss)}, {how_good}"


def nearest_measurement(card: Card, step: int) -> tuple[int, float, float | None] | None:
    """The measurement of the validation loss nearest to `step`: its step, the loss in nats, and the
    accuracy if there is one, or None if nothing was measured.
    """
    measurements = [
        (entry.step, entry.validation, entry.accuracy)
        for entry in card.losses
        if entry.validation is not None
    ]
    return min(measurements, key=lambda entry: (abs(entry[0] - step), entry[0]), default=None)


def compared_keys(key: ModelKey) -> Iterator[ModelKey]:
    """The model at steps from the first snapshot to the last, then as it was saved last: for values
    that all steps share, such as the ranges of axes.

    If there are more than can be read in a moment, evenly spaced ones. A snapshot that cannot be
    read is left out.
    """
    base = as_saved_last(key)
    every = steps(key.name)
    count = min(
        len(every),
        MOST_COMPARED,
        max(2, MOST_PARAMETERS // max(1, n_parameters(language_model(base).model))),
    )
    chosen = [every[round(i * (len(every) - 1) / max(1, count - 1))] for i in range(count)]
    for step in dict.fromkeys(chosen):
        try:
            one = at_step(key, step)
            language_model(one)
        except checkpoints.CheckpointError:
            continue
        yield one
    yield base


def as_saved_last(key: ModelKey) -> ModelKey:
    """The same model as it was saved last."""
    if key.step is None:
        return key
    return at_step(key, None)


def same_at_every_step(
    ask: Callable[Concatenate[ModelKey, P], R],
) -> Callable[Concatenate[ModelKey, P], R]:
    """A function of a model that is asked of the model as it was saved last and without edits: its
    result is about the training as a whole, so it is computed once for all steps.
    """

    @wraps(ask)
    def ask_unstepped(key: ModelKey, /, *args: P.args, **settings: P.kwargs) -> R:
        return ask(as_saved_last(key.unedited), *args, **settings)

    return ask_unstepped


def at_step(key: ModelKey, step: int | None) -> ModelKey:
    """The same model after `step` steps, with the same edits."""
    return replace(
        model_key(key.name, key.device, step, key.precision),
        edits=key.edits,
        edit_text=key.edit_text,
    )
