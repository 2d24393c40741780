"""Projections that take long: computed in a thread, so that the page stays usable, with PCA shown
until they are ready; and how far the pictures of several seeds agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from gptviz.figures.kit import scatter
from gptviz.figures.kit.format import percent
from gptviz.interp.reading import embeddings
from gptviz.interp.reading.embeddings import Projection, Stability
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine.job import Job, Slots
from gptviz.ui.shell.subject import scrubber
from gptviz.ui.widgets import controls, escape_markdown, show_figure, theme

# A projection that is ready within this many seconds is shown at once; else PCA stands in for it.
PATIENCE = 1.0
# The speed of one thread of a laptop in t-SNE, to estimate how long it takes.
TOKENS_PER_SECOND = 200
SEEDS = ("0", "1", "2", "3", "4")

HOW_STABLE = r"""
- **Stability over seeds**: one picture for each of five seeds, which differ only in the noise at the start. Of each point's 5
  nearest neighbours in one picture, it is the share that are among its 5 nearest in another, as the mean over all points and all
  pairs of pictures (`stability` in `gptviz/interp/reading/embeddings.py`).
"""


# One at a time: numba, which UMAP uses, does not work with two threads at once.
_SLOT = Slots(1)


@dataclass(frozen=True)
class Placing:
    """A projection that is being computed."""

    #: computes it; it goes on to its end even if its user goes to another page
    job: Job[Projection]
    tokens: int  #: how many points are placed, in all the pictures that are computed for it


def begin_projection(compute: Callable[[], Projection], tokens: int) -> Placing:
    """Begin to compute a projection of `tokens` tokens, after those that were begun before."""
    return Placing(Job("Projection", compute, slots=_SLOT), tokens)


def finished_projection(placing: Placing, method: str) -> Projection | None:
    """The projection, if it is ready soon; else None, with a notice that PCA is shown in its place,
    and why.
    """
    job = placing.job
    if not job.wait(PATIENCE):
        scrubber.PLAYER.wait_for(job)
        _wait_for(placing, method)
        return None
    if job.error is not None:
        st.warning(
            f"{escape_markdown(str(job.error))}. PCA is shown instead.", icon=":material/info:"
        )
        return None
    return job.value


@st.fragment(run_every=1.0)
def _wait_for(placing: Placing, method: str) -> None:
    job = placing.job
    if not job.is_active:
        st.rerun()
    usual = "a few seconds, the first time half a minute"
    if method == "t-SNE":
        usual = f"about {max(1, round(placing.tokens / TOKENS_PER_SECOND))} s"
    if job.state == "waiting":
        first = (
            " Other pictures are computed first, such as those of later steps, from which this one "
            "begins."
        )
    else:
        first = ""
    so_far = f"{job.seconds:.0f} s so far"
    st.info(
        f"Computing {method}: {so_far}, usually {usual}. Until then: PCA.{first}",
        icon=":material/hourglass_top:",
    )


def seed_controls() -> tuple[int, bool]:
    """The controls `seed` and `seeds`: which seed t-SNE and UMAP begin with, and whether several
    are compared.
    """
    hint = "t-SNE and UMAP start with some noise: another seed gives another picture."
    seed = controls.select("Seed", SEEDS, key="seed", help=hint, segmented=True)
    hint = (
        f"Computes the pictures of {len(SEEDS)} seeds, shows them side by side, and says how far "
        "they agree."
    )
    return int(seed), controls.switch("Compare seeds", key="seeds", help=hint)


def trust(score: float, judged: int, placed: int, things: str = "tokens") -> str:
    """How far the neighbours in a picture can be trusted: a `score` of
    `embeddings.trustworthiness`, measured on `judged` of the `placed` things.
    """
    if math.isnan(score):
        return f"There are too few {things} to say how far the picture can be trusted."
    if judged < placed:
        sampled = f"; judged on {judged:,} {things} drawn at random"
    else:
        sampled = ""
    return (
        "How many of the neighbours in this picture are neighbours in the model too? On a scale "
        "from 0.5 (as many as by chance) "
        f"to 1 (all of them) it is {score:.2f} (called trustworthiness{sampled})."
    )


def over_seeds(
    placings: Sequence[Placing], kinds: Callable[[Projection], Sequence[str]], method: str
) -> None:
    """The pictures of several seeds side by side, and how far they agree; until then, how many are
    ready.

    Args:
        placings: one for each of `SEEDS`.
        kinds: returns the kind of each point of a projection, for its colour and shape.
        method: the method that makes them.
    """
    jobs = [placing.job for placing in placings]
    for job in jobs:
        job.wait(PATIENCE / len(jobs))
    if any(job.is_active for job in jobs):
        _counting(jobs, method)
        return
    if any(job.error is not None for job in jobs):
        return  # the picture above says why
    pictures = [job.result() for job in jobs]
    every = [np.asarray(one.points.values, np.float32) for one in pictures]
    agree = embeddings.stability(every)
    st.caption(describe_stability(agree, method))
    axes = pictures[0].points.axes[0], Axis("component", ("1", "2"))
    # In the plane of the page: pictures in 3-D show two components.
    shown = [
        LabelledArray(
            embeddings.align_points(one, every[0], resized=True)[:, :2], axes, "coordinate"
        )
        for one in every
    ]
    show_figure(
        scatter.side_by_side(
            shown, [f"seed {seed}" for seed in SEEDS], kinds(pictures[0]), theme(), height=230
        ),
        key="over seeds",
        alt=f"The pictures by {method} of {len(jobs)} seeds, each turned to match the first.",
    )


@st.fragment(run_every=1.0)
def _counting(jobs: Sequence[Job[Projection]], method: str) -> None:
    ready = sum(not job.is_active for job in jobs)
    if ready == len(jobs):
        st.rerun()
    st.progress(
        ready / len(jobs),
        f"Computing {method}: the pictures of {ready} of {len(jobs)} seeds are ready.",
    )


def describe_stability(agree: Stability, method: str) -> str:
    """How far pictures agree, in words."""
    if math.isnan(agree.kept):
        return "There are too few points to say how far the pictures of several seeds agree."
    share = percent(agree.kept)
    if agree.by_chance >= 0.005:
        chance = percent(agree.by_chance)
    else:
        chance = "less than 1 %"
    return (
        f"Stability over {agree.pictures} seeds: of a point's {agree.neighbours} nearest "
        f"neighbours in one picture by {method}, "
        f"{share} are among its nearest in another (by chance: {chance}). Trust the groups that "
        "are there in every picture."
    )
