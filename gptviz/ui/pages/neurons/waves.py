"""The view Waves of the page Neurons, for models of sums on a clock: which frequency each neuron follows, and where it acts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.figures.kit.format import counted, percent
from gptviz.figures.reading.waves import over_sums
from gptviz.interp.reading import waves
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import LanguageModel
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, opening
from gptviz.ui.views import sums
from gptviz.ui.widgets import controls, jobs, show_figure, theme
from gptviz.ui.widgets.figure import pixels

# A neuron follows a frequency that has more than this share of its variance.
FOLLOWS = 0.5
# A neuron that varies less than this share of what all do together is not counted: what it follows is chance.
STILL = 0.01
HIGH = 420


@dataclass(frozen=True)
class Followed:
    """What the neurons of a model follow.

    Attributes:
        values: the activations [neuron, first number, second number].
        frequency: of each neuron the frequency that has the largest share.
        share: that share.
        moves: whether its activation varies at all.
    """

    values: LabelledArray
    frequency: np.ndarray[tuple[int], np.dtype[np.int64]]
    share: np.ndarray[tuple[int], np.dtype[np.float64]]
    moves: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @property
    def order(self) -> list[int]:
        """The neurons, those that follow one frequency most clearly first."""
        clear = np.where(self.moves, self.share, -1.0)
        return [int(one) for one in (-clear).argsort(kind="stable")]


def show(subject: Subject) -> pd.DataFrame:
    """The view; returns the table of what each neuron follows."""
    found, used = followed(subject.key), sums.found(subject.key).used
    table = pd.DataFrame({"neuron": found.order, "frequency": found.frequency[found.order], "share": found.share[found.order]})
    left, right = st.columns([3, 4], gap="medium")
    with right:
        neuron = int(
            controls.select(
                "Neuron",
                [str(one) for one in found.order],
                key="clock",
                default=str(found.order[0]),
                format_func=lambda one: f"neuron {one}: frequency {found.frequency[int(one)]}, {percent(found.share[int(one)])}",
                help="The neuron that is drawn; first the one that follows one frequency most clearly.",
            )
        )
        activations = LabelledArray(found.values.values[neuron], found.values.axes[1:], found.values.unit)
        figure = over_sums(activations, theme(), height=HIGH)
        show_figure(figure, key="over sums", alt=f"The activation of neuron {neuron} by the first and the second number.")
    with left:
        st.markdown(says(found, used))
        st.dataframe(
            table,
            hide_index=True,
            height=pixels(HIGH - 120),
            column_config={"share": st.column_config.NumberColumn("share of its variance", format="percent")},
        )
    frequency = found.frequency[neuron]
    st.caption(
        f"The activation of neuron {neuron} at the equals sign of every sum. {percent(found.share[neuron])} of its variance "
        f"along the first number is in frequency {frequency}: it comes back {frequency} times on the way round the clock. "
        "Choose a step of training above, and see when the pattern comes."
    )
    return table


@jobs.data("Reading all sums", max_entries=16)
def followed(key: ModelKey) -> Followed:
    """What the neurons of a model of such a task follow."""
    task = sums.task_of(key)
    assert task is not None
    values = waves.neuron_values(language_model(key).model, task)
    shares = waves.neuron_powers(values).values
    moves = values.values.std((1, 2)) > STILL * values.values.std()
    return Followed(values, shares.argmax(1) + 1, shares.max(1), moves)


def says(found: Followed, used: tuple[int, ...]) -> str:
    """How many neurons follow one frequency, and whether it is one that the answers are made of, as Markdown."""
    clear = found.moves & (found.share > FOLLOWS)
    few = sorted({int(one) for one in found.frequency[clear]})
    shown = ", ".join(map(str, few)) or "none"
    of_used = int(np.isin(found.frequency[clear], used).sum())
    return (
        f"**{int(clear.sum())} of {counted(int(found.moves.sum()), 'neuron')}** that vary follow one frequency (more than half "
        f"of their variance): {shown}. **{of_used}** of them follow one that the logits are made of."
    )


def code(lm: LanguageModel) -> str:
    """The lines of `gptviz` that compute the view."""
    return f"""{opening(lm, "from gptviz.interp.reading import waves")}
values = waves.neuron_values(lm.model, lm.task)
values.values  # [neuron, first number, second number]
waves.neuron_powers(values).values  # [neuron, frequency]"""
