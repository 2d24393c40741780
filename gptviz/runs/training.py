"""Training a run: the trainer's events, while card, log, weights and state are saved in the run's
folder.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from gptviz._version import __version__
from gptviz.data.batches import Data
from gptviz.data.registry import source_from
from gptviz.data.source import Source
from gptviz.machine.cores import FreeCores
from gptviz.model import Transformer
from gptviz.text import Tokenizer
from gptviz.train.distributed import World
from gptviz.train.divergence import DivergedError, advice
from gptviz.train.engine import Engine, choose_engine, compiler_missing
from gptviz.train.trainer import Evaluated, Event, Stepped, Trainer

from . import checkpoints
from .card import LossEntry
from .checkpoints import NotNumbersError
from .divergence import divergence_of
from .log import LogWriter
from .names import Claim
from .resuming import SAVE_EVERY, RequestedError, failures_noted, restore_state
from .run import Run, read_run
from .status import (
    RunError,
    StopRequest,
    clear_stop_request,
    end_before_a_step,
    locked,
    stop_request,
    write_status,
)


@dataclass(frozen=True)
class Sampled:
    """A sample of the text that the model writes after `step` steps."""

    step: int
    text: str


def train(
    folder: Path,
    *,
    device: torch.device | str = "cpu",
    world: World | None = None,
    claim: Claim | None = None,
    stop_requested: Callable[[], StopRequest | None] = lambda: None,
) -> Iterator[Engine | Event | Sampled]:
    """Train the run in `folder`, or resume it, and save it meanwhile: yields its engine, then every
    event and sample.

    A run that was paused or stopped and is resumed ends with exactly the same weights as one that
    never was, if the number of threads is the same. It is smaller while other processes use the
    cores, and sums are then rounded differently.

    Args:
        world: the processes that train together; default: only this one.
        claim: the claim on the name of the run, if the caller still holds it since it prepared the
            run.
        stop_requested: called after every step, while the engine is chosen, and between the batches
            of an evaluation; "pause" and "stop" end the training early, as `status.request_stop`
            does.

    Raises:
        RunError: the run is already being trained, is finished, or cannot be read.
        CheckpointError: the disk is full or not writable; the last good files are still there.
        DivergedError: the loss or its gradient is no longer a number.
    """
    world = World() if world is None else world
    with locked(folder) if world.is_main and claim is None else nullcontext():
        if (
            read_run(folder).card.values.get("steps")
            and not (folder / "state.safetensors").exists()
        ):
            raise RunError(
                f"{folder.name} is finished: begin a new run with its weights instead (--from "
                f"{folder.name})"
            )
        threads = torch.get_num_threads()
        try:
            with failures_noted(folder, writes=world.is_main):
                yield from _train(folder, torch.device(device), world, stop_requested)
        finally:
            torch.set_num_threads(threads)


def _train(
    folder: Path,
    device: torch.device,
    world: World,
    stop_requested: Callable[[], StopRequest | None],
) -> Iterator[Engine | Event | Sampled]:
    run = read_run(folder)
    checkpoint = checkpoints.load(folder, device, unmerged=True)
    model = checkpoint.model
    tokenizer = checkpoint.tokenizer
    source = source_from(run.source)
    data = source.data(tokenizer, model.config)
    requests = _Requests(folder, stop_requested, world)
    if world.is_main:
        clear_stop_request(folder)
        # a resumed run may have it already
        if (note := source.describe_unread(tokenizer)) and note not in run.card.notes:
            run = _note_on_card(run, notes=[*run.card.notes, note])
        run = _with_engine(run, model, data, requests)
    if _broadcast_request(requests.made, world, device):
        if world.is_main:
            end_before_a_step(folder)
        return
    engine = _usable_engine(run, world, device)
    yield engine
    trainer = Trainer(
        model,
        data,
        run.recipe,
        forward=engine.forward(model),
        bfloat16=engine.bfloat16,
        world=world,
        between=requests.between_batches,
    )
    state = restore_state(folder, trainer)
    # One process writes for all.
    if world.is_main:
        recorder = _Recorder(run, tokenizer, source, data, trainer, state)
    else:
        recorder = None
    outcome: Literal["finished", "paused", "stopped"] = "finished"
    # What is compiled is compiled for a number of threads.
    cores = None if engine.compiled else FreeCores()
    threads = torch.get_num_threads()
    try:
        try:
            for event in trainer:
                yield event
                if cores is not None:
                    torch.set_num_threads(cores.threads(threads))
                if recorder is not None:
                    yield from recorder.record(event)
                if isinstance(event, Stepped):
                    requests.is_last = event.progress >= 1
                    if world.is_main and not requests.is_last:
                        request = requests.open_request()
                    else:
                        request = None
                    if agreed := _broadcast_request(request, world, device):
                        raise RequestedError(agreed)
        except RequestedError as requested:
            outcome = "paused" if requested.how == "pause" else "stopped"
        if outcome == "stopped":
            requests.is_last = True
            for event in trainer.evaluate(everything=True):
                yield event
                if recorder is not None:
                    yield from recorder.record(event)
    except RequestedError:
        outcome = "paused"
    except DivergedError as error:
        if recorder is not None:
            recorder.record_divergence(str(error))
        raise
    if recorder is not None:
        recorder.end(outcome)


def _numbers_in(measured: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of `measured` by name; a number in an object has the name of the object before
    its own, with a dot between.
    """
    for name, value in measured.items():
        if isinstance(value, Mapping):
            yield from _numbers_in(value, f"{before}{name}.")
        elif isinstance(value, float):
            yield before + name, value


