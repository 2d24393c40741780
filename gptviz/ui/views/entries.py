"""The facts that Runs and Home show of every model: its numbers, curve and settings; and which
models are worth comparing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from gptviz.figures.training.curves import Curve
from gptviz.machine.files import file_stamp, kept_until_written
from gptviz.model import Config, parameter_count
from gptviz.runs import checkpoints
from gptviz.runs.divergence import describe_divergence
from gptviz.runs.experiments import GROUPS, PLANS
from gptviz.runs.status import Status, read_status
from gptviz.settings.fields import field_infos
from gptviz.train.recipe import Recipe
from gptviz.ui.shell.subject import kinds

from .learning_curves import curve_of

MOST_COMPARED = 12
STATES = {"running": "training", "ready": "not begun"}
# Laying out a model's parts takes a hundred times as long as reading its card, and cards may be
# wrong.
_parameter_count = lru_cache(maxsize=512)(parameter_count)
_read_card = kept_until_written("card.json", most=1024)(checkpoints.read_card)


@dataclass(frozen=True)
class Entry:
    """The facts about one model."""

    name: str
    folder: Path
    status: Status
    #: what is wrong with its files, empty if nothing is; if its config or card is wrong, most other
    #: fields are empty
    problem: str = ""
    #: a sentence that says that its run has diverged, and what to change; empty if it has not
    diverged: str = ""
    data: str = ""
    parameters: int | None = None
    curve: Curve | None = None
    accuracy: float | None = None
    steps: int | None = None
    seconds: float | None = None
    plan: str | None = None  #: the experiment it belongs to, if any
    #: what models of its kind are usually called; only for a model of another program
    family: str | None = None
    #: every field of its recipe and its config, and its data
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def best_loss(self) -> float:
        """The lowest validation loss after the first step or a later one; NaN before there is one.

        The loss before the first step says nothing about what was learned, and would be the best of
        a run that diverged. Where some losses were measured on all the data held out, those on a
        part of it do not count: a part may be easier.
        """
        if self.curve is None:
            return math.nan
        learned = self.curve.validation_steps > 0
        if self.curve.shares is not None and (whole := learned & (self.curve.shares >= 1)).any():
            learned = whole
        if learned.any():
            return float(self.curve.validation[learned].min())
        return math.nan

    @property
    def last_loss(self) -> float:
        """The last validation loss; NaN before the first."""
        if self.has_curve and self.curve is not None:
            return float(self.curve.validation[-1])
        return math.nan

    @property
    def has_curve(self) -> bool:
        """Whether there is a loss to show."""
        return self.curve is not None and len(self.curve.validation) > 0

    @property
    def is_active(self) -> bool:
        """Whether it trains or waits for its turn."""
        return self.status.state in ("running", "waiting")

    @property
    def state(self) -> str:
        """Its state in words, with how much of the training is done."""
        if self.problem:
            return "damaged"
        planned = self.settings.get("steps")
        if self.status.state == "running" and isinstance(planned, int) and self.steps:
            return f"training {100 * min(1.0, self.steps / planned):.0f} %"
        if self.diverged:
            return "diverged"
        if self.family is not None and self.status.state == "finished":
            return "imported"
        return STATES.get(self.status.state, self.status.state)


def entries() -> dict[str, Entry]:
    """Every model by its name, the user's own first."""
    known = {}
    for name, folder in checkpoints.folders().items():
        status = read_status(folder)
        try:
            card = _read_card(folder)
            config = kinds.read_config(folder)
            curve = curve_of(folder)
            data = (card.task or card.corpus or "")[:80]
            recipe = card.recipe or {}
            settings = (
                {"data": data or None}
                | {name: recipe.get(name) for name in field_infos(Recipe)}
                | config.to_dict()
            )
            problem = describe_divergence(card, config)
            last_steps = [*curve.steps[-1:].tolist(), *curve.validation_steps[-1:].tolist()]
            known[name] = Entry(
                checkpoints.name_of(folder),
                folder,
                status,
                problem=_wrong_weights(
                    folder, config, tuple(map(file_stamp, checkpoints.weight_files(folder)))
                ),
                diverged=problem or "",
                data=data,
                parameters=_parameter_count(config),
                curve=curve,
                accuracy=card.accuracy,
                steps=int(max([*last_steps, card.steps or 0])),
                seconds=card.seconds,
                plan=card.plan if card.plan in PLANS else None,
                family=card.family,
                settings=settings,
            )
        except checkpoints.CheckpointError as error:
            known[name] = Entry(name, folder, status, problem=str(error))
    return known


# Cached: laying out a model for every row, every two seconds, would take longer than everything
# else.
@lru_cache(maxsize=512)
def _wrong_weights(
    folder: Path, config: Config, written: tuple[tuple[int, int] | None, ...]
) -> str:
    """The fault of the weights, empty if there is none; `written` differs if a file has changed."""
    try:
        checkpoints.check_weights(folder, config)
    except checkpoints.CheckpointError as error:
        return str(error)
    return ""


def default_comparison(entries: Mapping[str, Entry]) -> list[str]:
    """The models compared until others are chosen: the largest group of experiments of which two
    are here, else all models with a curve.
    """
    with_curve = [name for name, entry in entries.items() if entry.has_curve]
    for group in sorted(
        (group for group in GROUPS if group.notice), key=lambda group: -len(group.plans)
    ):
        if len(here := [name for name in group.plans if name in with_curve]) > 1:
            return here[:MOST_COMPARED]
    return with_curve[:MOST_COMPARED]
