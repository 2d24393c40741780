"""The fit of a dictionary as a run: it is written down, and then fitted by this process or by that
of the queue, which may stop and go on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gptviz.figures.kit.format import duration
from gptviz.interp.dictionaries import fitting
from gptviz.interp.dictionaries.dictionary import Dictionary, Target
from gptviz.interp.dictionaries.fitting import FitStep, FittedKind
from gptviz.interp.dictionaries.quality import Quality
from gptviz.machine import progress
from gptviz.machine.progress import Progress
from gptviz.model.costs.effort import A_SECOND
from gptviz.runs import checkpoints
from gptviz.runs.fits import FitPlan, kept_text, prepare, read_fit
from gptviz.runs.log import LogWriter
from gptviz.runs.names import possible_name
from gptviz.runs.resuming import SAVE_EVERY, RequestedError, failures_noted, restore_state
from gptviz.runs.status import (
    RunError,
    StopRequest,
    clear_stop_request,
    end_before_a_step,
    locked,
    stop_request,
    write_status,
)
from gptviz.settings.kinds import Cost, Seed, Size

from .core import LoadedModel
from .dictionaries import (
    dictionary_quality,
    effort_of_dictionary,
    keep_dictionary,
    to_fit,
    usual_name,
)
from .fitted import hash_weights
from .opening import open_parts
from .settings import check_settings

# Seconds between two words on the status, while the text is read.
SAID_EVERY = 0.5


@dataclass(frozen=True)
class Kept:
    """The dictionary that a fit has made, and how good it is."""

    dictionary: Dictionary
    quality: Quality


@check_settings
def prepare_fit(
    lm: LoadedModel,
    block: int,
    size: Size | None = None,
    kind: FittedKind = "topk",
    *,
    k: Size = 16,
    cost: Cost = 0.4,
    steps: Size = 2_000,
    seed: Seed = 0,
    text: str | None = None,
    name: str | None = None,
    target: Target = "stream",
) -> Path:
    """Write down the fit of a dictionary as `fit_dictionary` would fit it, and return its folder:
    the queue fits it (`gptviz.runs.queue.submit`), or `run_fit`.

    Raises:
        ValueError: there is no such block or MLP, or there are no such features.
        CheckpointError: the model has no name here, or the fit cannot be written.
    """
    checkpoints.check_writable("the dictionary is not fitted")
    lm = lm.original
    config = lm.model.config
    size = 4 * config.d_model if size is None else size
    fitting.check_block(config, block, target)
    fitting.check_fit(config.d_model, size, kind, k)
    checkpoints.find(lm.name)
    plan = FitPlan(
        of=lm.name,
        model=hash_weights(lm.model),
        d_model=config.d_model,
        block=block,
        target=target,
        size=size,
        kind=kind,
        k=k,
        cost=cost,
        steps=steps,
        seed=seed,
        corpus=kept_text(text),
        called=usual_name(block, target) if name is None else name,
        step=lm.step,
        precision=lm.precision,
    )
    return prepare(plan, possible_name(f"{plan.of}-{plan.called}"))


def said_before(folder: Path, lm: LoadedModel) -> str:
    """How long the fit in `folder` takes, in a sentence."""
    plan = read_fit(folder)
    left = plan.steps - (checkpoints.read_card(folder).steps or 0)
    work = effort_of_dictionary(lm, plan.size, left, plan.text)
    return (
        f"the fit {folder.name} takes about {duration(work / A_SECOND)} with this model on two "
        "processor cores"
    )


def model_of(folder: Path, device: str | None = None) -> LoadedModel:
    """The model of the fit in `folder`; a RunError if it is another one by now."""
    plan = read_fit(folder)
    checkpoints.find(plan.of)
    return LoadedModel(*open_parts(plan.of, device, plan.step, plan.precision))


def run_fit(
    folder: Path,
    lm: LoadedModel,
    *,
    stop_requested: Callable[[], StopRequest | None] = lambda: None,
) -> Iterator[FitStep | Kept]:
    """Fit the dictionary of the fit in `folder`, or go on with it: yields every step, and at the
    end what is kept. A fit that is stopped keeps the dictionary as it is then; one that is paused
    keeps what it needs to go on.

    A fit that was stopped or paused and goes on ends with exactly the same dictionary as one that
    never was, if the number of threads is the same.

    Args:
        lm: the model that it is fitted to: see `model_of`.
        stop_requested: called after every step and between the passes that read the text; "pause"
            and "stop" end the fit early, as `status.request_stop` does.

    Raises:
        RunError: the dictionary is already being fitted, is finished, or is one of another model.
        CheckpointError: the disk is full or not writable; the last good files are still there.
    """
    with locked(folder):
        plan = read_fit(folder)
        if (steps := checkpoints.read_card(folder).steps) and not _state(folder).exists():
            raise RunError(f"{folder.name} is finished, after {steps:,} steps: begin a new fit")
        with failures_noted(folder):
            clear_stop_request(folder)
            try:
                yield from _run(
                    folder, plan, lm.original, lambda: stop_requested() or stop_request(folder)
                )
            except RequestedError:
                end_before_a_step(folder)


def _run(
    folder: Path, plan: FitPlan, lm: LoadedModel, requested: Callable[[], StopRequest | None]
) -> Iterator[FitStep | Kept]:
    if hash_weights(lm.model) != plan.model:
        raise RunError(
            f"{plan.of} has other weights than when {folder.name} began: begin a new fit"
        )
    text = plan.text
    # the vectors
    with _said(folder, "reading the text", requested):
        rows = to_fit(lm, text)
        read, given = fitting.read_and_given(lm.model, plan.block, plan.target, rows)
    fit = fitting.Fit(
        read,
        plan.block,
        plan.size,
        plan.kind,
        k=plan.k,
        cost=plan.cost,
        steps=plan.steps,
        seed=plan.seed,
        given=None if plan.target == "stream" else given,
    )
    # the steps
    recorder = _Recorder(folder, fit)
    how: StopRequest | None = None
    for event in fit:
        yield event
        recorder.record(event)
        how = requested() if event.step < fit.steps else None
        if how is not None:
            break
    recorder.save()
    if how == "pause":
        raise RequestedError(how)
    # what it has become; only a pause leaves that out
    with _said(folder, "measuring the dictionary", requested, also_stops=False):
        kept = keep_dictionary(lm, fit.dictionary, plan.called)
        quality = dictionary_quality(lm, kept.name, text)
    recorder.record_quality(kept.name, quality)
    yield Kept(kept, quality)
    clear_stop_request(folder)
    write_status(folder, "finished" if how is None else "stopped")
    if how is None:
        _state(folder).unlink(missing_ok=True)


def _state(folder: Path) -> Path:
    return folder / "state.safetensors"


@contextmanager
def _said(
    folder: Path,
    doing: str,
    requested: Callable[[], StopRequest | None],
    *,
    also_stops: bool = True,
) -> Iterator[None]:
    """Write into the status how far a computation in this block is. A `RequestedError` ends it if
    the user asks for a pause, or for a stop too.
    """
    said = -math.inf

    def hear(now: Progress) -> None:
        nonlocal said
        how = requested()
        if how == "pause" or (how == "stop" and also_stops):
            raise RequestedError(how)
        if time.monotonic() - said > SAID_EVERY:
            said = time.monotonic()
            write_status(folder, "running", f"{doing}: {now.words}")

    write_status(folder, "running", doing)
    with progress.overhear(hear):
        yield


class _Recorder:
    """Records a fit in its folder: log, card and state. A fit that was saved goes on from there,
    and what was written after that is removed: the same steps are taken again.
    """

    def __init__(self, folder: Path, fit: fitting.Fit) -> None:
        self.folder = folder
        self.fit = fit
        state = restore_state(folder, fit)
        self.log = LogWriter(folder / "log.jsonl", fit.step, state)
        self.card = checkpoints.read_card(folder)
        self.saved = time.monotonic()
        write_status(folder, "running")

    def record(self, event: FitStep) -> None:
        """Record a step, and save the fit where that is long ago."""
        self.log.record_step(
            event.step,
            event.progress,
            event.error,
            active=round(event.active, 3),
            seconds=round(event.seconds, 3),
            seconds_left=round(event.seconds_left, 1),
        )
        if time.monotonic() - self.saved > SAVE_EVERY:
            self.save()

    def save(self, **values: Any) -> None:
        """Save the fit as it is now, the state last; these values go on its card."""
        self.log.flush()
        self.card = self.card.change_values(
            **values,
            steps=self.fit.step,
            seconds=round(self.fit.seconds, 1),
            fitted_to=len(self.fit.read.vectors),
            date=datetime.now(UTC).date().isoformat(),
        )
        checkpoints.write_json(self.folder / "card.json", self.card.to_json())
        checkpoints.write_tensors(_state(self.folder), self.fit.state() | self.log.state())
        self.saved = time.monotonic()

    def record_quality(self, name: str, quality: Quality) -> None:
        """Record how good the dictionary of this name is on data held out."""
        numbers = asdict(quality) | {"recovered": quality.recovered}
        known = {
            key: value
            for key, value in numbers.items()
            if not isinstance(value, float) or math.isfinite(value)
        }
        if "explained" in known:
            error = 1 - quality.explained
            self.log.record("evaluation", self.fit.step, loss=error, active=quality.l0)
        self.save(dictionary=name, quality=known)
