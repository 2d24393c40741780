"""What the Embeddings page computes, cached; slow projections run beside the page, so that it stays usable."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import streamlit as st

from gptviz.interp import embeddings
from gptviz.interp.embeddings import Neighbours, Projection, Vectors

from .cache import ModelKey, language_model

# A projection that is ready within this many seconds is shown at once; else PCA stands in for it.
PATIENCE = 1.0
TOKENS_PER_SECOND = 300


@dataclass(frozen=True)
class Tokens:
    """The vocabulary, by id: what a token is called on axes, in the list of tokens (unique), and its kind."""

    labels: tuple[str, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """A projection under way."""

    result: Future[Projection]
    began: float
    tokens: int


@st.cache_data(max_entries=4, show_spinner=False)
def tokens(key: ModelKey) -> Tokens:
    """The vocabulary of the model."""
    tokenizer = language_model(key).tokenizer
    labels = tuple(tokenizer.labels())
    seen: dict[str, int] = {}
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
    names = tuple(label if seen[label] == 1 else f"{label} (token {i})" for i, label in enumerate(labels))
    return Tokens(labels, names, tuple(tokenizer.kind_of(i) for i in range(len(labels))))


def _rows(key: ModelKey, space: str) -> Vectors:
    return embeddings.vectors(language_model(key).model, space)


@st.cache_data(max_entries=16, show_spinner=False)
def neighbours(key: ModelKey, space: str, token: int) -> Neighbours:
    """See `gptviz.interp.embeddings.neighbours`."""
    return embeddings.neighbours(_rows(key, space), tokens(key).labels, token)


@st.cache_data(max_entries=8, show_spinner=False)
def pca(key: ModelKey, space: str, dimensions: int) -> Projection:
    """The projection that is there at once."""
    return embeddings.project(_rows(key, space), tokens(key).labels, "PCA", dimensions)


@st.cache_resource(show_spinner=False)
def _worker() -> ThreadPoolExecutor:
    # One at a time: numba, under UMAP, does not bear two threads at once.
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="projection")


@st.cache_resource(max_entries=32, show_spinner=False)
def _job(key: ModelKey, space: str, method: str, dimensions: int, seed: int) -> Job:
    """A projection, computed once for all sessions; it goes on where a reader has turned to something else."""
    rows, labels = _rows(key, space), tokens(key).labels
    result = _worker().submit(embeddings.project, rows, labels, method, dimensions, seed)
    return Job(result, time.monotonic(), min(len(labels), embeddings.MOST_PLACED))


def projection(key: ModelKey, space: str, method: str, dimensions: int, seed: int) -> tuple[Projection, str]:
    """The projection and the method it is by: the one asked for, or PCA as long as that takes, with a line that says so."""
    if method != "PCA":
        job = _job(key, space, method, dimensions, seed)
        wait([job.result], PATIENCE)
        if not job.result.done():
            _waiting(job, method)
        elif error := job.result.exception():
            st.warning(f"{error}. PCA is shown instead.", icon=":material/info:")
        else:
            return job.result.result(), method
    return pca(key, space, dimensions), "PCA"


@st.fragment(run_every=1.0)
def _waiting(job: Job, method: str) -> None:
    if job.result.done():
        st.rerun()
    usual = f"about {max(1, round(job.tokens / TOKENS_PER_SECOND))} s" if method == "t-SNE" else "seconds, the first time half a minute"
    st.info(f"Computing {method}: {time.monotonic() - job.began:.0f} s so far, usually {usual}. Until then: PCA.", icon=":material/hourglass_top:")


@st.cache_data(max_entries=32, show_spinner=False)
def trustworthiness(key: ModelKey, space: str, method: str, dimensions: int, seed: int) -> tuple[float, int]:
    """See `gptviz.interp.embeddings.trustworthiness`; for a projection that is ready."""
    ready = pca(key, space, dimensions) if method == "PCA" else _job(key, space, method, dimensions, seed).result.result()
    return embeddings.trustworthiness(_rows(key, space), ready)


def pick(chart: str, names: Sequence[str]) -> None:
    """Set the control `token` to the point clicked in the chart with that key.

    As a callback, so that it acts on a click once, and not on every rerun, as the chart's selection would.
    """
    points = st.session_state[chart].selection.points
    if points and (custom := points[0].get("customdata")) is not None:
        st.session_state["token"] = names[int(custom[0] if isinstance(custom, list | tuple) else custom)]


def loses(projection: Projection, method: str, space_size: int) -> str:
    """What a projection keeps of the original space and what it loses, in a sentence."""
    if method == "PCA":
        kept = sum(projection.explained)
        return (
            f"PCA keeps the {len(projection.explained)} directions of {space_size} in which the tokens differ most: "
            f"{kept:.0%} of the variance. The other {1 - kept:.0%} is not in the picture."
        )
    return (
        f"{method} keeps neighbours together and nothing else: how far apart groups lie, how large they are and which way is up "
        "mean nothing. Another seed gives another picture; trust what stays."
    )


def trust(score: float, judged: int, shown: int) -> str:
    """The trustworthiness in words."""
    if math.isnan(score):
        return "Too few tokens to judge it."
    sampled = f", judged on a sample of {judged:,} tokens" if judged < shown else ""
    return f"Trustworthiness {score:.2f}{sampled} (1: whoever are neighbours here are neighbours in truth; 0.5: chance)."
