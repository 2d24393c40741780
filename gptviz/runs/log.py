"""The log of a run, log.jsonl: steps (in a long run not every one), evaluations and samples, one
JSON object per line.
"""

from __future__ import annotations

import io
import json
import math
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gptviz.machine.bounded import n_values, parse_json, read_regular
from gptviz.machine.errors import reason_of
from gptviz.train.trainer import Evaluated

from . import checkpoints
from .card import count, finite_or_none, shares
from .checkpoints import CheckpointError

LINES_PER_DOUBLING = 128
LONGEST_LOG = 64 * 2**20  # bytes
MOST_VALUES = 4_000_000  # numbers and texts in all lines together
FLUSH_EVERY = 0.5  # seconds


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """A line of a log as read. A field that the line lacks, or whose value is not possible, is
    None.
    """

    #: "step", "evaluation", "sample" or "diverged"; a log of another origin may have other kinds
    kind: str
    step: int  #: how many steps had been taken
    progress: float | None = None  #: the share of the run that is done
    #: the mean training loss since the last line, or the validation loss; in nats per token (for a
    #: classifier: per text). Of the fit of a dictionary the share of the variance that is missed
    loss: float | None = None
    learning_rate: float | None = None  #: that of the step
    gradient_norm: float | None = None  #: that of the step, before clipping
    tokens_per_second: float | None = None  #: the speed of training
    seconds: float | None = None  #: the time that training had taken, in seconds
    seconds_left: float | None = None  #: the time that the rest of the run is expected to take
    active: float | None = None  #: in a fit, how many features are active at a token
    accuracy: float | None = None  #: the share of held-out predictions that were right
    exact_match: float | None = None  #: the share of held-out answers without a mistake
    #: the share of predictions that were right on rows that the model is trained on, without
    #: dropout
    training_accuracy: float | None = None
    #: the share of the held-out data that the evaluation read, or None if that was all of it
    share: float | None = None
    #: the accuracy by place in the row [T]; None for a place where no prediction counts
    by_place: tuple[float | None, ...] | None = None
    #: the sample that the model wrote; for a run that diverged, the sentence that says so
    text: str | None = None

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> LogLine:
        """The line stored as `content`, which has a step."""
        kind = content.get("kind")
        text = content.get("text")
        return cls(
            kind=kind if isinstance(kind, str) else "",
            step=content["step"],
            by_place=shares(content.get("by_place")),
            text=text if isinstance(text, str) else None,
            **{name: finite_or_none(content.get(name)) for name in NUMBERS},
        )


NUMBERS = tuple(field.name for field in fields(LogLine) if field.type == "float | None")


