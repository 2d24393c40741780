"""Models of sums on a clock: the view Waves of several pages, and what is computed of such a model once."""

from __future__ import annotations

from typing import NamedTuple

from gptviz.interp.reading import waves
from gptviz.labelled_array import LabelledArray
from gptviz.text.datasets.tasks import Modular
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.widgets import jobs

WAVES = "Waves"


class Found(NamedTuple):
    """What is computed of one model.

    Attributes:
        powers: the share of each frequency [part, frequency].
        used: the frequencies that it uses.
        right: the share of all sums that are right: as it is, with the used frequencies alone, and without them.
    """

    powers: LabelledArray
    used: tuple[int, ...]
    right: tuple[float, float, float]


def task_of(key: ModelKey) -> Modular | None:
    """The task of the model, if it is sums on a clock."""
    task = language_model(key).task
    return task if isinstance(task, Modular) else None


@jobs.data("Reading all sums", max_entries=64)
def found(key: ModelKey) -> Found:
    """All that the view says of a model of such a task."""
    model, task = language_model(key).model, task_of(key)
    assert task is not None
    shares = waves.powers(model, task)
    few = waves.used(shares)
    others = set(range(1, task.modulus // 2 + 1)) - set(few)
    right = (waves.accuracy(model, task), waves.accuracy(model, task, few), waves.accuracy(model, task, others))
    return Found(shares, few, right)
