"""Runs: a model being trained is a checkpoint that grows in its folder, so that every page can open it on the way.

Beside the files of a checkpoint a run has

log.jsonl           one line per step (thinned out as there get more), evaluation and sample
state.safetensors   all that the next step depends on; gone once the run is finished
status.json         what is becoming of it
wish                what somebody wants of it: "pause" or "stop"

Every file is replaced as a whole, so that a crash or a full disk leaves the last good one.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from gptviz._version import __version__
from gptviz.data.source import Source, TextSource, source_from
from gptviz.model import Config, Transformer, build
from gptviz.text import Tokenizer
from gptviz.train import estimate
from gptviz.train.distributed import World
from gptviz.train.engine import Engine, choose, compiler_missing
from gptviz.train.recipe import Recipe
from gptviz.train.trainer import Diverged, Evaluated, Event, Stepped, Trainer

from . import checkpoints
from .checkpoints import CheckpointError, NotNumbersError

State = Literal["ready", "waiting", "running", "paused", "stopped", "finished", "failed", "interrupted"]
STORES = {"float32": torch.float32, "float16": torch.float16}
SAVE_EVERY = 60.0  # seconds
LOGGED_PER_DOUBLING = 128


class RunError(ValueError):
    """A run that cannot be made or go on; the message names it and what to do."""


@dataclass(frozen=True)
class Status:
    """What is becoming of a run. `message` says what went wrong, or what is being done."""

    state: State
    message: str = ""


@dataclass(frozen=True)
class Run:
    """A run as written down in its folder."""

    folder: Path
    recipe: Recipe
    source: dict[str, Any]
    card: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def engine(self) -> Engine | None:
        """What it computes with, once that is chosen."""
        return Engine.from_dict(self.card["engine"]) if self.card.get("engine") else None


def prepare(
    name: str,
    config: Config,
    tokenizer: Tokenizer,
    source: Source,
    recipe: Recipe,
    *,
    about: dict[str, Any] | None = None,
    begin: Transformer | None = None,
    store: Literal["float32", "float16"] = "float32",
    root: Path | None = None,
    replace: bool = False,
    device: torch.device | str = "cpu",
) -> Path:
    """Write down a run called `name` that has not begun, and return its folder; `carry_on` trains it.

    Args:
        about: more for the card: the preset, the command.
        begin: the weights to begin with; without it they are drawn from the recipe's seed.
        store: the type its weights are kept in on the way.
        root: the folder that takes the run's folder; default: the user's own models.
        replace: throw away the model that has the name already.
        device: where it will be trained.

    Raises:
        CheckpointError: a name it cannot have, or a disk that will not take it.
        RunError: the name is taken, or the tokenizer is not the model's.
        ValueError: the data does not suit the model.
    """
    target = checkpoints.destination(name, root)
    if target.exists() and not replace:
        raise RunError(f"there is a model named {name} already: choose another name, delete that model first, or replace it")
    if target.exists() and status(target).state == "running":
        raise RunError(f"the model {name} is being trained: stop that run first, or choose another name")
    if config.vocab_size != tokenizer.vocab_size:
        raise RunError(f"vocab_size is {config.vocab_size:,}; the tokenizer has {tokenizer.vocab_size:,} tokens: leave it out")
    source.data(tokenizer, config)
    needed = estimate.estimate(config, recipe, estimate.UNMEASURED, tokens=source.tokens(config))
    if problem := estimate.refusal(needed, estimate.available(device)):
        raise RunError(problem)
    try:
        source.keep()
    except OSError as error:
        raise CheckpointError(f"cannot keep a copy of the text to train on ({error}): make room on the disk") from None
    model = build(config, seed=recipe.seed) if begin is None else begin
    card = {
        **(about or {}),
        **source.origin(),
        "recipe": recipe.to_dict(),
        "source": source.to_dict(),
        "store": store,
        "engine": None,
        "steps": 0,
        "seconds": 0.0,
        "validation_loss": None,
        "losses": [],
    }
    folder = checkpoints.save(name, model, tokenizer, card, root=root)
    say(folder, "ready")
    return folder


def read(folder: Path) -> Run:
    """The run in `folder`.

    Raises:
        RunError: the checkpoint there is no run that could go on.
        CheckpointError: it cannot be read.
    """
    card = checkpoints.read_card(folder)
    try:
        run = Run(folder, Recipe.from_dict(card["recipe"]), dict(card["source"]), _mended(card))
        _ = run.engine
        return run
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder.name} does not say how it was trained ({error}): it cannot be trained on") from None


def _mended(card: dict[str, Any]) -> dict[str, Any]:
    """The card, what a run goes on from in it as it should be.

    Raises:
        ValueError: weights are stored in no type there is.
    """
    if card.get("store", "float32") not in STORES:
        raise ValueError(f"its weights are stored as {card['store']!r:.80}, not as {' or '.join(STORES)}")
    losses, seconds = card.get("losses"), card.get("wall_seconds")
    entries = [entry for entry in losses if isinstance(entry, dict)] if isinstance(losses, list) else []
    return card | {
        "losses": [entry for entry in entries if isinstance(entry.get("step"), int)],
        "wall_seconds": float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e12 else 0.0,
    }


def status(folder: Path) -> Status:
    """What is becoming of the run in `folder`; "interrupted" where its process ended without a word."""
    try:
        content = json.loads((folder / "status.json").read_text(encoding="utf-8"))
        told = Status(content["state"], str(content.get("message", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Status("finished")
    if told.state not in get_args(State):
        return Status("finished")
    if told.state == "running" and not _is_held(folder):
        return Status("interrupted", "its process ended; it can be resumed from the last state saved")
    return told


def wish(folder: Path, what: Literal["pause", "stop"]) -> None:
    """Ask the process that trains the run in `folder` to pause (keep its state and end) or to stop (evaluate too)."""
    (folder / "wish").write_text(what, encoding="utf-8")


def _wished(folder: Path) -> str | None:
    path = folder / "wish"
    if not path.exists():
        return None
    with suppress(OSError):
        return path.read_text(encoding="utf-8").strip() or None
    return None


def say_waiting(folder: Path) -> None:
    """Mark the run in `folder` as waiting for its turn."""
    (folder / "wish").unlink(missing_ok=True)
    say(folder, "waiting")


def say_failed(folder: Path, message: str) -> None:
    """Mark the run in `folder` as failed."""
    say(folder, "failed", message)


def say(folder: Path, state: State, message: str = "") -> None:
    """Write down what is becoming of the run in `folder`."""
    checkpoints.write_json(folder / "status.json", {"state": state, "message": message})


def _is_held(folder: Path) -> bool:
    try:
        with FileLock(folder / ".lock", timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


@contextmanager
def _held(folder: Path, world: World) -> Iterator[None]:
    """Nobody else trains the run in `folder` meanwhile. The lock goes with the process, however that ends."""
    if not world.first:
        yield
        return
    try:
        # Whoever asks for the status holds the lock for a moment.
        with FileLock(folder / ".lock", timeout=1):
            yield
    except Timeout:
        raise RunError(f"{folder.name} is being trained by another process: wait for it, or stop it") from None


def carry_on(
    folder: Path,
    *,
    device: torch.device | str = "cpu",
    world: World | None = None,
    wished: Callable[[], str | None] = lambda: None,
) -> Iterator[Engine | Event | str]:
    """Train the run in `folder` from where it is, keeping it on the way: its engine, then every event, and samples as text.

    `wished` says "pause" or "stop" to end early, as the file `wish` does. What was done until then is kept, exactly: going
    on later gives what never stopping would have given.

    Raises:
        RunError: it is being trained already, is finished, or cannot be read.
        CheckpointError: the disk takes no more; the last good files are there.
        Diverged: the loss is not a number any more.
    """
    world = World() if world is None else world
    _check_unfinished(folder)
    with _held(folder, world):
        try:
            yield from _Carrying(folder, torch.device(device), world, wished)
        except (Diverged, CheckpointError, ValueError, OSError, RuntimeError) as error:
            with suppress(CheckpointError):
                if world.first:
                    say(folder, "failed", str(error))
            raise


def _check_unfinished(folder: Path) -> None:
    if read(folder).card.get("steps") and not (folder / "state.safetensors").exists():
        raise RunError(f"{folder.name} is finished: begin a new run with its weights instead (--from {folder.name})")


class _Carrying:
    """One process's work on a run."""

    def __init__(self, folder: Path, device: torch.device, world: World, wished: Callable[[], str | None]) -> None:
        self.folder, self.device, self.world, self.wished = folder, device, world, wished
        self.run = read(folder)
        checkpoint = checkpoints.load(folder, device)
        self.model, self.tokenizer, self.card = checkpoint.model, checkpoint.tokenizer, dict(self.run.card)
        self.source = source_from(self.run.source)
        self.data = self.source.data(self.tokenizer, self.model.config)
        self.dtype = STORES[self.card.get("store", "float32")]

    def __iter__(self) -> Iterator[Engine | Event | str]:
        if self.world.first:
            (self.folder / "wish").unlink(missing_ok=True)
            say(self.folder, "running", "choosing the fastest way to compute")
        engine = self._engine()
        yield engine
        forward, bfloat16 = engine.forward(self.model), engine.bfloat16
        trainer = Trainer(self.model, self.data, self.run.recipe, forward=forward, bfloat16=bfloat16, world=self.world)
        state = self._restore(trainer)
        if self.world.first:
            self.log = _Log(self.folder / "log.jsonl", trainer.step, state)
        self.begun, self.wall = time.monotonic(), float(self.card.get("wall_seconds", 0.0))
        if self.world.first:
            say(self.folder, "running")
            if trainer.step == 0:
                self._snapshot(trainer)
        ended: State = "finished"
        saved = time.monotonic()
        for event in trainer:
            yield event
            if isinstance(event, Evaluated):
                yield self._evaluated(event)
                self._save(trainer)
                saved = time.monotonic()
                continue
            if self.world.first:
                self.log.stepped(event)
                if self.run.recipe.keeps(event.step) or event.progress >= 1:
                    self._snapshot(trainer)
                if time.monotonic() - saved > SAVE_EVERY:
                    self._save(trainer)
                    saved = time.monotonic()
            if event.progress < 1 and (wish := self._wish()):
                ended = "paused" if wish == "pause" else "stopped"
                break
        if self.world.first:
            yield from self._end(trainer, ended)

    def _wish(self) -> str | None:
        wish = (self.wished() or _wished(self.folder)) if self.world.first else None
        code = self.world.told({None: 0.0, "pause": 1.0}.get(wish, 2.0), self.device)
        return None if code == 0 else "pause" if code == 1 else "stop"

    def _engine(self) -> Engine:
        """The engine written down, for a run that goes on is to compute as before; else the one chosen now."""
        engine = self.run.engine
        if engine is None and self.world.first:
            engine = choose(self.model, self.data, self.run.recipe)
            self.card["engine"] = engine.to_dict()
            checkpoints.write_json(self.folder / "card.json", self.card)
        known = engine or Engine()
        if known.compiled and (missing := compiler_missing()):  # the run comes from another machine
            known = Engine(known.bfloat16, False, f"not compiled as before: {missing}")
        bfloat16 = bool(self.world.told(float(known.bfloat16), self.device))
        compiled = bool(self.world.told(float(known.compiled), self.device))
        return Engine(bfloat16, compiled, known.why, known.seconds_per_step)

    def _restore(self, trainer: Trainer) -> dict[str, Tensor]:
        """Bring back the state saved, if there is one, and take back what was kept after it."""
        path = self.folder / "state.safetensors"
        try:
            state = load_file(path)
            trainer.restore(state)
        except FileNotFoundError:
            return {}
        except (OSError, SafetensorError, ValueError) as error:
            raise RunError(f"{self.folder.name}/{path.name} is damaged ({error}): begin the run anew") from None
        self.card["losses"] = [entry for entry in self.card["losses"] if entry["step"] <= trainer.step]
        for step, file in checkpoints.snapshots(self.folder).items():
            if step > trainer.step and self.world.first:
                file.unlink(missing_ok=True)
        return state

    def _end(self, trainer: Trainer, ended: State) -> Iterator[Event | str]:
        if ended == "stopped":
            for event in trainer.evaluate():
                yield event
                yield self._evaluated(event)
            self._snapshot(trainer)
        self._save(trainer)
        (self.folder / "wish").unlink(missing_ok=True)
        say(self.folder, ended)
        if ended == "finished":
            (self.folder / "state.safetensors").unlink(missing_ok=True)

    def _evaluated(self, event: Evaluated) -> str:
        """Write down an evaluation, and a sample of what the model now writes, which is returned."""
        self.model.eval()
        measured = self.source.measured(self.model, self.tokenizer, self.data)
        self.log.evaluated(event, by_place=self.source.has_places, **_numbers(measured))
        self._note(event, measured)
        sample = self.source.sample(self.model, self.tokenizer, self.data)
        self.log.write(kind="sample", step=event.step, text=sample)
        return sample

    def _note(self, event: Evaluated, measured: dict[str, Any]) -> None:
        """Put an evaluation on the card, and what was measured beside it."""
        losses = [entry for entry in self.card["losses"] if entry["step"] < event.step]
        entry: dict[str, Any] = {"step": event.step, "seconds": round(event.seconds, 1)}
        if not math.isnan(self.log.recent):
            entry["training"] = round(self.log.recent, 4)
        entry["validation"] = event.loss
        if not isinstance(self.source, TextSource):
            self.card["accuracy"] = entry["accuracy"] = event.evaluation.accuracy
        if self.source.has_places:
            self.card["accuracy_by_place"] = event.evaluation.by_place()
        self.card["losses"] = [*losses, entry | _numbers(measured)]
        self.card |= measured | {"validation_loss": event.loss}

    def _snapshot(self, trainer: Trainer) -> None:
        if self.run.recipe.snapshots:
            self._write_weights(checkpoints.snapshot_path(self.folder, trainer.step))

    def _write_weights(self, path: Path) -> None:
        try:
            checkpoints.write_weights(path, self.model, self.dtype)
        except NotNumbersError as error:
            raise Diverged(f"{error}: lower the learning rate ({self.run.recipe.learning_rate:g})") from None

    def _save(self, trainer: Trainer) -> None:
        """Keep the run as it is now. The state comes last: whatever a crash leaves ahead of it is taken anew."""
        self.card |= {
            "steps": trainer.step,
            "seconds": round(trainer.seconds, 1),
            "wall_seconds": round(self.wall + time.monotonic() - self.begun, 1),
            "processes": self.world.size,
            "threads": torch.get_num_threads(),
            "device": str(self.device),
            "date": datetime.now(UTC).date().isoformat(),
            "gptviz": __version__,
            "torch": torch.__version__,
        }
        self.log.flush()
        self._write_weights(self.folder / "model.safetensors")
        checkpoints.write_json(self.folder / "card.json", self.card)
        checkpoints.write_tensors(self.folder / "state.safetensors", trainer.state() | self.log.state())


