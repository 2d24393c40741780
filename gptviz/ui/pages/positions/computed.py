"""The computations of the page Positions, done once for all sessions."""

from __future__ import annotations

import contextlib

import streamlit as st

from gptviz.interp.reading import positions
from gptviz.labelled_array import LabelledArray
from gptviz.model.parts.positions import POSITIONS
from gptviz.runs import checkpoints
from gptviz.ui.shell.subject import ModelKey, language_model, scrubber
from gptviz.ui.views.encoder_decoder import DECODER, stack_of


def has_own_stacks(kind: str) -> bool:
    """Whether each stack of an encoder–decoder has its own positions, of this kind."""
    return POSITIONS[kind].is_trained


@st.cache_data(max_entries=4, show_spinner=False)
def kinds(key: ModelKey, stack: str) -> tuple[str, tuple[str, ...]]:
    """The kind of positions that this stack of the model uses, and the kinds that it could use without training."""
    model = stack_of(language_model(key).model, stack)
    return positions.own_kind(model), positions.fixed_kinds(model.config)


@st.cache_data(max_entries=16, show_spinner=False)
def vectors(key: ModelKey, kind: str, block: int, stack: str = DECODER) -> LabelledArray:
    """See `gptviz.interp.reading.positions.vectors`."""
    return positions.vectors(stack_of(language_model(key).model, stack), kind, block)


@st.cache_data(max_entries=16, show_spinner=False)
def similarity(key: ModelKey, kind: str, block: int, stack: str = DECODER) -> tuple[LabelledArray, float]:
    """The cosine of any two rows of `vectors`, and its spread along diagonals."""
    square = positions.similarity(vectors(key, kind, block, stack))
    return square, positions.spread(square)


def limit(key: ModelKey, kind: str, block: int, stack: str = DECODER) -> float:
    """The end of the scale of a table, below zero and above: the same at every step of training."""
    if positions.is_fixed(kind):
        return 1.0
    return _limit(scrubber.as_saved_last(key), scrubber.steps(key.name), kind, block, stack)


@st.cache_data(max_entries=16, show_spinner="Reading the snapshots")
def _limit(key: ModelKey, every: tuple[int, ...], kind: str, block: int, stack: str) -> float:
    models = (stack_of(language_model(one).model, stack) for one in scrubber.compared_keys(key))
    return max(positions.bound(positions.vectors(model, kind, block)) for model in models)


@st.cache_data(max_entries=16, show_spinner=False)
def bias(key: ModelKey, kind: str, block: int, stack: str = DECODER) -> LabelledArray:
    """See `gptviz.interp.reading.positions.score_bias`."""
    return positions.score_bias(stack_of(language_model(key).model, stack), kind, block)


def numbers(key: ModelKey, kind: str, block: int, stack: str = DECODER) -> LabelledArray:
    """The numbers that the map of `kind` shows."""
    if not positions.has_vectors(kind):
        return bias(key, kind, block, stack)
    return similarity(key, kind, block, stack)[0]


@st.cache_data(max_entries=8, show_spinner=False, ttl=60)
def model_with(kind: str) -> str | None:
    """The model with positions of this kind that has the longest context, and so shows most; None if there is no such model."""
    contexts = {}
    for name, folder in checkpoints.folders().items():
        with contextlib.suppress(checkpoints.CheckpointError):
            if (config := checkpoints.read_config(folder)).positions == kind:
                contexts[name] = config.context_length
    return max(contexts, key=lambda name: contexts[name], default=None)
