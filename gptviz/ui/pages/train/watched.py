"""The run that the Train page watches: which one, and all that its files record now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from gptviz.machine.files import kept_until_written
from gptviz.model.kinds import Kind
from gptviz.runs import checkpoints, queue
from gptviz.runs.card import Card
from gptviz.runs.divergence import describe_divergence
from gptviz.runs.log import LogLine, read_log
from gptviz.runs.run import read_run
from gptviz.runs.status import RunError, Status, StopRequest, read_status, stop_request
from gptviz.settings.address_values import one_of
from gptviz.train.recipe import Recipe
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import ModelKey, hidden, kinds, model_key
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
class WatchedRun:
    """All that is known of a run now."""

    folder: Path
    status: Status
    #: what the user asked for and the run has not carried out yet, or None
    request: StopRequest | None
    place: int | None  #: in the queue: 0 in training, n for the n-th in line, None for neither
    kind: Kind | None  #: the kind of the model, or None if that cannot be read
    card: Card
    recipe: Recipe | None  #: how it is trained; None for a model that was not trained here
    step: LogLine | None  #: the last line of its log about a step; None before the first
    #: the last line of its log about an evaluation; None before the first
    evaluation: LogLine | None
    #: the last line of its log about a sample of what it writes; None before the first
    sample: LogLine | None
    diverged: str | None  #: if it has diverged, a sentence that says so, and what to change

    @property
    def name(self) -> str:
        """The name of the model."""
        return checkpoints.name_of(self.folder)

    @property
    def is_active(self) -> bool:
        """Whether it trains or waits to."""
        return self.place is not None

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
    card = checkpoints.read_card(folder)
    return WatchedRun(
        folder,
        read_status(folder),
        stop_request(folder),
        place=queue.own_queue().place(name) if folder.parent == queue.own_queue().root else None,
        kind=kinds.kind_of(folder),
        card=card,
        recipe=recipe,
        step=_last_line(log, "step", NUMBERS_OF_A_STEP),
        evaluation=_last_line(log, "evaluation", ("loss",)),
        sample=_last_line(log, "sample", ()),
        diverged=describe_divergence(card, checkpoints.read_config(folder)),
    )


def _last_line(log: Sequence[LogLine], kind: str, numbers: Sequence[str]) -> LogLine | None:
    """The last line of one kind that has all of `numbers`; a log may come from a stranger."""
    lines = (line for line in reversed(log) if line.kind == kind)
    return next(
        (line for line in lines if all(getattr(line, field) is not None for field in numbers)), None
    )


@kept_until_written("log.jsonl", most=8)
def log_of(folder: Path) -> list[LogLine]:
    """All lines of the log in this folder."""
    return read_log(folder / "log.jsonl")


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
