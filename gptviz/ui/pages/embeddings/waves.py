"""The view Waves of the page Embeddings, for models of sums on a clock: the few frequencies on which they place their numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import streamlit as st

from gptviz.figures.kit import lines, scatter
from gptviz.figures.kit.format import percent
from gptviz.figures.reading.waves import powers as powers_figure
from gptviz.interp.reading import waves
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import LanguageModel
from gptviz.text.datasets.tasks import Modular
from gptviz.ui.records.embeddings import MAP, WAVES
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, opening
from gptviz.ui.widgets import controls, jobs, show_figure, theme

ABOUT = (
    "Map: a projection of all tokens. Waves: the numbers of the task lie on a clock, so their vectors may follow waves along "
    "the numbers; how much follows each frequency?"
)


class Found(NamedTuple):
    """What is computed of one model.

    Attributes:
        powers: the share of each frequency [part, frequency].
        used: the frequencies that it uses.
        right: the share of all sums that are right: as it is, with the used frequencies alone, and without them.
    """

    powers: LabelledArray
    used: tuple[int, ...]
    right: tuple[float, float, float]


def task_of(key: ModelKey) -> Modular | None:
    """The task of the model, if it is sums on a clock."""
    task = language_model(key).task
    return task if isinstance(task, Modular) else None


@jobs.data("Reading all sums", max_entries=64)
def found(key: ModelKey) -> Found:
    """All that the view says of a model of such a task."""
    model, task = language_model(key).model, task_of(key)
    assert task is not None
    shares = waves.powers(model, task)
    few = waves.used(shares)
    others = set(range(1, task.modulus // 2 + 1)) - set(few)
    right = (waves.accuracy(model, task), waves.accuracy(model, task, few), waves.accuracy(model, task, others))
    return Found(shares, few, right)


def view(subject: Subject) -> str:
    """The view that is chosen: of models of other tasks there is the map alone."""
    if task_of(subject.key) is None:
        return MAP
    return controls.select("View", (MAP, WAVES), key="view", help=ABOUT, segmented=True)


def show(subject: Subject) -> LabelledArray:
    """The view; returns the shares that its first figure shows."""
    task = task_of(subject.key)
    assert task is not None
    computed = found(subject.key)
    strongest = int(computed.powers.values[-1].argmax()) + 1
    left, right = st.columns([5, 3])
    with left:
        show_figure(
            powers_figure(computed.powers, theme(), height=330),
            key="powers",
            alt=f"The share of each frequency in embedding, neurons and logits. The strongest of the logits: {strongest}.",
        )
        st.caption(_says(computed))
    with right:
        chosen = controls.select(
            "Frequency",
            computed.powers.axes[1].labels,
            key="frequency",
            default=str(strongest),
            help=f"How often the wave goes up and down from 0 to {task.modulus}. First: the strongest of the logits.",
        )
        frequency = int(chosen)
        points = waves.circle(subject.lm.model, task, frequency)
        numbers = [f"{points.axes[1].labels[i]} of frequency {frequency}" for i in range(2)]
        circle = scatter.cloud(points, ["digit"] * task.modulus, theme(), height=300, axes=numbers)
        show_figure(circle, key="circle", alt=f"The numbers by the cosine and the sine of frequency {frequency}.")
    limit = float(np.abs(points.values).max()) or 1.0
    for side, column in zip(st.columns(2), (0, 1), strict=True):
        with side:
            name = points.axes[1].labels[column]
            wave = LabelledArray(points.values[:, column], points.axes[:1], f"along the {name}")
            show_figure(lines.wave(wave, theme(), height=170, limit=limit), key=f"wave {name}", alt=f"The {name} wave.")
    st.caption(
        "The circle: each number where its vector lies in the two directions that follow the cosine and the sine of frequency "
        f"{frequency}. Below: the same two values along the numbers. If the model uses the frequency, there is a circle and two "
        "clean waves; else a knot around the middle."
    )
    return computed.powers


def _says(computed: Found) -> str:
    """What the bars say of this model, and what is left of its answers without some of the waves."""
    whole, alone, without = map(percent, computed.right)
    few, many = computed.used, computed.powers.values.shape[1]
    if len(few) > many // 3:
        return (
            f"No few frequencies stand out: {percent(waves.USED)} of the logits take {len(few)} of {many}. This model has found "
            f"no rule of waves: of all sums, those that it was not trained on too, it gets {whole} right."
        )
    return (
        f"{percent(waves.USED)} of the logits are made of {len(few)} of {many} frequencies: {', '.join(map(str, few))}. "
        f"Of all sums it gets {whole} right; with these frequencies alone left in its embedding {alone}, without them {without}."
    )


def code(lm: LanguageModel) -> str:
    """The lines of `gptviz` that compute the bars, and what is left without the waves."""
    return f"""{opening(lm, "from gptviz.interp.reading import waves")}
powers = waves.powers(lm.model, lm.task)
powers.values  # [part, frequency]
waves.accuracy(lm.model, lm.task, keep=waves.used(powers))"""