class _Requests:
    """The request of the user to a training: to pause or to stop."""

    def __init__(
        self, folder: Path, requested: Callable[[], StopRequest | None], world: World
    ) -> None:
        #: the request that ended the choice of an engine, or None if none did
        self.made: StopRequest | None = None
        #: whether the next evaluation is the last one of the run, which only a pause interrupts
        self.is_last = False
        self._folder = folder
        self._requested = requested
        self._world = world
        self._begun = time.monotonic()
        self._told = ""

    def open_request(self) -> StopRequest | None:
        """The request that is open now, or None if there is none."""
        return self._requested() or stop_request(self._folder)

    def between_batches(self) -> None:
        """Interrupt the evaluation if the user asks for an end; a run that is stopped ends with an
        evaluation, which goes on.

        If several processes train, it goes on too: the others would wait for this one.
        """
        how = self.open_request() if self._world.size == 1 else None
        if how == "pause" or (how == "stop" and not self.is_last):
            raise RequestedError(how)

    def while_choosing(self, doing: str) -> None:
        """Write the present trial of the choice of an engine into the status, and interrupt it if
        the user asks for an end.
        """
        if how := self.open_request():
            raise RequestedError(how)
        told = f"{doing} ({time.monotonic() - self._begun:.0f} s so far)"
        if told != self._told:
            self._told = told
            write_status(self._folder, "running", told)


def _broadcast_request(
    request: StopRequest | None, world: World, device: torch.device
) -> StopRequest | None:
    """The main process's request, in every process, so that all of them stop after the same
    step.
    """
    requests: tuple[StopRequest | None, ...] = (None, "pause", "stop")
    return requests[int(world.broadcast(float(requests.index(request)), device))]


def _with_engine(run: Run, model: Transformer, data: Data, requests: _Requests) -> Run:
    """The run with an engine. If it has none, one is chosen and written on the card, so that a
    resumed run computes as before.

    If the user asks for an end meanwhile, it stays without one, and the request is in
    `requests.made`.
    """
    write_status(run.folder, "running", "choosing the fastest way to compute")
    if run.engine is not None:
        return run
    try:
        engine = choose_engine(model, data, run.recipe, meanwhile=requests.while_choosing)
    except RequestedError as requested:
        requests.made = requested.how
        return run
    return replace(_note_on_card(run, engine=engine.to_dict()), engine=engine)


def _note_on_card(run: Run, **values: Any) -> Run:
    """The run with these values on its card."""
    card = run.card.change_values(**values)
    checkpoints.write_json(run.folder / "card.json", card.to_json())
    return replace(run, card=card)


def _usable_engine(run: Run, world: World, device: torch.device) -> Engine:
    """The engine of the main process's run, in every process; not compiled if this machine has no
    compiler.
    """
    engine = run.engine or Engine()
    if engine.compiled and (missing := compiler_missing()):  # the run comes from another machine
        engine = Engine(engine.bfloat16, False, f"not compiled as before: {missing}")
    bfloat16 = bool(world.broadcast(float(engine.bfloat16), device))
    compiled = bool(world.broadcast(float(engine.compiled), device))
    return replace(engine, bfloat16=bfloat16, compiled=compiled)