class LogWriter:
    """Writes log.jsonl: a line for every step up to 256, then for every second step up to 512, and
    so on.

    Args:
        path: the file. Lines written after the run was saved are removed: their steps are taken
            again.
        step: the step from which training begins or is resumed.
        state: the tensors that `state()` returned when the run was saved; empty for a new run, and
            for one whose process ended before anything was saved.
    """

    def __init__(self, path: Path, step: int, state: dict[str, Tensor]) -> None:
        self.path = path
        # since the last line
        self.losses = state.get("log.losses", torch.zeros(0)).flatten().tolist()
        #: the training loss, averaged with weights that fall by 2 % per step; NaN before the first
        #: step
        self.recent_loss = float(state.get("log.recent", torch.tensor(math.nan)).flatten().sum())
        # Older states do not count the lines; those of later steps are newer than such a state.
        kept = int(
            state.get("log.lines", torch.tensor(LONGEST_LOG if state else 0))
            .double()
            .nan_to_num()
            .sum()
        )
        lines = [line for line in _read_objects(path, LONGEST_LOG)[:kept] if line["step"] <= step]
        checkpoints.write_text(path, "".join(json.dumps(line) + "\n" for line in lines))
        self.lines = list[str]()
        self.written = len(lines)
        self.flushed = time.monotonic()

    def state(self) -> dict[str, Tensor]:
        """The tensors that later lines depend on, and how many lines there are."""
        return {
            "log.lines": torch.tensor(self.written),
            "log.losses": torch.tensor(self.losses, dtype=torch.float64),
            "log.recent": torch.tensor(self.recent_loss, dtype=torch.float64),
        }

    def record_step(self, step: int, progress: float, loss: float, **numbers: float) -> None:
        """Record a step, with other numbers of it; the loss of a line is the mean since the line
        before.
        """
        self.losses.append(loss)
        if math.isnan(self.recent_loss):
            self.recent_loss = loss
        else:
            self.recent_loss = 0.98 * self.recent_loss + 0.02 * loss
        every = 2 ** max(0, (step // LINES_PER_DOUBLING).bit_length() - 1)
        if step % every == 0 or progress >= 1:
            self.record(
                "step",
                step,
                progress=round(progress, 6),
                loss=float(f"{sum(self.losses) / len(self.losses):.6g}"),
                **numbers,
            )
            self.losses.clear()

    def record_evaluation(self, event: Evaluated, *, by_place: bool, **measured: float) -> None:
        """Record an evaluation of a model, and the other measurements."""
        more = measured | ({"by_place": event.evaluation.by_place()} if by_place else {})
        accuracy = event.evaluation.accuracy
        self.record(
            "evaluation",
            event.step,
            loss=event.loss,
            accuracy=accuracy,
            seconds=event.seconds,
            **more,
        )

    def record_sample(self, step: int, text: str) -> None:
        """Record a sample of the text that the model writes after `step` steps."""
        self.record("sample", step, text=text)

    def record_divergence(self, step: int, text: str) -> None:
        """Record that the run has diverged after `step` steps; `text` says so."""
        self.record("diverged", step, text=text)

    def record(self, kind: str, step: int, **line: Any) -> None:
        """Record a line of this kind after `step` steps. Lines are written to the disk with the
        first one that comes `FLUSH_EVERY` seconds after the last flush.
        """
        self.lines.append(json.dumps({"kind": kind, "step": step, **line}))
        self.written += 1
        if time.monotonic() - self.flushed > FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        """Write all lines to the disk; a CheckpointError if it is full or not writable."""
        self.flushed = time.monotonic()
        if self.lines:
            try:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write("".join(line + "\n" for line in self.lines))
            except OSError as error:
                raise CheckpointError(
                    f"cannot write {self.path} ({reason_of(error)}): make room on the disk, then "
                    "resume"
                ) from None
            self.lines.clear()


def read_log(path: Path, at_most: int = LONGEST_LOG) -> list[LogLine]:
    """The complete lines of a log; only the first ones if it has more than `at_most` bytes or
    `MOST_VALUES` values.
    """
    return [LogLine.from_json(content) for content in _read_objects(path, at_most)]


def curve_points(lines: Iterable[LogLine], kind: str, quantity: str) -> list[tuple[int, float]]:
    """The step and the `quantity` of every line of this `kind` that has one, in order; of a step
    taken twice the last counts.
    """
    values = {
        line.step: value
        for line in lines
        if line.kind == kind and (value := getattr(line, quantity)) is not None
    }
    return sorted(values.items())


def _read_objects(path: Path, at_most: int) -> list[dict[str, Any]]:
    """The lines as they are stored: JSON objects with a step."""
    try:
        data = read_regular(path, at_most, cut=True)
    except OSError:
        return []
    lines = []
    left = MOST_VALUES
    for line in io.BytesIO(data):
        # a line is a table, which itself takes about as much memory as 8 values
        left -= 8 + n_values(line)
        if left < 0:
            break
        with suppress(ValueError):
            content = parse_json(line, MOST_VALUES)
            if isinstance(content, dict) and count(content.get("step")) is not None:
                lines.append(content)
    return lines
