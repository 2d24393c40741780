"""The charts of the Train page: the loss of a run, or another quantity over its steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures.kit.format import counted, percent
from gptviz.figures.training import curves, places
from gptviz.runs import checkpoints
from gptviz.runs.experiments import PLANS
from gptviz.runs.log import curve_points
from gptviz.settings.address_values import ANY
from gptviz.ui.shell.subject import hidden
from gptviz.ui.views.learning_curves import accuracy_of, curve_of, loss_unit, with_unit
from gptviz.ui.widgets import addresses, controls, show_figure, theme

from .watched import WatchedRun

HEIGHT = 310
MOST_BESIDE = 8
LARGEST_LOSS = 50  # whose perplexity is still drawn
_BESIDE_OF = "beside of"  # the run that the control `beside` is about


@dataclass(frozen=True)
class Drawn:
    """A figure, and what it shows for somebody who cannot see it."""

    figure: go.Figure
    description: str


@dataclass(frozen=True)
class Chart:
    """One choice of the control `chart`.

    Attributes:
        label: what the control and the link call it.
        draw: the figure, or None if the run has nothing to draw yet, which shows the loss instead.
        on_card: the field of the card that says whether a run has this quantity at all, or None if every run has it.
    """

    label: str
    draw: Callable[[WatchedRun], Drawn | None]
    on_card: str | None = None


def draw_loss(run: WatchedRun) -> Drawn:
    """The training and validation loss, with those of the runs compared with it."""
    drawn = [curve_of(run.folder)]
    for name in _beside(run):
        with suppress(checkpoints.CheckpointError):
            drawn.append(curve_of(checkpoints.find(name)))
    log_steps, log_loss = bool(st.session_state.get("log_steps")), bool(st.session_state.get("log_loss"))
    figure = curves.losses(drawn, theme(), height=HEIGHT, log_steps=log_steps, log_loss=log_loss, until=_until(run))
    figure = with_unit(figure, loss_unit([run.folder]))
    return Drawn(figure, f"The loss of {run.name} over its steps, training and validation.")


def draw_perplexity(run: WatchedRun) -> Drawn:
    """The perplexity on held-out data."""
    curve = curve_of(run.folder)
    figure = curves.values(
        "perplexity",
        "a choice among this many equally likely tokens would be as hard",
        curve.validation_steps,
        np.array([math.exp(min(loss, LARGEST_LOSS)) for loss in curve.validation]),
        theme(),
        height=HEIGHT,
        log=True,
        until=_until(run),
    )
    return Drawn(figure, "The perplexity on held-out data over the steps.")


def draw_accuracy(run: WatchedRun) -> Drawn | None:
    """How much is right, on data held out and on data trained on, with the compared runs that count the same."""
    own = accuracy_of(run.folder)
    if own is None:
        return None
    shown = [own]
    for name in _beside(run):
        with suppress(checkpoints.CheckpointError):
            other = accuracy_of(checkpoints.find(name))
            shown += [other] if other is not None and other.what == own.what else []
    log_steps = bool(st.session_state.get("log_steps"))
    figure = curves.accuracies(shown, theme(), height=HEIGHT, log_steps=log_steps, until=_until(run))
    return Drawn(figure, f"{own.what.capitalize()} over the steps; at the end {percent(own.validation[-1])} on held-out data.")


def draw_places(run: WatchedRun) -> Drawn | None:
    """How often each token of the held-out sequences is right, at the last evaluation."""
    last = run.evaluation
    if last is None or last.by_place is None:
        return None
    name = f"after {counted(last.step, 'step')}"
    figure = places.right_by_place(last.by_place, theme(), height=HEIGHT, name=name)
    return Drawn(figure, "How often each token of the held-out sequences is predicted right.")


def _draw_steps(label: str, field: str, unit: str) -> Chart:
    """The chart of a number that every step logs."""

    def draw(run: WatchedRun) -> Drawn | None:
        if not run.log:
            return None
        known = curve_points(run.log, "step", field)
        steps, values = [step for step, _ in known], [value for _, value in known]
        figure = curves.values(label.lower(), unit, steps, values, theme(), height=HEIGHT, until=_until(run))
        return Drawn(figure, f"{label} over the steps.")

    return Chart(label, draw)


LOSS = Chart("Loss", draw_loss)
CHARTS = (
    LOSS,
    Chart("Accuracy", draw_accuracy, on_card="accuracy"),
    Chart("Right by place", draw_places, on_card="accuracy_by_place"),
    Chart("Perplexity", draw_perplexity),
    _draw_steps("Tokens/s", "tokens_per_second", "tokens/s"),
    _draw_steps("Learning rate", "learning_rate", ""),
    _draw_steps("Gradient norm", "gradient_norm", ""),
)


def chart_control(run: WatchedRun) -> None:
    """The control `chart`: which of the charts that the run has is shown."""
    controls.select(
        "Chart",
        [chart.label for chart in CHARTS if chart.on_card is None or getattr(run.card, chart.on_card) is not None],
        key="chart",
        default=LOSS.label,
        help=(
            "Loss: the mean surprise at the token that came, in nats. Perplexity: e to the power of the loss; a choice among "
            "this many equally likely tokens would be as hard. Learning rate: how far a step goes. Gradient norm: how steep the "
            "loss is."
        ),
    )


def show_chart(run: WatchedRun) -> None:
    """The chosen chart, or the loss if that chart has nothing to draw yet; next to the loss, the accuracy if there is one."""
    label = st.session_state.get("chart")
    chart = next((chart for chart in CHARTS if chart.label == label), LOSS)
    drawn = chart.draw(run) or draw_loss(run)
    beside = draw_accuracy(run) if chart is LOSS else None
    if beside is None:
        show_figure(drawn.figure, key="live", alt=drawn.description)
    else:
        left, right = st.columns([3, 2], gap="small")
        with left:
            show_figure(drawn.figure, key="live", alt=drawn.description)
        with right:
            show_figure(beside.figure, key="live accuracy", alt=beside.description)
    if chart.label == "Accuracy" or beside is not None:
        st.caption(curves.ACCURACY_LEGEND if run.card.training_accuracy is not None else "Accuracy: on held-out data.")


def compare_controls(run: WatchedRun) -> None:
    """The controls `beside`, `log_steps` and `log_loss`: what the chart of the loss shows."""
    names = [other for other in checkpoints.folders() if other != run.name]
    # A choice made for another run, such as its own earlier versions, does not belong next to this one.
    is_another = st.session_state.get(_BESIDE_OF, run.name) != run.name
    st.session_state[_BESIDE_OF] = run.name
    if is_another or any(name not in names for name in st.session_state.get("beside") or ()):
        st.session_state["beside"] = companions(run, names)
    addresses.takes("beside", ANY)
    beside = st.multiselect(
        "Beside it",
        names,
        companions(run, names),
        key="beside",
        max_selections=MOST_BESIDE,
        help="Other models to draw into the same charts: their losses and accuracies.",
        bind="query-params",
    )
    hidden.say_what_hides(beside)
    controls.switch("Log steps", key="log_steps", help="Each doubling of the steps takes the same room.")
    controls.switch("Log loss", key="log_loss", help="Each halving of the loss takes the same room.")


def companions(run: WatchedRun, names: Sequence[str]) -> list[str]:
    """The models among `names` to compare with this run: its twin alone, or those of its experiment and of experiments related to
    that.
    """
    if (twin := run.card.twin) is not None and twin in names:
        return [twin]
    plan = PLANS.get(run.plan)
    related = [*plan.related, run.plan] if plan else []
    return [name for name in names if name in related and name != run.name][:MOST_BESIDE]


def _beside(run: WatchedRun) -> list[str]:
    known = checkpoints.folders()
    chosen = st.session_state.get("beside")
    names = companions(run, list(known)) if chosen is None else chosen
    return [name for name in names if name in known and name != run.name][:MOST_BESIDE]


def _until(run: WatchedRun) -> int | None:
    """The step at which the run will end, or None if that is not known."""
    return run.recipe.steps if run.recipe else None
