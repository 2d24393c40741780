"""The computations of the page Neurons: a block's activity in a thread of the server, all else at once and cached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import streamlit as st
import torch

from gptviz.interp.reading.next_token import probabilities
from gptviz.interp.units import neurons
from gptviz.interp.units.neurons import Activity
from gptviz.labelled_array import Axis, Float64Array, LabelledArray
from gptviz.machine import job, progress
from gptviz.machine.job import Results
from gptviz.model.costs.effort import SOME, effort
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.widgets import escaped, jobs

from .choices import HELD_OUT, MOST_WRITTEN, WRITING, WRITTEN, NeuronSetting, forgotten

# Seconds that the page waits for what takes longer.
SOON = 1.0
# How many tokens are listed that a neuron speaks for, and as many against.
LISTED = 8
# How many of the likeliest guesses before and after are shown.
GUESSES = 5
# How many tokens of a context are shown before the one at which the neuron is active, and behind it.
BEFORE, BEHIND = 24, 8


class Seen(NamedTuple):
    """The activity of the block's neurons so far, and the texts that were read or are still to be read."""

    activity: Activity
    rows: list[torch.Tensor]


def seen(setting: NeuronSetting) -> Seen | None:
    """The observations of the block over the text: at once if that takes a moment; else in a thread of the server, with a line
    on how far it is. Returns None as long as nothing is ready.
    """
    if is_quick(setting):
        try:
            return at_once(setting)
        except (ValueError, OSError) as error:
            st.error(f"{escaped(str(error))}. Choose another text above.")
            return None
    key = ("neurons", setting)
    found = job.found(key)
    if found is None:  # one that was stopped stays so
        found = job.begin(key, "Observing the neurons", lambda results: _observe(setting, results))
        found.wait(SOON)
    jobs.follow(found, "neurons")
    ready: Seen | None = found.results.get("seen")
    return ready


def is_quick(setting: NeuronSetting) -> bool:
    """Whether the text is read in about a second."""
    tokens = WRITING * MOST_WRITTEN if setting.kind == WRITTEN else setting.most
    return effort(language_model(setting.key).model, tokens) <= SOME


# An entry is as large as the activity of one block: some megabytes.
@jobs.resource("Observing the neurons", max_entries=8)
def at_once(setting: NeuronSetting) -> Seen:
    """The observations of the block over the text, if that takes a moment only.

    Raises:
        ValueError: the text cannot be read.
        OSError: it is not on this machine.
    """
    rows = _rows(setting)
    *_, last = neurons.observe(language_model(setting.key).model, setting.block, rows)
    return Seen(last.activity(), rows)


def _observe(setting: NeuronSetting, results: Results) -> None:
    progress.report(0, 0, doing="getting the text")
    rows = _rows(setting)
    for so_far in neurons.observe(language_model(setting.key).model, setting.block, rows):
        results["seen"] = Seen(so_far.activity(), rows)


def _rows(setting: NeuronSetting) -> list[torch.Tensor]:
    lm = language_model(setting.key)
    if setting.kind == HELD_OUT:
        return lm.rows(most=setting.most)
    if setting.kind != WRITTEN:
        return lm.rows(setting.text, setting.most)
    written = lm.generate(setting.text, MOST_WRITTEN, go_on=True, seed=0, slide=forgotten(lm))
    return lm.rows(written or setting.text, MOST_WRITTEN)


@st.cache_data(max_entries=128, show_spinner=False)
def promoted(key: ModelKey, block: int, neuron: int) -> Float64Array:
    """See `gptviz.interp.units.neurons.promoted`."""
    return neurons.promoted(language_model(key).model, block, neuron)


def most_and_least(key: ModelKey, values: Float64Array) -> LabelledArray:
    """The tokens with the largest `values` [vocab_size], then those with the smallest, the smallest last."""
    order = np.argsort(-values, kind="stable")
    count = min(LISTED, len(order) // 2)
    some = [*order[:count].tolist(), *order[len(order) - count :].tolist()]
    label = language_model(key).tokenizer.label
    return LabelledArray(values[some], (Axis("token", tuple(map(label, some))),), "added to the logit")


@st.cache_data(max_entries=128, show_spinner=False)
def steered_guesses(key: ModelKey, ids: tuple[int, ...], block: int, neuron: int, value: float) -> LabelledArray:
    """The likeliest guesses after `ids` as the model is, and with a neuron set to `value` at every token: [side, guess]."""
    lm = language_model(key)
    before, after = (
        probabilities(neurons.steered(lm.model, torch.tensor(ids, device=lm.device), block, neuron, put)) for put in (None, value)
    )
    some = dict.fromkeys(i for side in (before, after) for i in np.argsort(-side, kind="stable")[:GUESSES].tolist())
    label = lm.labels.__getitem__ if lm.model.config.kind == "classifier" else lm.tokenizer.label
    axes = Axis("side", ("before", "after")), Axis("guess", tuple(label(i) for i in some))
    unit = "probability of the label" if lm.model.config.kind == "classifier" else "probability of the next token"
    return LabelledArray(np.stack((before, after))[:, list(some)], axes, unit)


class Context(NamedTuple):
    """The tokens around one at which a neuron is very active, its activation at each, and the place of that one."""

    labels: tuple[str, ...]
    activations: tuple[float, ...]
    at: int


@st.cache_data(max_entries=128, show_spinner=False)
def contexts(key: ModelKey, block: int, neuron: int, pieces: tuple[tuple[tuple[int, ...], int], ...]) -> list[Context]:
    """The `pieces` (a row of tokens and a place in it) as contexts; the activations are computed again, over the whole row."""
    lm = language_model(key)
    found = []
    for row, at in pieces:
        values = neurons.activations(lm.model, torch.tensor([row]), block)[0, :, neuron]
        some = slice(max(0, at - BEFORE), at + 1 + BEHIND)
        labels = tuple(map(lm.tokenizer.label, row[some]))
        found.append(Context(labels, tuple(values[some].tolist()), at - some.start))
    return found


def largest_activation(activity: Activity, neuron: int) -> float:
    """The largest size that the activation of a neuron had; 1 for a neuron that never was active."""
    return max(abs(float(activity.largest[neuron])), abs(float(activity.smallest[neuron]))) or 1.0