def _numbers(measured: dict[str, Any]) -> dict[str, float]:
    """What a curve can be drawn of."""
    return {name: value for name, value in measured.items() if isinstance(value, float)}


class _Log:
    """log.jsonl: a line per step up to 256, then per second step up to 512, and so on: the same for every length of run."""

    def __init__(self, path: Path, step: int, state: dict[str, Tensor]) -> None:
        self.path = path
        self.losses = state.get("log.losses", torch.zeros(0)).flatten().tolist()
        self.recent = float(state.get("log.recent", torch.tensor(math.nan)).flatten().sum())
        kept = [line for line in read_log(path) if line["step"] <= step]
        # What a crash left behind the state saved is taken anew; what is kept replaces the file as a whole.
        checkpoints.write_text(path, "".join(json.dumps(line) + "\n" for line in kept))
        self.lines, self.flushed = list[str](), time.monotonic()

    def state(self) -> dict[str, Tensor]:
        """What the lines to come depend on."""
        exactly = torch.float64
        return {
            "log.losses": torch.tensor(self.losses, dtype=exactly),
            "log.recent": torch.tensor(self.recent, dtype=exactly),
        }

    def stepped(self, event: Stepped) -> None:
        """Note a step; the loss written is the mean since the last line."""
        self.losses.append(event.loss)
        self.recent = event.loss if math.isnan(self.recent) else 0.98 * self.recent + 0.02 * event.loss
        every = 2 ** max(0, (event.step // LOGGED_PER_DOUBLING).bit_length() - 1)
        if event.step % every == 0 or event.progress >= 1:
            self.write(
                kind="step",
                step=event.step,
                progress=round(event.progress, 6),
                loss=float(f"{sum(self.losses) / len(self.losses):.6g}"),
                learning_rate=float(f"{event.learning_rate:.4g}"),
                gradient_norm=float(f"{event.gradient_norm:.4g}"),
                tokens_per_second=round(event.tokens_per_second),
                seconds=round(event.seconds, 3),
                seconds_left=round(event.seconds_left, 1),
            )
            self.losses.clear()

    def evaluated(self, event: Evaluated, *, by_place: bool, **measured: float) -> None:
        """Note an evaluation, and what was measured beside it."""
        more = measured | ({"by_place": event.evaluation.by_place()} if by_place else {})
        accuracy = event.evaluation.accuracy
        self.write(kind="evaluation", step=event.step, loss=event.loss, accuracy=accuracy, seconds=event.seconds, **more)

    def write(self, **line: Any) -> None:
        """Add a line; it reaches the disk within half a second."""
        self.lines.append(json.dumps(line))
        if time.monotonic() - self.flushed > 0.5:
            self.flush()

    def flush(self) -> None:
        """Bring all lines to the disk."""
        self.flushed = time.monotonic()
        if self.lines:
            try:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write("".join(line + "\n" for line in self.lines))
            except OSError as error:
                raise CheckpointError(f"cannot write {self.path} ({error}): make room on the disk, then resume") from None
            self.lines.clear()


def read_log(path: Path, at_most: int = 64 * 2**20) -> list[dict[str, Any]]:
    """The lines of a log that are whole; of a log longer than `at_most` bytes, those of its beginning."""
    try:
        with path.open("rb") as file:
            data = file.read(at_most)
    except OSError:
        return []
    lines = []
    for line in data.splitlines():
        with suppress(ValueError, RecursionError):
            content = json.loads(line)
            if isinstance(content, dict) and isinstance(content.get("step"), int):
                lines.append(content)
    return lines


def free_name(name: str) -> str:
    """`name`, or the first of `name-2`, `name-3`, … that no model of the user's has."""
    taken = {folder.name for folder in (checkpoints.home() / "checkpoints").glob("*")}
    if name not in taken:
        return name
    return next(f"{name[:56]}-{n}" for n in range(2, len(taken) + 3) if f"{name[:56]}-{n}" not in taken)


def room(folder: Path) -> int:
    """Bytes free on the disk that holds `folder`, or that will."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
