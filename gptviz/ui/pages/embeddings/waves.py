"""The view Waves of the page Embeddings, for models of sums on a clock: the few frequencies on
which they place their numbers.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from gptviz.figures.kit import lines, scatter
from gptviz.figures.kit.format import percent
from gptviz.figures.reading.waves import powers as powers_figure
from gptviz.interp.reading import waves
from gptviz.interp.reading.waves import ClockWaves
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import reading
from gptviz.text.datasets.tasks import Modular
from gptviz.ui.records.embeddings import MAP, WAVES
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask
from gptviz.ui.widgets import controls, show_figure, theme

ABOUT = (
    "Map: a projection of all tokens. Waves: the numbers of the task lie on a clock, so their "
    "vectors may follow waves along "
    "the numbers; how much follows each frequency?"
)


def view(subject: Subject) -> str:
    """The view that is chosen: models of other tasks have only the map."""
    if not isinstance(subject.lm.task, Modular):
        return MAP
    return controls.select("View", (MAP, WAVES), key="view", help=ABOUT, segmented=True)


def show(subject: Subject) -> AskedAnalysis[ClockWaves]:
    """The view."""
    task = subject.lm.task
    asked = ask(subject, reading.waves, "Reading all sums")
    assert isinstance(task, Modular)
    computed = asked.value
    strongest = int(computed.powers.values[-1].argmax()) + 1
    left, right = st.columns([5, 3])
    with left:
        show_figure(
            powers_figure(computed.powers, theme(), height=330),
            key="powers",
            alt="The share of each frequency in embedding, neurons and logits. The strongest of "
            f"the logits: {strongest}.",
        )
        st.caption(_describe_waves(computed))
    with right:
        chosen = controls.select(
            "Frequency",
            computed.powers.axes[1].labels,
            key="frequency",
            default=str(strongest),
            help=f"How often the wave goes up and down from 0 to {task.modulus}. First: the "
            "strongest of the logits.",
        )
        frequency = int(chosen)
        points = waves.circle(subject.lm.model, task, frequency)
        numbers = [f"{points.axes[1].labels[i]} of frequency {frequency}" for i in range(2)]
        circle = scatter.cloud(points, ["digit"] * task.modulus, theme(), height=300, axes=numbers)
        show_figure(
            circle,
            key="circle",
            alt=f"The numbers by the cosine and the sine of frequency {frequency}.",
        )
    limit = float(np.abs(points.values).max()) or 1.0
    for side, column in zip(st.columns(2), (0, 1), strict=True):
        with side:
            name = points.axes[1].labels[column]
            wave = LabelledArray(points.values[:, column], points.axes[:1], f"along the {name}")
            show_figure(
                lines.wave(wave, theme(), height=170, limit=limit),
                key=f"wave {name}",
                alt=f"The {name} wave.",
            )
    st.caption(
        "The circle: each number where its vector lies in the two directions that follow the "
        "cosine and the sine of frequency "
        f"{frequency}. Below: the same two values along the numbers. If the model uses the "
        "frequency, there is a circle and two "
        "clean waves; else a knot around the middle."
    )
    return asked


def _describe_waves(computed: ClockWaves) -> str:
    """What the bars say of this model, and what is left of its answers without some of the
    waves.
    """
    whole, only_these, without = map(percent, computed.right)
    few = computed.used
    many = computed.powers.values.shape[1]
    if len(few) > many // 3:
        return (
            f"No few frequencies stand out: {percent(waves.USED)} of the logits take {len(few)} "
            f"of {many}. This model has found "
            "no rule of waves: of all sums, those that it was not trained on too, it gets "
            f"{whole} right."
        )
    return (
        f"{percent(waves.USED)} of the logits are made of {len(few)} of {many} frequencies: "
        f"{', '.join(map(str, few))}. "
        f"Of all sums it gets {whole} right; with only these frequencies in its embedding "
        f"{only_these}, without them {without}."
    )
