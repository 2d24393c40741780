"""The computations of the page Embeddings, done once for all sessions."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from gptviz.interp.reading import embeddings
from gptviz.interp.reading.embeddings import Neighbours, Projection, Vectors
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.runs import checkpoints
from gptviz.ui.shell.subject import ModelKey, language_model, model_key, scrubber
from gptviz.ui.views import projections
from gptviz.ui.views.projections import Placing, begun
from gptviz.ui.views.vocabulary import tokens

# t-SNE and UMAP go back through the snapshots picture by picture; at most this many tokens are placed on the way to the first.
MOST_CARRIED = 4_000


@dataclass(frozen=True)
class ProjectionChoice:
    """The choice of the reader: which matrix of which model, and how it is projected."""

    key: ModelKey
    space: str
    method: str
    dimensions: int
    seed: int


@st.cache_data(max_entries=64, show_spinner=False)
def vowel_cosines(key: ModelKey, space: str) -> tuple[float, float]:
    """The mean cosine of two vowels, and of a vowel and a consonant; NaN where there are none."""
    kinds = tokens(key).kinds
    vowels, consonants = ([i for i, kind in enumerate(kinds) if kind == wanted] for wanted in ("vowel", "consonant"))
    if len(vowels) < 2 or not consonants:
        return math.nan, math.nan
    rows = embeddings.vectors(language_model(key).model, space)
    return embeddings.mean_cosine(rows, vowels, vowels), embeddings.mean_cosine(rows, vowels, consonants)


@st.cache_data(max_entries=64, show_spinner=False)
def capitals_together(key: ModelKey, space: str) -> tuple[float, float]:
    """The share of capitals whose nearest token is a capital, and the share of capitals among all other tokens."""
    kinds = tokens(key).kinds
    capitals = [i for i, kind in enumerate(kinds) if kind == "capital"]
    rows = embeddings.vectors(language_model(key).model, space)
    return embeddings.share_beside_own(rows, capitals), (len(capitals) - 1) / max(1, len(kinds) - 1)


def _rows(view: ProjectionChoice) -> Vectors:
    return embeddings.vectors(language_model(view.key).model, view.space)


def _reference(view: ProjectionChoice) -> Vectors | None:
    """The vectors whose axes serve all steps of training: those of the model as saved last, or None if that is shown."""
    return None if view.key.step is None else _rows(replace(view, key=scrubber.as_saved_last(view.key)))


@dataclass(frozen=True)
class Trails:
    """Where PCA puts the tokens at every step of training (or at some, evenly chosen, of a large model).

    Attributes:
        steps: their names.
        points: [step, token, component].
    """

    steps: tuple[str, ...]
    points: Vectors

    def trail(self, token: int) -> LabelledArray:
        """The path of one token: [step, component]."""
        components = Axis("component", tuple(str(i + 1) for i in range(self.points.shape[2])))
        return LabelledArray(self.points[:, token], (Axis("step", self.steps), components), "coordinate")


def trails_of(view: ProjectionChoice) -> Trails | None:
    """The trails of all tokens, with the choices of `view`, or None for a model without snapshots."""
    every = scrubber.steps(view.key.name)
    return _trails(scrubber.as_saved_last(view.key), every, view.space, view.dimensions) if every else None


@st.cache_resource(max_entries=8, show_spinner="Reading the snapshots")
def _trails(key: ModelKey, every: tuple[int, ...], space: str, dimensions: int) -> Trails:
    axes = embeddings.principal_axes(embeddings.vectors(language_model(key).model, space), dimensions)
    points, names = [], []
    for one in scrubber.compared_keys(key):
        points.append(axes.place(embeddings.vectors(language_model(one).model, space)))
        names.append(scrubber.LAST if one.step is None else f"step {one.step:,}")
    return Trails(tuple(names), np.stack(points))


@st.cache_data(max_entries=64, show_spinner=False)
def neighbours_of(key: ModelKey, space: str, token: int) -> Neighbours:
    return embeddings.neighbours(embeddings.vectors(language_model(key).model, space), tokens(key).labels, token)


@st.cache_resource(max_entries=32, show_spinner=False)
def pca_of(view: ProjectionChoice) -> Projection:
    return embeddings.project(_rows(view), tokens(view.key).labels, "PCA", view.dimensions, reference=_reference(view))


def way_back(every: Sequence[int], step: int | None, n_tokens: int) -> tuple[int | None, ...]:
    """The steps whose pictures lead to the picture of `step`: each picture begins with the one before it. First comes None, the
    model as it was saved last, and at the end `step` itself. The result depends only on which snapshots there are, not on what
    was shown before.
    """
    if step is None:
        return (None,)
    apart = max(1, math.ceil(len(every) * n_tokens / MOST_CARRIED))  # every snapshot, or every second, third …
    between = [one for one in every[::-1][apart - 1 :: apart] if one > step]
    return (None, *between, step)


def placing_of(view: ProjectionChoice) -> Placing:
    """The projection of a view by t-SNE or UMAP, after those that it begins with."""
    name, device, step = view.key.name, view.key.device, view.key.step
    steps = way_back(scrubber.steps(name), step, len(tokens(view.key).labels))
    last = scrubber.as_saved_last(view.key)
    placing: Placing | None = None
    for index, one in enumerate(steps[:-1], 1):
        with contextlib.suppress(checkpoints.CheckpointError):  # one that cannot be read is left out
            placing = _begun(replace(view, key=model_key(name, device, one, view.key.precision)), last, steps[:index], placing)
    return _begun(view, last, steps, placing)


# As many as lead to the first step, of several views.
@st.cache_resource(max_entries=512, show_spinner=False)
def _begun(view: ProjectionChoice, last: ModelKey, steps: tuple[int | None, ...], _before: Placing | None) -> Placing:
    """A projection, computed once for all sessions; it is finished even if its user goes to another page.

    Args:
        last: the model as it was saved last, from which all begins.
        steps: those whose pictures lead to this one, itself included.
        _before: the projection that it begins with, or None for the first.
    """
    rows, labels = _rows(view), tokens(view.key).labels
    settings, reference = (view.method, view.dimensions, view.seed), _reference(view)

    def compute() -> Projection:
        # The worker takes one after the other: what this one begins with is ready, or has failed.
        begin = None if _before is None else _before.job.result()
        return embeddings.project(rows, labels, *settings, reference=reference, begin=begin)

    n_tokens = min(len(labels), embeddings.MOST_PLACED) * len(steps)
    return begun(compute, n_tokens)


def projection(view: ProjectionChoice) -> tuple[Projection, ProjectionChoice]:
    """The projection of the view, and the view itself. Until a slow projection is ready, PCA is shown instead, with a notice."""
    if view.method != "PCA" and (ready := projections.finished(placing_of(view), view.method)) is not None:
        return ready, view
    instead = replace(view, method="PCA", seed=0)
    return pca_of(instead), instead


@st.cache_data(max_entries=64, show_spinner=False)
def trustworthiness_of(view: ProjectionChoice) -> tuple[float, int]:
    ready = pca_of(view) if view.method == "PCA" else placing_of(view).job.result()
    return embeddings.trustworthiness(_rows(view), ready)
