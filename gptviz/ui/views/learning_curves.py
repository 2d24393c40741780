"""The curves of runs, read from their logs and cached until these grow."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures.curves import Accuracy, Curve
from gptviz.runs import checkpoints
from gptviz.runs.log import curve_points, read_log


def curve_of(folder: Path) -> Curve:
    """The losses of the model in `folder`: from its log, or from its card where there is no log.

    Raises:
        CheckpointError: its config or its card cannot be read.
    """
    return _curve_of(folder, _written(folder / "log.jsonl"), _written(folder / "card.json"))


def per_text(figure: go.Figure) -> go.Figure:
    """The losses of classifiers, which are counted by text and not by token."""
    return figure.update_yaxes(title_text="loss (nats per text)")


def _written(path: Path) -> tuple[int, int]:
    """When a file was written and how long it is: as long as both stay, so does its content."""
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size


@st.cache_data(max_entries=64, show_spinner=False)
def _curve_of(folder: Path, written: tuple[int, int], card_written: tuple[int, int]) -> Curve:
    card, log = checkpoints.read_card(folder), read_log(folder / "log.jsonl")
    training = curve_points(log, "step", "loss") or [
        (entry.step, entry.training) for entry in card.losses if entry.training is not None
    ]
    validation = curve_points(log, "evaluation", "loss") or [
        (entry.step, entry.validation) for entry in card.losses if entry.validation is not None
    ]
    partial = dict(curve_points(log, "evaluation", "share")) or {
        entry.step: entry.others["share"] for entry in card.losses if "share" in entry.others
    }
    config = checkpoints.read_config(folder)
    return Curve(
        checkpoints.name_of(folder),
        np.array([step for step, _ in training], float),
        np.array([loss for _, loss in training]) if training else None,
        np.array([step for step, _ in validation], float),
        np.array([loss for _, loss in validation]),
        floor=card.floor,
        uniform=math.log(config.n_label or config.vocab_size),
        shares=np.array([partial.get(step, 1.0) for step, _ in validation]) if partial else None,
    )


def accuracy_of(folder: Path) -> Accuracy | None:
    """How much the model in `folder` got right over its training: whole answers where it has answers.

    None where a prediction is neither right nor wrong, as in a text that can go on in many ways, or where nothing was measured.

    Raises:
        CheckpointError: its card cannot be read.
    """
    return _accuracy_of(folder, _written(folder / "log.jsonl"), _written(folder / "card.json"))


@st.cache_data(max_entries=64, show_spinner=False)
def _accuracy_of(folder: Path, written: tuple[int, int], card_written: tuple[int, int]) -> Accuracy | None:
    card, log = checkpoints.read_card(folder), read_log(folder / "log.jsonl")
    if card.accuracy is None:
        return None
    answers, training = curve_points(log, "evaluation", "exact_match"), curve_points(log, "evaluation", "training_accuracy")
    known = answers or curve_points(log, "evaluation", "accuracy")
    known = known or [(entry.step, entry.accuracy) for entry in card.losses if entry.accuracy is not None]
    if not known:
        return None
    what = "answers without a mistake" if answers else "texts right" if card.labels else "tokens right"
    rows, size = (card.texts or {}).get("training"), (card.recipe or {}).get("batch_size")
    return Accuracy(
        checkpoints.name_of(folder),
        what,
        np.array([step for step, _ in known], float),
        np.array([share for _, share in known]),
        np.array([step for step, _ in training], float),
        np.array([share for _, share in training]),
        epoch=rows / size if rows and isinstance(size, int) and size > 0 else None,
    )
