"""How far a run is, of a model or of the fit of a dictionary, with its buttons: pause, stop, take
back, go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from gptviz.figures.kit.format import duration, format_count
from gptviz.machine.errors import reason_of
from gptviz.machine.files import kept_until_written
from gptviz.runs import checkpoints, queue
from gptviz.runs.card import Card
from gptviz.runs.log import LogLine, read_log
from gptviz.runs.status import Status, StopRequest, read_status, stop_request
from gptviz.ui.widgets import escape_markdown

RESUMABLE = ("ready", "paused", "stopped", "interrupted", "failed")
STATES = {
    "ready": "It has not begun.",
    "paused": "Paused: it can go on exactly where it is.",
    "stopped": "Stopped before its end: it can go on exactly where it is.",
    "finished": "Finished.",
    "failed": "It failed.",
    "interrupted": "It was interrupted.",
    # Whether it is active is read a moment after its state: it has ended in between.
    "waiting": "It has not begun.",
    "running": "It is ending.",
}
ENDING: dict[StopRequest, str] = {
    "pause": "pausing: what it has learned is being saved",
    "stop": "stopping: a last evaluation on all the data held out (Pause leaves it out)",
}
ORDINALS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
)
_FAILED = "train failed"


@dataclass(frozen=True)
class RunState:
    """How far a run is now."""

    folder: Path
    status: Status
    #: what the user asked for and the run has not carried out yet, or None
    request: StopRequest | None
    place: int | None  #: in the queue: 0 in training, n for the n-th in line, None for neither
    card: Card
    planned: int | None  #: how many steps there are to be; None where that is not known
    step: LogLine | None  #: the last line of its log about a step; None before the first
    diverged: str | None  #: if it has diverged, a sentence that says so, and what to change
    is_planned: bool  #: whether its files say how it goes on

    @property
    def name(self) -> str:
        """The name of its folder."""
        return checkpoints.name_of(self.folder)

    @property
    def is_active(self) -> bool:
        """Whether it trains or waits to."""
        return self.place is not None

    @property
    def can_go_on(self) -> bool:
        """Whether it can be put into the queue."""
        is_own = self.folder.parent == queue.own_queue().root
        return self.is_planned and is_own and self.status.state in RESUMABLE


def files_of(folder: Path) -> tuple[Status, StopRequest | None, int | None, Card]:
    """The first fields of a `RunState` but for the folder."""
    own = queue.own_queue()
    return (
        read_status(folder),
        stop_request(folder),
        own.place(folder.name) if folder.parent == own.root else None,
        checkpoints.read_card(folder),
    )


def run_bar(run: RunState) -> None:
    """The progress bar of a run with its buttons, and the error if there was one."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if run.status.state == "finished":
            share = 1.0
        else:
            share = min(1.0, (run.step and run.step.progress) or 0.0)
        st.progress(share, headline(run), width="stretch")
        if run.place == 0:
            about = "Saves everything and pauses. The result will be the same as without a pause."
            _button("Pause", ":material/pause:", queue.own_queue().pause, run.name, about)
            about = "Ends the run here, with a last evaluation. It can still go on later."
            _button("Stop", ":material/stop:", queue.own_queue().stop, run.name, about)
        elif run.place:
            about = "Takes the run out of the line of waiting runs. You can put it back later."
            _button("Take back", ":material/undo:", queue.own_queue().stop, run.name, about)
        elif run.can_go_on:
            label = "Begin" if run.status.state == "ready" else "Go on"
            _button(
                label,
                ":material/resume:",
                queue.submit,
                run.name,
                "Goes on from this step.",
            )
    if failed := st.session_state.get(_FAILED):
        st.error(escape_markdown(failed))


def headline(run: RunState) -> str:
    """The state of the run and how far it is, as Markdown."""
    if run.place:
        training = queue.own_queue().training()
        if training:
            ahead = f": {escape_markdown(training[0])} is in training"
        else:
            ahead = ""
        place = run.place + len(training)
        if place <= len(ORDINALS):
            in_line = ORDINALS[place - 1]
        else:
            in_line = f"number {place}"
        return f"Waiting, {in_line} in line{ahead}."
    at = f"Step {run.step.step:,}" if run.step else "Step 0"
    if run.planned:
        at += f" of {run.planned:,}"
    if run.place == 0 and run.request is not None:
        return f"{at} · {ENDING[run.request]}"
    if run.place == 0:
        doing = escape_markdown(run.status.message)
        if run.status.state != "running" or not run.step:
            return f"Beginning: {doing or 'Python and torch are being loaded'}."
        if doing:
            return f"{at} · {doing}"
        return f"{at} · {duration(run.step.seconds_left)} left"
    if run.status.state == "finished":
        if run.card.seconds is None:
            took = ""
        else:
            took = f" in {duration(run.card.seconds)}"
        how = "Finished, but it diverged" if run.diverged else "Finished"
        if run.card.steps is None:
            return f"{how}."
        return f"{how}: {format_count(run.card.steps, 'step')}{took}."
    return f"{at}. {STATES[run.status.state]}"


def _button(label: str, icon: str, act: Callable[[str], object], name: str, help: str) -> None:
    def press_button() -> None:
        st.session_state[_FAILED] = ""
        try:
            act(name)
        except (ValueError, OSError) as error:
            st.session_state[_FAILED] = reason_of(error)

    # The name is part of the key: a click that arrives late must not meet another run.
    st.button(label, icon=icon, on_click=press_button, help=help, key=f"{label} {name}")


def repeat_body(body: Callable[[], bool], every: float, active: bool) -> None:
    """Show `body`, which returns whether a run is active, each `every` seconds while one is; when
    that ends, the whole page runs once.
    """

    def tick() -> None:
        try:
            # does not fade while it waits for its turn: page.css
            with st.container(key=f"again {body.__module__}"):
                is_active = body()
        except checkpoints.CheckpointError as error:  # it was deleted, or renamed
            st.text(str(error))
            return
        if is_active != active:
            st.rerun()

    st.fragment(tick, run_every=every if active else None)()


def last_line(log: Sequence[LogLine], kind: str, numbers: Sequence[str]) -> LogLine | None:
    """The last line of one kind that has all of `numbers`; a log may come from a stranger."""
    lines = (line for line in reversed(log) if line.kind == kind)
    return next(
        (line for line in lines if all(getattr(line, field) is not None for field in numbers)), None
    )


@kept_until_written("log.jsonl", most=8)
def log_of(folder: Path) -> list[LogLine]:
    """All lines of the log in this folder."""
    return read_log(folder / "log.jsonl")
