"""The log of a run, log.jsonl: steps (fewer and fewer as they get more), evaluations and samples, one JSON object a line."""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gptviz.train.trainer import Evaluated, Stepped

from . import checkpoints
from .checkpoints import CheckpointError

LINES_PER_DOUBLING = 128
LONGEST_LOG = 64 * 2**20  # bytes
FLUSH_EVERY = 0.5  # seconds


class LogWriter:
    """Writes log.jsonl: a line per step up to 256, then per second step up to 512, and so on, for every length of run.

    Args:
        path: the file. What it holds beyond `step` is removed: a crash may leave lines that the saved state does not know.
        step: the step at which training begins or is resumed.
        state: what `state()` gave when the run was saved, empty for a new run.

    Attributes:
        recent_loss: the training loss, averaged with weights that fall by 2 % per step; NaN before the first step.
    """

    def __init__(self, path: Path, step: int, state: dict[str, Tensor]) -> None:
        self.path = path
        self.losses = state.get("log.losses", torch.zeros(0)).flatten().tolist()  # since the last line
        self.recent_loss = float(state.get("log.recent", torch.tensor(math.nan)).flatten().sum())
        kept = [line for line in read_log(path) if line["step"] <= step]
        checkpoints.write_text(path, "".join(json.dumps(line) + "\n" for line in kept))
        self.lines, self.flushed = list[str](), time.monotonic()

    def state(self) -> dict[str, Tensor]:
        """What the lines to come depend on."""
        return {
            "log.losses": torch.tensor(self.losses, dtype=torch.float64),
            "log.recent": torch.tensor(self.recent_loss, dtype=torch.float64),
        }

    def stepped(self, event: Stepped) -> None:
        """Note a step; the loss written is the mean since the last line."""
        self.losses.append(event.loss)
        first = math.isnan(self.recent_loss)
        self.recent_loss = event.loss if first else 0.98 * self.recent_loss + 0.02 * event.loss
        every = 2 ** max(0, (event.step // LINES_PER_DOUBLING).bit_length() - 1)
        if event.step % every == 0 or event.progress >= 1:
            self._write(
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
        self._write(kind="evaluation", step=event.step, loss=event.loss, accuracy=accuracy, seconds=event.seconds, **more)

    def sampled(self, step: int, text: str) -> None:
        """Note a sample of what the model writes after `step` steps."""
        self._write(kind="sample", step=step, text=text)

    def _write(self, **line: Any) -> None:
        """Add a line; it reaches the disk with the first line written `FLUSH_EVERY` seconds after the last flush."""
        self.lines.append(json.dumps(line))
        if time.monotonic() - self.flushed > FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        """Bring all lines to the disk.

        Raises:
            CheckpointError: the disk will not take them.
        """
        self.flushed = time.monotonic()
        if self.lines:
            try:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write("".join(line + "\n" for line in self.lines))
            except OSError as error:
                raise CheckpointError(f"cannot write {self.path} ({error}): make room on the disk, then resume") from None
            self.lines.clear()


def read_log(path: Path, at_most: int = LONGEST_LOG) -> list[dict[str, Any]]:
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
