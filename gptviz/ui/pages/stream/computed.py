"""The computations of the page Residual stream, done once for all sessions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.interp.reading import embeddings
from gptviz.interp.reading import stream as interp
from gptviz.interp.reading.embeddings import Projection, Vectors
from gptviz.interp.reading.stream import StreamSummary
from gptviz.labelled_array import LabelledArray
from gptviz.ui.shell.subject import ModelKey, language_model
from gptviz.ui.views.projections import Placing, begun
from gptviz.ui.views.read import Read
from gptviz.ui.widgets import jobs

DIRECTION, AS_IS = "direction alone", "as they are"
ALL = "all"
# Of a longer text the end is shown.
MOST_POSITIONS = 256


@dataclass(frozen=True)
class MapChoice:
    """The values of the controls of the map.

    Attributes:
        layer: the index of the layer.
        method: one of `METHODS`.
        unit: whether all vectors are brought to length 1.
        seed: of t-SNE and UMAP.
        compared: whether the pictures of several seeds are shown.
    """

    layer: int
    method: str
    unit: bool
    seed: int
    compared: bool


# Shared by all sessions: read-only. An entry has the stream at the positions shown, and what was written: 72 MB for 61 layers of
# 576 numbers.
@jobs.resource("Reading every layer", max_entries=3)
def stream_summary(key: ModelKey, read: Read) -> StreamSummary:
    """The stream of a text."""
    return interp.stream(language_model(key).model, read.ids, read.source, last=MOST_POSITIONS)


def labels(key: ModelKey, read: Read) -> tuple[str, ...]:
    """The visible forms of the tokens at the positions shown."""
    label = language_model(key).tokenizer.label
    return tuple(label(read.ids[i]) for i in stream_summary(key, read).positions)


@st.cache_data(max_entries=16, show_spinner=False)
def shares_of(key: ModelKey, read: Read) -> LabelledArray:
    return interp.shares(stream_summary(key, read), labels(key, read))


def median_of(table: LabelledArray, axis: int) -> npt.NDArray[np.float64]:
    return np.asarray(np.median(np.asarray(table.values, np.float64), axis=axis))


@st.cache_data(max_entries=16, show_spinner=False)
def lengths_of(key: ModelKey, read: Read) -> LabelledArray:
    return interp.lengths(stream_summary(key, read), labels(key, read))


@st.cache_data(max_entries=32, show_spinner=False)
def cosines_of(key: ModelKey, read: Read, index: int | None) -> LabelledArray:
    return interp.cosines(stream_summary(key, read), index)


@st.cache_resource(max_entries=8, show_spinner="Placing the positions")
def maps_of(key: ModelKey, read: Read, unit: bool) -> tuple[list[Vectors], list[Projection]]:
    """The vectors after each layer, and their pictures by PCA."""
    by_layer = interp.rows(stream_summary(key, read), unit=unit)
    return by_layer, interp.maps(by_layer, labels(key, read))


@st.cache_resource(max_entries=256, show_spinner=False)
def placing_of(key: ModelKey, read: Read, chosen: MapChoice) -> Placing:
    """A picture by t-SNE or UMAP, computed once for all sessions."""
    by_layer, pictures = maps_of(key, read, chosen.unit)
    tokens, vectors, like = labels(key, read), by_layer[chosen.layer], pictures[chosen.layer]
    return begun(lambda: interp.map_after(vectors, tokens, chosen.method, chosen.seed, like), len(tokens))


@st.cache_data(max_entries=64, show_spinner=False)
def trust_of(key: ModelKey, read: Read, chosen: MapChoice) -> tuple[float, int]:
    by_layer, pictures = maps_of(key, read, chosen.unit)
    picture = pictures[chosen.layer] if chosen.method == "PCA" else placing_of(key, read, chosen).job.result()
    return embeddings.trustworthiness(by_layer[chosen.layer], picture)
