"""The curves of runs, read from their logs and cached until these grow."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import plotly.graph_objects as go

from gptviz.machine.files import kept_until_written
from gptviz.takehome.learning_curves import read_accuracy, read_curve
from gptviz.ui.shell.subject import kinds

# Read-only: all who ask share them.
curve_of = kept_until_written("log.jsonl", "card.json", most=64)(read_curve)
accuracy_of = kept_until_written("log.jsonl", "card.json", most=64)(read_accuracy)


def loss_unit(folders: Iterable[Path]) -> str:
    """The unit of the losses of the models in `folders`: nats per text for classifiers, nats per token for all others."""
    are_classifiers = [kinds.kind_of(folder) == "classifier" for folder in folders]
    return "nats per text" if are_classifiers and all(are_classifiers) else "nats per token"


def with_unit(figure: go.Figure, counted_in: str) -> go.Figure:
    """The losses, with their unit at the axis."""
    return figure.update_yaxes(title_text=f"loss ({counted_in})")
