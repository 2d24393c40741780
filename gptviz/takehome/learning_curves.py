"""The learning curves of a model, for figures: from the log and the card in its folder."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from gptviz.figures.training.curves import Accuracy, Curve
from gptviz.runs import checkpoints
from gptviz.runs.log import curve_points, read_log


def read_curve(folder: Path) -> Curve:
    """The losses of a model, from its log, or without one its card; a CheckpointError if its config
    or card cannot be read.
    """
    config = checkpoints.read_config(folder)
    return replace(read_losses(folder), uniform=math.log(config.n_label or config.vocab_size))


def read_losses(folder: Path) -> Curve:
    """The losses of a run, of a model or of the fit of a dictionary, from its log, or without one
    its card; a CheckpointError if the card cannot be read.
    """
    card = checkpoints.read_card(folder)
    log = read_log(folder / "log.jsonl")
    training = curve_points(log, "step", "loss") or [
        (entry.step, entry.training) for entry in card.losses if entry.training is not None
    ]
    validation = curve_points(log, "evaluation", "loss") or [
        (entry.step, entry.validation) for entry in card.losses if entry.validation is not None
    ]
    partial = dict(curve_points(log, "evaluation", "share")) or {
        entry.step: entry.others["share"] for entry in card.losses if "share" in entry.others
    }
    return Curve(
        checkpoints.name_of(folder),
        np.array([step for step, _ in training], float),
        np.array([loss for _, loss in training]) if training else None,
        np.array([step for step, _ in validation], float),
        np.array([loss for _, loss in validation]),
        floor=card.floor,
        shares=np.array([partial.get(step, 1.0) for step, _ in validation]) if partial else None,
    )


def read_accuracy(folder: Path) -> Accuracy | None:
    """The accuracy of the model in `folder` over its training: of whole answers if it has answers.

    None if a prediction is neither right nor wrong, as in a text that can go on in many ways, or if
    nothing was measured. A CheckpointError if its card cannot be read.
    """
    card = checkpoints.read_card(folder)
    log = read_log(folder / "log.jsonl")
    if card.accuracy is None:
        return None
    answers = curve_points(log, "evaluation", "exact_match")
    training = curve_points(log, "evaluation", "training_accuracy")
    known = answers or curve_points(log, "evaluation", "accuracy")
    known = known or [
        (entry.step, entry.accuracy) for entry in card.losses if entry.accuracy is not None
    ]
    if not known:
        return None
    if answers:
        what = "answers without a mistake"
    elif card.labels:
        what = "texts right"
    else:
        what = "tokens right"
    rows = (card.texts or {}).get("training")
    size = (card.recipe or {}).get("batch_size")
    return Accuracy(
        checkpoints.name_of(folder),
        what,
        np.array([step for step, _ in known], float),
        np.array([share for _, share in known]),
        np.array([step for step, _ in training], float),
        np.array([share for _, share in training]),
        epoch=rows / size if rows and isinstance(size, int) and size > 0 else None,
    )
