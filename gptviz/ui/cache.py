"""What pages compute, cached by names and settings, never by a model or a tensor; every cache is bounded."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gptviz.language_model import LanguageModel, load
from gptviz.learn import checkpoints


@dataclass(frozen=True)
class ModelKey:
    """Which model: its name, the device, and when its files were written, so that a model trained anew is read anew."""

    name: str
    device: str
    written: float


def model_key(name: str, device: str) -> ModelKey:
    """The key of the model called `name`.

    Raises:
        CheckpointError: there is none.
    """
    folder = checkpoints.find(name)
    return ModelKey(name, device, max((file.stat().st_mtime for file in folder.glob("*.*")), default=0.0))


@st.cache_resource(max_entries=3, show_spinner="Opening the model")
def language_model(key: ModelKey) -> LanguageModel:
    """The model, opened once for all sessions. Treat it as read-only."""
    return load(key.name, key.device)