class _Recorder:
    """Records a run in its folder: card, log, snapshots, weights and state.

    When a run is resumed, everything written after its saved state is removed first: the same steps
    are taken again. `state` are the tensors saved with the trainer's state, empty for a run that
    begins.
    """

    def __init__(
        self,
        run: Run,
        tokenizer: Tokenizer,
        source: Source,
        data: Data,
        trainer: Trainer,
        state: dict[str, Tensor],
    ) -> None:
        self.folder = run.folder
        self.recipe = run.recipe
        self.trainer = trainer
        self.tokenizer = tokenizer
        self.source = source
        self.data = data
        self.dtype = run.dtype
        self.wall_seconds = run.card.wall_seconds
        self.card = run.card
        self.losses = list(run.card.losses)
        if state:
            self.losses = [entry for entry in self.losses if entry.step <= trainer.step]
            for step, file in checkpoints.snapshots(self.folder).items():
                if step > trainer.step:
                    file.unlink(missing_ok=True)
        self.log = LogWriter(self.folder / "log.jsonl", trainer.step, state)
        self.begun = self.saved = time.monotonic()
        write_status(self.folder, "running")
        if trainer.step == 0:
            self._snapshot()

    def record(self, event: Event) -> Iterator[Sampled]:
        """Record an event. After an evaluation, also save the run, and yield a sample of the
        model's text.
        """
        if isinstance(event, Evaluated):
            model = self.trainer.model.eval()
            measured = self.source.measure_model(
                model, self.tokenizer, self.data, None if event.share == 1 else event.rows
            )
            numbers = dict(_numbers_in(measured))
            if event.share < 1:
                numbers["share"] = round(event.share, 4)
            if event.training is not None and self.source.has_right_answers:
                numbers["training_accuracy"] = event.training.accuracy
            self.log.record_evaluation(event, by_place=self.source.has_places, **numbers)
            self._note(event, measured, numbers)
            sample = Sampled(event.step, self.source.sample(model, self.tokenizer, self.data))
            self.log.record_sample(sample.step, sample.text)
            yield sample
            self._save()
            return
        self.log.record_step(
            event.step,
            event.progress,
            event.loss,
            learning_rate=float(f"{event.learning_rate:.4g}"),
            gradient_norm=float(f"{event.gradient_norm:.4g}"),
            tokens_per_second=round(event.tokens_per_second),
            seconds=round(event.seconds, 3),
            seconds_left=round(event.seconds_left, 1),
        )
        if self.recipe.saves_snapshot(event.step) or event.progress >= 1:
            self._snapshot()
        if time.monotonic() - self.saved > SAVE_EVERY:
            self._save()

    def end(self, outcome: Literal["finished", "paused", "stopped"]) -> None:
        """Save the run as it is now, and write its last state."""
        if outcome == "stopped":
            self._snapshot()
        if self.card.diverged:
            self.log.record_divergence(self.trainer.step, self.card.diverged)
        self._save()
        clear_stop_request(self.folder)
        write_status(self.folder, outcome, self.card.diverged or "")
        if outcome == "finished":
            (self.folder / "state.safetensors").unlink(missing_ok=True)

    def record_divergence(self, message: str) -> None:
        """Record that the loss or the weights are no longer numbers; the last weights saved stay.

        The card on the disk is changed, since the card of this object may describe a model that is
        not saved.
        """
        self.log.record_divergence(self.trainer.step, message)
        self.log.flush()
        card = checkpoints.read_card(self.folder).change_values(diverged=message)
        checkpoints.write_json(self.folder / "card.json", card.to_json())

    def _note(self, event: Evaluated, measured: dict[str, Any], numbers: dict[str, float]) -> None:
        """Put an evaluation on the card, with the other measurements; those that are `numbers` also
        become curves.
        """
        if self.source.has_right_answers:
            accuracy = event.evaluation.accuracy
        else:
            accuracy = None
        recent = self.log.recent_loss
        entry = LossEntry(
            step=event.step,
            validation=event.loss,
            training=None if math.isnan(recent) else round(recent, 4),
            seconds=round(event.seconds, 1),
            accuracy=accuracy,
            others=numbers,
        )
        self.losses = [*(before for before in self.losses if before.step < event.step), entry]
        values: dict[str, Any] = {"validation_loss": event.loss} | (
            {} if accuracy is None else {"accuracy": accuracy}
        )
        if "training_accuracy" in numbers:
            values["training_accuracy"] = numbers["training_accuracy"]
        if self.source.has_places:
            values["accuracy_by_place"] = event.evaluation.by_place()
        diverged = divergence_of(self.losses, self.trainer.model.config, self.recipe)
        # so that the card of a run that did not diverge does not have the key
        if diverged or self.card.diverged:
            values["diverged"] = diverged
        self.card = self.card.change_values(**values, **measured)

    def _snapshot(self) -> None:
        if self.recipe.snapshots:
            self._write_weights(checkpoints.snapshot_path(self.folder, self.trainer.step))

    def _write_weights(self, path: Path) -> None:
        try:
            checkpoints.write_weights(path, self.trainer.model, self.dtype)
        except NotNumbersError as error:
            raise DivergedError(f"it diverged: {error}. To change: {advice(self.recipe)}") from None

    def _save(self) -> None:
        """Save the run as it is now. The state is written last: steps after the saved state are
        taken again after a crash.
        """
        self.card = self.card.change_values(
            losses=[entry.to_json() for entry in self.losses],
            steps=self.trainer.step,
            seconds=round(self.trainer.seconds, 1),
            wall_seconds=round(self.wall_seconds + time.monotonic() - self.begun, 1),
            processes=self.trainer.world.size,
            threads=torch.get_num_threads(),
            device=str(self.trainer.device),
            date=datetime.now(UTC).date().isoformat(),
            gptviz=__version__,
            torch=torch.__version__,
        )
        self.log.flush()
        self._write_weights(self.folder / "model.safetensors")
        checkpoints.write_json(self.folder / "card.json", self.card.to_json())
        checkpoints.write_tensors(
            self.folder / "state.safetensors", self.trainer.state() | self.log.state()
        )
        self.saved = time.monotonic()
