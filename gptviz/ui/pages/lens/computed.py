"""The computations of the page Logit lens, each once for all sessions."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gptviz.components import lens_grid
from gptviz.components.kit.command import ViewCommand
from gptviz.components.lens_grid import LensCell
from gptviz.interp.reading import lens as interp
from gptviz.interp.reading.lens import Course, Lens, settled
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.views.contrasts import ContrastQuestion
from gptviz.ui.views.read import Read
from gptviz.ui.views.vocabulary import labels
from gptviz.ui.widgets import jobs

# Of a longer text the end is shown: the columns of more tokens would be narrower than a pixel on many screens.
MOST_POSITIONS = 256


@dataclass(frozen=True)
class LensRows(Read):
    """The text that the model reads, and the layers after which its head is applied.

    Attributes:
        blocks_only: whether the layers within a block are left out.
    """

    blocks_only: bool = False


# Shared by all sessions: read-only. An entry has the stream at the positions shown: 36 MB for 61 layers of 576 numbers.
@jobs.resource("Reading every layer", max_entries=4)
def seen_by(key: ModelKey, read: LensRows) -> Lens:
    """The guesses of the model after every layer, or after every block."""
    return interp.lens(
        language_model(key).model,
        read.ids,
        read.source,
        following=read.following,
        last=MOST_POSITIONS,
        blocks_only=read.blocks_only,
    )


@st.cache_data(max_entries=64, show_spinner=False)
def course_of(key: ModelKey, read: LensRows, cell: LensCell) -> Course:
    lm = language_model(key)
    return interp.course(lm.model, seen_by(key, read), cell.layer, cell.index, labels(key))


@st.cache_resource(max_entries=8, show_spinner=False)
def payload_of(key: ModelKey, read: LensRows, of: str, code: str, command: ViewCommand) -> bytes:
    lm = language_model(key)
    name = key.title if key.step is None else f"{key.title}, step {key.step}"
    return lens_grid.payload(
        seen_by(key, read),
        lm.tokenizer.label,
        of=of,
        model=name,
        vocab_size=lm.model.config.vocab_size,
        code=code,
        spaced=lm.tokenizer.is_spaced,
        command=command,
    )


@st.cache_data(max_entries=64, show_spinner=False)
def leads_of(key: ModelKey, question: ContrastQuestion) -> tuple[int, float, int]:
    """From which layer on the right answer leads for good after the prompt of a question, its probability there, and the token
    that leads one layer before; -1 where there is none.
    """
    seen = interp.lens(language_model(key).model, question.ids, last=1)
    layer = int(settled(seen)[-1])
    return layer, float(seen.probability[layer, -1, 0]), int(seen.top[layer - 1, -1, 0]) if layer else -1
