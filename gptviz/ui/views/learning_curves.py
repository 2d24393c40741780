"""The curves of runs, read from their logs and cached until these grow."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

from gptviz.figures.training.curves import Accuracy, Curve
from gptviz.takehome.learning_curves import read_accuracy, read_curve
from gptviz.ui.shell.subject import kinds


def curve_of(folder: Path) -> Curve:
    """The losses of the model in `folder`: from its log, or from its card if there is no log.

    Raises:
        CheckpointError: its config or its card cannot be read.
    """
    return _curve_of(folder, _written(folder / "log.jsonl"), _written(folder / "card.json"))


def loss_unit(folders: Iterable[Path]) -> str:
    """The unit of the losses of the models in `folders`: nats per text for classifiers, nats per token for all others."""
    are_classifiers = [kinds.kind_of(folder) == "classifier" for folder in folders]
    return "nats per text" if are_classifiers and all(are_classifiers) else "nats per token"


def with_unit(figure: go.Figure, counted_in: str) -> go.Figure:
    """The losses, with their unit at the axis."""
    return figure.update_yaxes(title_text=f"loss ({counted_in})")


def _written(path: Path) -> tuple[int, int]:
    """When a file was written and its size: while both stay the same, so does its content."""
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size


@st.cache_data(max_entries=64, show_spinner=False)
def _curve_of(folder: Path, written: tuple[int, int], card_written: tuple[int, int]) -> Curve:
    return read_curve(folder)


def accuracy_of(folder: Path) -> Accuracy | None:
    """The accuracy of the model in `folder` over its training: of whole answers if it has answers.

    None if a prediction is neither right nor wrong, as in a text that can go on in many ways, or if nothing was measured.

    Raises:
        CheckpointError: its card cannot be read.
    """
    return _accuracy_of(folder, _written(folder / "log.jsonl"), _written(folder / "card.json"))


@st.cache_data(max_entries=64, show_spinner=False)
def _accuracy_of(folder: Path, written: tuple[int, int], card_written: tuple[int, int]) -> Accuracy | None:
    return read_accuracy(folder)
