"""The curves of the models that the Runs page compares, laid over each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

from gptviz.figures.kit.format import percent, small
from gptviz.figures.training import curves
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.ui.views.entries import Entry
from gptviz.ui.views.learning_curves import accuracy_of, loss_unit, with_unit
from gptviz.ui.widgets import controls, in_quotes, show_figure, theme

LEAST = 220  # pixels of a chart


def switches() -> tuple[bool, bool, bool]:
    """The controls `log_steps`, `log_loss` and `training`: what the chart shows."""
    about = "Each doubling of the steps takes the same room; step 0 has none."
    log_steps = controls.switch("Log steps", key="log_steps", help=about)
    log_loss = controls.switch("Log loss", key="log_loss", help="Each halving of the loss takes the same room.")
    about = "The loss of every batch that was trained on, pale, beside the loss on held-out data."
    return log_steps, log_loss, controls.switch("Training loss", key="training", help=about)


def chart(entries: Sequence[Entry], *, log_steps: bool, log_loss: bool, training: bool, height: int) -> None:
    """The curves of some models in one chart, how much they get right in another, and a line on how to read them."""
    known = [entry.curve for entry in entries if entry.curve is not None]
    right = [accuracy for entry in entries if not entry.problem and (accuracy := accuracy_of(entry.folder)) is not None]
    below = max(LEAST, int(0.4 * height)) if right else 0
    height = max(LEAST, height - below)
    figure = curves.losses(known, theme(), log_steps=log_steps, log_loss=log_loss, training=training, height=height)
    counted_in = loss_unit(entry.folder for entry in entries)
    figure = with_unit(figure, counted_in)
    ends = "; ".join(f"{entry.name} ends at {entry.last:.4f}" for entry in entries)
    show_figure(figure, key="curves", alt=f"Validation loss over the steps of training: {ends} {counted_in}.")
    if right:
        ends = "; ".join(f"{accuracy.name}: {percent(accuracy.validation[-1])} {accuracy.what}" for accuracy in right)
        figure = curves.accuracies(right, theme(), log_steps=log_steps, height=below)
        show_figure(figure, key="accuracies", alt=f"How much is right over the steps of training; at the end {ends}.")
        st.caption(
            curves.ACCURACY_LEGEND if any(len(one.training) for one in right) else "The second chart shows how much is right."
        )
    st.caption(
        f"{curves.LEGEND if training else 'The loss on held-out data, with a marker for each evaluation.'} "
        f"{_lowest_and_highest(entries, counted_in)}"
    )


def _lowest_and_highest(entries: Sequence[Entry], unit: str) -> str:
    """Which of several models end with the lowest and the highest loss, as a sentence of Markdown; empty for one alone."""
    ended = [entry for entry in entries if math.isfinite(entry.last)]
    if len(ended) < 2:
        return ""
    low, high = (best(ended, key=lambda entry: entry.last) for best in (min, max))
    return (
        f"{in_quotes(low.name)} ends lowest, at {small(low.last, 3)} {unit}, and {in_quotes(high.name)} highest, at "
        f"{small(high.last, 3)}."
    )


def validation_losses(entries: Sequence[Entry]) -> LabelledArray:
    """The validation losses [model, step]; NaN where a model was not evaluated."""
    known = [entry.curve for entry in entries if entry.curve is not None]
    steps = sorted({step for curve in known for step in curve.validation_steps.tolist()})
    values = np.full((len(known), len(steps)), np.nan)
    for row, curve in enumerate(known):
        values[row, np.searchsorted(steps, curve.validation_steps)] = curve.validation
    axes = Axis("model", tuple(curve.name for curve in known)), Axis("step", tuple(f"{step:.0f}" for step in steps))
    return LabelledArray(values, axes, f"validation loss in {loss_unit(entry.folder for entry in entries)}")
