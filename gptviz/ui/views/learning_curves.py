"""The curves of runs, read from their logs and cached until these grow."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures.curves import Curve
from gptviz.runs import checkpoints
from gptviz.runs.log import read_log

LAST_STEP = 10**12


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
    card = checkpoints.read_card(folder)
    log = read_log(folder / "log.jsonl")
    told = card.get("losses")
    entries = [entry for entry in told if isinstance(entry, dict)] if isinstance(told, list) else []
    training = _points(log, "step", "loss") or _points(entries, None, "training")
    validation = _points(log, "evaluation", "loss") or _points(entries, None, "validation")
    floor, config = card.get("floor"), checkpoints.read_config(folder)
    return Curve(
        folder.name,
        np.array([step for step, _ in training]),
        np.array([loss for _, loss in training]) if training else None,
        np.array([step for step, _ in validation]),
        np.array([loss for _, loss in validation]),
        floor=floor if _is_number(floor) else None,
        uniform=math.log(config.n_label or config.vocab_size),
    )


def _points(lines: Iterable[dict[str, Any]], kind: str | None, field: str) -> list[tuple[float, float]]:
    """Step and value of the lines of one kind that have both, by step; a step that was taken anew counts as last taken."""
    found = {}
    for line in lines:
        step, value = line.get("step"), line.get(field)
        if line.get("kind") == kind and _is_number(step) and 0 <= step <= LAST_STEP and _is_number(value):
            found[float(step)] = float(value)
    return sorted(found.items())


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300  # NaN is not
