"""The run that the Train page watches: which one, and all that its files record now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints, queue
from gptviz.runs.divergence import describe_divergence
from gptviz.runs.log import LogLine
from gptviz.runs.run import read_run
from gptviz.runs.status import RunError
from gptviz.settings.address_values import one_of
from gptviz.train.recipe import Recipe
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import ModelKey, hidden, kinds, model_key
from gptviz.ui.views.run_bar import RunState, files_of, last_line, log_of
from gptviz.ui.widgets import addresses, controls

NUMBERS_OF_A_STEP = (
    "loss",
    "progress",
    "learning_rate",
    "gradient_norm",
    "tokens_per_second",
    "seconds_left",
)
_NEXT = "run to watch next"


@dataclass(frozen=True)
class WatchedRun(RunState):
    """All that is known of the run of a model now."""

    kind: Kind | None  #: the kind of the model, or None if that cannot be read
    recipe: Recipe | None  #: how it is trained; None for a model that was not trained here
    #: the last line of its log about an evaluation; None before the first
    evaluation: LogLine | None
    #: the last line of its log about a sample of what it writes; None before the first
    sample: LogLine | None

    @property
    def twin(self) -> WatchedRun | None:
        """All that is known of the run that was begun together with it, if there is one."""
        name = self.card.twin
        try:
            if name is None or name == self.name:
                return None
            return watched_run(name)
        except checkpoints.CheckpointError:  # it was deleted, or renamed
            return None

    @property
    def plan(self) -> str:
        """The name of the experiment it belongs to, empty if it belongs to none."""
        return self.card.plan or ""

    @property
    def log(self) -> list[LogLine]:
        """All lines of its log."""
        return log_of(self.folder)


def watch_next(name: str) -> None:
    """Let the next run of the script watch the run called `name`.

    The control itself cannot be set now: the chart is shown again each second, and the values of
    all controls that the browser sends with that, as they were before, would take the place of what
    was set.
    """
    st.session_state[_NEXT] = name


def run_control() -> str | None:
    """The control `run`: which run is watched; it is always in the link. Returns None if there is
    no run.
    """
    names = list(checkpoints.folders())
    if not names:
        return None
    in_link = controls.linked_choice("run", str, None, values=one_of(names))
    if (chosen := st.session_state.get(_NEXT)) in names:
        st.session_state["run"] = chosen
    if st.session_state.get("run") not in names:
        st.session_state["run"] = in_link or _most_interesting(names)
    hint = (
        "Any model, whether it is still being trained or finished long ago. The one in training "
        "is shown first."
    )
    name = st.selectbox("Model watched", names, key="run", help=hint, persist_state="session")
    st.session_state.pop(_NEXT, None)
    addresses.write("run", name)
    hidden.say_what_hides([name])
    return name


def _most_interesting(names: Sequence[str]) -> str:
    """The run in training, else the next in line, else the one that changed last, else a model that
    came with gptviz.
    """
    own_queue = queue.own_queue()
    for name in [*own_queue.training(), *own_queue.waiting_runs()]:
        if name in names:
            return name
    own = [folder for folder in checkpoints.folders().values() if (folder / "status.json").exists()]
    if own:
        return max(own, key=lambda folder: (folder / "status.json").stat().st_mtime).name
    if frame.default_model() in names:
        return frame.default_model()
    return names[0]


def watched_run(name: str) -> WatchedRun:
    """All that is known now of the run called `name`.

    Raises:
        checkpoints.CheckpointError: there is none, or it cannot be read.
    """
    folder = checkpoints.find(name)
    try:
        recipe = read_run(folder).recipe
    except RunError:
        recipe = None
    log = log_of(folder)
    status, request, place, card = files_of(folder)
    return WatchedRun(
        folder,
        status,
        request,
        place,
        card,
        planned=recipe.steps if recipe else None,
        step=last_line(log, "step", NUMBERS_OF_A_STEP),
        diverged=describe_divergence(card, checkpoints.read_config(folder)),
        is_planned=recipe is not None,
        kind=kinds.kind_of(folder),
        recipe=recipe,
        evaluation=last_line(log, "evaluation", ("loss",)),
        sample=last_line(log, "sample", ()),
    )


def newest_weights(name: str, device: str) -> ModelKey:
    """The newest weights of a run on the disk: a snapshot, or those saved last.

    Raises:
        checkpoints.CheckpointError: there are none.
    """
    folder = checkpoints.find(name)
    steps = checkpoints.read_card(folder).steps
    newest = max(checkpoints.snapshots(folder), default=None)
    saved = math.inf if steps is None else steps
    return model_key(name, device, newest if newest is not None and newest > saved else None)
