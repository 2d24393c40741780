"""What pages compute, cached by names and settings, never by a model or a tensor; every cache is bounded."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import streamlit as st

from gptviz.language_model import LanguageModel, load
from gptviz.runs import checkpoints

# Of models as they were on the way through training so many are kept, and so many bytes of weights: enough to scrub
# through a small model without reading a file twice, and one alone of a model that is larger than that.
MOST_SNAPSHOTS, MOST_BYTES = 128, 256 * 2**20


@dataclass(frozen=True)
class ModelKey:
    """Which model: its name, the device, and when its files were written, so that a model trained anew is read anew.

    Attributes:
        step: the step of training it is shown at, one of its snapshots; None for the model as it was saved last.
        tokenizer: when its tokenizer was written, which all snapshots share.
    """

    name: str
    device: str
    written: float
    step: int | None = None
    tokenizer: float = 0.0


def model_key(name: str, device: str, step: int | None = None) -> ModelKey:
    """The key of the model called `name`, after `step` steps or as it was saved last.

    Raises:
        CheckpointError: there is none; or there is no snapshot of that step.
    """
    folder = checkpoints.find(name)
    if step is None:
        weights = folder / "model.safetensors"
    elif (weights := checkpoints.snapshot_path(folder, step)) not in checkpoints.snapshots(folder).values():
        raise checkpoints.CheckpointError(f"{name} has no snapshot of step {step}")
    # Not the log: that of a run in progress is written all the time.
    tokenizer, config, card = (_written(folder / file) for file in ("tokenizer.json", "config.json", "card.json"))
    written = [_written(weights), tokenizer, config, card if step is None else 0.0]
    return ModelKey(name, device, max(written), step, tokenizer)


def _written(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def language_model(key: ModelKey) -> LanguageModel:
    """The model, opened once for all sessions. Treat it as read-only."""
    return _model(key) if key.step is None else _shelf().take(key)


@st.cache_resource(max_entries=3, show_spinner="Opening the model")
def _model(key: ModelKey) -> LanguageModel:
    return load(key.name, key.device)


class Shelf:
    """The snapshots looked at last, the newest last; those looked at longest ago go when there is no more room."""

    def __init__(self, most: int = MOST_SNAPSHOTS, most_bytes: int = MOST_BYTES) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.models: OrderedDict[ModelKey, LanguageModel] = OrderedDict()
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """How many bytes the weights take."""
        return sum(_size(lm) for lm in self.models.values())

    def take(self, key: ModelKey) -> LanguageModel:
        """The snapshot, read where it is not here.

        Raises:
            CheckpointError: it cannot be read.
        """
        with self._lock:
            if key in self.models:
                self.models.move_to_end(key)
                return self.models[key]
        read = load(key.name, key.device, key.step)
        with self._lock:
            self.models[key] = read
            while len(self.models) > 1 and (len(self.models) > self.most or self.bytes > self.most_bytes):
                self.models.popitem(last=False)
        return read


def _size(lm: LanguageModel) -> int:
    return sum(parameter.numel() * parameter.element_size() for parameter in lm.model.parameters())


@st.cache_resource(show_spinner=False, max_entries=1)
def _shelf() -> Shelf:
    return Shelf()


def load_call(lm: LanguageModel) -> str:
    """The call that opens this model, as the code behind a figure shows it."""
    return f"gptviz.load({lm.name!r})" if lm.step is None else f"gptviz.load({lm.name!r}, step={lm.step})"
