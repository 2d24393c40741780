"""The curves of runs, read from their logs and cached until these grow."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import plotly.graph_objects as go

from gptviz.figures.kit.format import format_small
from gptviz.figures.training.curves import Curve
from gptviz.machine.files import kept_until_written
from gptviz.takehome.learning_curves import read_accuracy, read_curve, read_losses
from gptviz.ui.shell.subject import kinds

FEW = 4
NINE_TENTHS = 0.9
# Read-only: all who ask share them.
curve_of = kept_until_written("log.jsonl", "card.json", most=64)(read_curve)
losses_of = kept_until_written("log.jsonl", "card.json", most=64)(read_losses)
accuracy_of = kept_until_written("log.jsonl", "card.json", most=64)(read_accuracy)


def loss_unit(folders: Iterable[Path]) -> str:
    """The unit of the losses of the models in `folders`: nats per text for classifiers, nats per
    token for all others.
    """
    are_classifiers = [kinds.kind_of(folder) == "classifier" for folder in folders]
    if are_classifiers and all(are_classifiers):
        return "nats per text"
    return "nats per token"


def most_of_its_fall(curve: Curve) -> str:
    """How far a loss on held-out data fell, and by which step most of it had fallen, as a sentence;
    empty if it did not fall, or was measured too rarely to name a step.
    """
    losses = curve.validation
    steps = curve.validation_steps
    if len(losses) < FEW or not losses[-1] < losses[0]:
        return ""
    reached = losses <= losses[0] - NINE_TENTHS * (losses[0] - losses[-1])
    step = int(steps[int(reached.argmax())])
    return (
        f"On held-out data the loss fell from {format_small(float(losses[0]), 3)} to "
        f"{format_small(float(losses[-1]), 3)}, and "
        f"nine tenths of that by step {step:,}."
    )


def with_unit(figure: go.Figure, counted_in: str) -> go.Figure:
    """The losses, with their unit at the axis."""
    return figure.update_yaxes(title_text=f"loss ({counted_in})")
