"""The models that are open, each loaded once for all sessions and named by a key that caches can
hash; and a page's subject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Condition
from typing import TYPE_CHECKING, Any

import streamlit as st
from cachetools import cached

from gptviz.figures.kit.format import format_count
from gptviz.machine.byte_cache import byte_cache
from gptviz.machine.files import file_stamp
from gptviz.machine.memory import gives_way, release_memory
from gptviz.model.devices import STORED
from gptviz.runs import checkpoints
from gptviz.ui.widgets import jobs

from ..around import cores
from .prompts import LINES

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel
    from gptviz.model.kinds import ModelKind
    from gptviz.text import Encoding

# Bounds of the cache of snapshots: enough to scrub through a small model without reading a file
# twice. Of a larger model only one snapshot is kept.
MOST_SNAPSHOTS = 128
MOST_BYTES = 256 * 2**20
# The number of models that stay open: a class looks at many small ones at a time. A small model's
# file has at most `SMALL` bytes.
SMALL = 16 * 2**20
MOST_SMALL = 32
MOST_LARGE = 3


@dataclass(frozen=True)
class ModelKey:
    """Which model, at which step of its training, on which device."""

    name: str
    device: str
    #: when its files were written, so that a model that was trained again is read again
    written: int
    #: the step of training it is shown at, one of its snapshots; None for the model as it was saved
    #: last
    step: int | None = None
    tokenizer: int = 0  #: when its tokenizer was written, which all snapshots share
    precision: str = STORED  #: what it is computed in, one of `gptviz.model.precision.PRECISIONS`
    #: the units that are switched off or replaced in it, see `LanguageModel.edited`
    edits: tuple[str, ...] = ()
    edit_text: str | None = None  #: the reference text of these edits, or None if they need none

    @property
    def title(self) -> str:
        """Its name in pictures, with the number of its edits."""
        if self.edits:
            return f"{self.name}, {format_count(len(self.edits), 'edit')}"
        return self.name

    @property
    def unedited(self) -> ModelKey:
        """The same model without edits."""
        return replace(self, edits=(), edit_text=None)

    def without_edit(self, unit: str) -> ModelKey:
        """The same model without the edit of this unit."""
        others = tuple(text for text in self.edits if text.partition("=")[0] != unit)
        return replace(self, edits=others)


@dataclass(frozen=True)
class Subject:
    """The subject of a page: which model reads which text."""

    key: ModelKey  #: the model, for cached functions
    lm: LanguageModel  #: the model; read-only, other sessions share it
    #: the text the page is about: the prompt, or the default one where the prompt is empty
    prompt: str
    encoding: Encoding  #: its tokens, and the characters that the vocabulary lacks
    #: the ids the model reads, at most `context_length` of them, never empty: of a decoder the last
    #: ones, of a classifier the first; of an encoder–decoder what its encoder reads, with the end
    #: token
    seen: tuple[int, ...]
    #: the prompt that the page opens on: for a model that was not trained to continue a text, an
    #: example of its training data
    default: str = LINES
    #: the part of the prompt before `prompt`, if only its end is read: see `shortened`
    left_off: str = ""

    @property
    def kind(self) -> ModelKind:
        """The kind of the model."""
        return self.lm.kind

    @property
    def text(self) -> str:
        """The prompt for methods of `lm`: of one that is too long for an encoder–decoder, which
        they refuse, what is read.
        """
        # uncut there is an end token more
        is_cut = self.kind.has_source and len(self.encoding.ids) >= len(self.seen)
        if is_cut:
            return self.lm.tokenizer.decode(self.seen)
        return self.prompt

    @property
    def on_task(self) -> bool:
        """Whether the model was not trained to continue texts: an ordinary text then shows little
        of what it learned.
        """
        return self.default != LINES

    @property
    def is_imported(self) -> bool:
        """Whether other people trained the model, so that its data is not here."""
        return self.lm.card.imported_from is not None

    @property
    def labels(self) -> tuple[str, ...]:
        """The visible forms of the tokens seen."""
        return tuple(self.lm.tokenizer.label(i) for i in self.seen)


def model_key(name: str, device: str, step: int | None = None, precision: str = STORED) -> ModelKey:
    """The key of the model called `name`, after `step` steps or as it was saved last, without
    edits.

    Raises:
        CheckpointError: there is no such model, or no snapshot of that step.
    """
    folder = checkpoints.find(name)
    if step is not None and step not in checkpoints.snapshots(folder):
        raise checkpoints.CheckpointError(f"{name} has no snapshot of step {step}")
    # The log does not count: that of a run in progress is written all the time.
    weights = checkpoints.weight_files(folder, step)
    files = [
        folder / "tokenizer.json",
        folder / "config.json",
        *weights,
        *([folder / "card.json"] if step is None else []),
    ]
    times = [about[0] if (about := file_stamp(file)) else 0 for file in files]
    return ModelKey(name, device, max(times), step, times[0], precision)


def language_model(key: ModelKey) -> LanguageModel:
    """The model, opened once for all sessions, with the edits of the key. Treat it as read-only."""
    cores.share()
    if key.edits:
        return _open_edited(key)
    if key.step is not None:
        return _snapshots()(key)
    if _is_small(key):
        return _small_model(key)
    return _large_model(key)


# To quantise the weights of a large model takes seconds.
@jobs.resource("Putting the edits in place", max_entries=3)
def _open_edited(key: ModelKey) -> LanguageModel:
    # It shares the weights of the unedited model.
    return language_model(key.unedited).edited(*key.edits, text=key.edit_text)


@lru_cache(maxsize=512)
def _is_small(key: ModelKey) -> bool:
    try:
        return all(
            file.stat().st_size <= SMALL
            for file in checkpoints.weight_files(checkpoints.find(key.name))
        )
    except OSError:  # a model that is only referred to may be of any size
        return False


# Sessions that ask for the same model at the same time wait for the one that opens it.
@st.cache_resource(max_entries=MOST_SMALL, show_spinner="Opening the model")
def _small_model(key: ModelKey) -> LanguageModel:
    return _open_model(key)


@st.cache_resource(max_entries=MOST_LARGE, show_spinner="Opening the model")
def _large_model(key: ModelKey) -> LanguageModel:
    return _open_model(key)


def _open_model(key: ModelKey) -> LanguageModel:
    from gptviz.language_model import load

    # pages say themselves which model hides another
    lm = load(checkpoints.find(key.name), key.device, key.step, key.precision)
    release_memory()
    return lm


def _weight_bytes(lm: LanguageModel) -> int:
    from gptviz.model.precision import bytes_in_memory

    return bytes_in_memory(lm.model)


def snapshot_cache(most: int = MOST_SNAPSHOTS, most_bytes: int = MOST_BYTES) -> Any:
    """Opens snapshots of models, and keeps those used last, within bounds."""
    return cached(byte_cache(_weight_bytes, most_bytes, most), condition=Condition())(_open_model)


@st.cache_resource(show_spinner=False, max_entries=1)
def _snapshots() -> Callable[[ModelKey], LanguageModel]:
    return snapshot_cache()


def _give_way() -> None:
    """Let go of the models that are open and of what was computed with them: who still shows one
    keeps it until the page ends.
    """
    for kept in (_open_edited, _small_model, _large_model, _snapshots):
        kept.clear()
    st.cache_data.clear()


gives_way(_give_way)


def load_call(lm: LanguageModel) -> str:
    """The call that opens this model, with its edits, as the code below a figure shows it."""
    step = "" if lm.step is None else f", step={lm.step}"
    if lm.precision == STORED:
        precision = ""
    else:
        precision = f", precision={lm.precision!r}"
    opened = f"gptviz.load({lm.name!r}{step}{precision})"
    if not lm.edits:
        return opened
    text = "" if lm.edit_text is None else f", text={lm.edit_text!r}"
    return f"{opened}.edited({', '.join(map(repr, lm.edits))}{text})"


def opening(lm: LanguageModel, *imports: str) -> str:
    """The first lines of the code below a figure: the `imports`, and the model opened as `lm`."""
    return "\n".join(["import gptviz", *imports, "", f"lm = {load_call(lm)}"])
