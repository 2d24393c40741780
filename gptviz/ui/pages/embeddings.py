"""What the Embeddings page shows, cached; slow projections are computed in a thread, so that the page stays usable."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from gptviz.figures import scatter
from gptviz.figures.format import counted, fixed, percent
from gptviz.interp import embeddings
from gptviz.interp.embeddings import Neighbours, Projection, Vectors
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model import LanguageModel
from gptviz.model import Config
from gptviz.runs import checkpoints
from gptviz.ui.shell import scrubber
from gptviz.ui.shell.models import ModelKey, language_model, load_call, model_key
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.theme import theme
from gptviz.ui.views import projections
from gptviz.ui.views.projections import Job, begun
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.figure import show_figure
from gptviz.ui.widgets.tries import Try

# t-SNE and UMAP go back through the snapshots picture by picture; at most this many tokens are placed on the way to the first.
MOST_CARRIED = 4_000

HOW = (
    r"""
- **PCA**: the rows of the matrix are centred, and seen along the eigenvectors of their covariance with the largest eigenvalues.
  Every snapshot of a model is seen along the axes of the model as it was saved last, from the same origin. So a token whose
  vector did not change does not move, even if the others do. The share of the variance is that of the step shown.
- **t-SNE** (scikit-learn): perplexity 20 (a third of the tokens, where they are few), 1,000 iterations.
- **UMAP** (umap-learn): its own defaults, 15 neighbours.
- t-SNE and UMAP begin with the picture by PCA, made small, plus a little noise that depends on the seed; the result is turned to
  match the PCA picture. The picture of an earlier step of training begins with the finished picture of a later step, and so on
  back from the model as it was saved last (through every snapshot of a small vocabulary, through some of a large one); it is
  turned to match that picture. So each step has one picture, in whatever order you visit the steps, and where the vectors
  changed little from step to step, the picture changes little too.
- **Neighbours**: the cosine $a \cdot b / (|a|\,|b|)$ of the full vectors, over all tokens.

t-SNE and UMAP place a sample of 5,000 tokens where there are more, the same for every seed.
Computed by `project`, `neighbours` and `trustworthiness` in `gptviz/interp/embeddings.py`.
"""
    + projections.HOW_STABLE
)
LIMITS = (
    "Two or three dimensions cannot hold what many can: points that lie on each other may be different, and with t-SNE and UMAP "
    "distances, sizes and empty space mean nothing. And a token's vector is only where the model begins: what the token means "
    "in a text is worked out in the blocks."
)


def spaces(config: Config) -> tuple[str, ...]:
    """What has vectors to show: one matrix serves a tied model for both, and a classifier has no unembedding."""
    return embeddings.SPACES[:1] if config.tied or config.kind == "classifier" else embeddings.SPACES


def space_name(space: str, config: Config) -> str:
    """What the vectors are called on screen."""
    return " = ".join(embeddings.SPACES) if config.tied else space


@dataclass(frozen=True)
class View:
    """What the page shows: which matrix of which model, projected how."""

    key: ModelKey
    space: str
    method: str
    dimensions: int
    seed: int


def view_controls(key: ModelKey, config: Config, notices: Any) -> tuple[View, bool, bool]:
    """The controls of what is projected and how; whether the chosen token's trail is shown, and whether seeds are compared."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        space = controls.select(
            "Vectors",
            spaces(config),
            key="space",
            help=(
                "Embedding: the vectors that tokens are read as. Unembedding: the vectors that the model's last state is "
                "compared with, to guess the next token. A tied model has one matrix for both; a classifier guesses no token "
                "and has no unembedding."
            ),
            format_func=lambda space: space_name(space, config),
            segmented=True,
            notices=notices,
        )
        about = (
            "PCA: a straight view, ready at once. t-SNE and UMAP: the space is bent so that neighbours stay together; slower "
            "with many tokens."
        )
        method = controls.select("Projection", embeddings.METHODS, key="method", help=about, segmented=True, notices=notices)
        about = "A 3-D picture turns under the pointer."
        solid = controls.select("Picture", ("2-D", "3-D"), key="dimensions", help=about, segmented=True, notices=notices) == "3-D"
        seed, compared, trail = 0, False, False
        if method != "PCA":
            seed, compared = projections.seed_controls(notices)
        elif scrubber.steps(key.name):
            about = "The path of the chosen token during training, as a grey line."
            trail = controls.switch("Trail", key="trail", help=about, notices=notices)
    return View(key, space, method, 3 if solid else 2, seed), trail, compared


def token_control(subject: Subject, notices: Any) -> int:
    """The control `token`: the id of the chosen one."""
    names = tokens(subject.key).names
    about = "Type to search. In 2-D, a click on a point chooses it too."
    first = "good" if subject.kind == "classifier" and "good" in names else "e"
    return names.index(controls.select("Token", names, key="token", default=first, help=about, notices=notices))


# A sentence about where kinds of tokens lie is offered only if their cosines differ by at least this much.
CLEARLY = 0.05


def to_try(subject: Subject, view: View) -> list[Try]:
    """What to try with this model, at this step of its training: what is said of its vectors is computed from them."""
    flat = {"method": "PCA", "dimensions": "2-D"}
    offers = [_first_step(subject, flat), _vowels(view), _praise(subject, flat), _capitals(view, flat)]
    notice = "Drag the picture: points that look like one group from one side may be two groups from another."
    return [*(offer for offer in offers if offer is not None), Try("Turn it", notice, {"method": "PCA", "dimensions": "3-D"})]


def _first_step(subject: Subject, flat: Mapping[str, Any]) -> Try | None:
    if not (steps := scrubber.steps(subject.key.name)):
        return None
    notice = f"Where the tokens lay at step {steps[0]:,}, the first that was kept. Press play and follow the grey line."
    return Try("The first step", notice, {"step": str(steps[0]), "trail": True, **flat})


@st.cache_data(max_entries=64, show_spinner=False)
def _vowel_cosines(key: ModelKey, space: str) -> tuple[float, float]:
    """The mean cosine of two vowels, and of a vowel and a consonant; NaN where there are none."""
    kinds = tokens(key).kinds
    vowels, consonants = ([i for i, kind in enumerate(kinds) if kind == wanted] for wanted in ("vowel", "consonant"))
    if len(vowels) < 2 or not consonants:
        return math.nan, math.nan
    rows = embeddings.vectors(language_model(key).model, space)
    return embeddings.mean_cosine(rows, vowels, vowels), embeddings.mean_cosine(rows, vowels, consonants)


def _vowels(view: View) -> Try | None:
    alike, other = _vowel_cosines(view.key, view.space)
    if "e" not in tokens(view.key).names or not alike > other + CLEARLY:
        return None
    notice = (
        f"Two vowels have a cosine of {fixed(alike)} on average, a vowel and a consonant {fixed(other)}: nobody told the model "
        "what a vowel is."
    ).replace("-", "−")
    return Try("Vowels", notice, {"token": "e", "method": "t-SNE", "dimensions": "2-D"})


def _praise(subject: Subject, flat: Mapping[str, Any]) -> Try | None:
    names = tokens(subject.key).names
    if subject.kind != "classifier" or not {"good", "bad"} <= set(names):
        return None
    rows = embeddings.vectors(subject.lm.model, "embedding")
    cosine = embeddings.mean_cosine(rows, [names.index("good")], [names.index("bad")])
    if not cosine < -CLEARLY:
        return None
    notice = f"“good” and “bad” point away from each other (cosine −{-cosine:.2f}). On which side are other words?"
    return Try("Good against bad", notice, {"token": "bad", **flat})


@st.cache_data(max_entries=64, show_spinner=False)
def _capitals_together(key: ModelKey, space: str) -> tuple[float, float]:
    """The share of capitals whose nearest token is a capital, and the share of capitals among all other tokens."""
    kinds = tokens(key).kinds
    capitals = [i for i, kind in enumerate(kinds) if kind == "capital"]
    rows = embeddings.vectors(language_model(key).model, space)
    return embeddings.share_beside_own(rows, capitals), (len(capitals) - 1) / max(1, len(kinds) - 1)


def _capitals(view: View, flat: Mapping[str, Any]) -> Try | None:
    together, chance = _capitals_together(view.key, view.space)
    if "A" not in tokens(view.key).names or not together > max(0.5, chance + CLEARLY):
        return None
    notice = (
        f"The nearest token to a capital is a capital too in {percent(together)} of cases; by chance it would be "
        f"{percent(chance)}."
    )
    return Try("Capitals apart", notice, {"token": "A", **flat})


def _rows(view: View) -> Vectors:
    return embeddings.vectors(language_model(view.key).model, view.space)


def _reference(view: View) -> Vectors | None:
    """The vectors whose axes are used for all steps of training: those of the model as it was saved last. None if that is the
    model shown.
    """
    return None if view.key.step is None else _rows(replace(view, key=scrubber.as_saved_last(view.key)))


@dataclass(frozen=True)
class Course:
    """Where PCA puts the tokens at every step of training (or at some, evenly chosen, of a large model).

    Attributes:
        steps: what each is called.
        points: [step, token, component].
    """

    steps: tuple[str, ...]
    points: Vectors

    @property
    def ends(self) -> list[tuple[float, float]]:
        """Where the axis of each component has to begin and end, so that all points fit, with room for labels."""
        low, high = self.points.min(axis=(0, 1)), self.points.max(axis=(0, 1))
        room = 0.06 * float((high - low).max()) or 1.0
        return [(float(a) - room, float(b) + room) for a, b in zip(low, high, strict=True)]

    def trail(self, token: int) -> LabelledArray:
        """The path of one token: [step, component]."""
        components = Axis("component", tuple(str(i + 1) for i in range(self.points.shape[2])))
        return LabelledArray(self.points[:, token], (Axis("step", self.steps), components), "coordinate")


def course(view: View) -> Course | None:
    """The course of training seen as `view` is, None for a model without snapshots."""
    every = scrubber.steps(view.key.name)
    return _course(scrubber.as_saved_last(view.key), every, view.space, view.dimensions) if every else None


@st.cache_resource(max_entries=8, show_spinner="Reading the snapshots")
def _course(key: ModelKey, every: tuple[int, ...], space: str, dimensions: int) -> Course:
    axes = embeddings.principal_axes(embeddings.vectors(language_model(key).model, space), dimensions)
    points, names = [], []
    for one in scrubber.compared_keys(key):
        points.append(axes.place(embeddings.vectors(language_model(one).model, space)))
        names.append(scrubber.LAST if one.step is None else f"step {one.step:,}")
    return Course(tuple(names), np.stack(points))


@st.cache_data(max_entries=64, show_spinner=False)
def _neighbours(key: ModelKey, space: str, token: int) -> Neighbours:
    return embeddings.neighbours(embeddings.vectors(language_model(key).model, space), tokens(key).labels, token)


@st.cache_resource(max_entries=32, show_spinner=False)
def _pca(view: View) -> Projection:
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


def _job(view: View) -> Job:
    """The projection of a view by t-SNE or UMAP, after those that it begins with."""
    name, device, step = view.key.name, view.key.device, view.key.step
    steps = way_back(scrubber.steps(name), step, len(tokens(view.key).labels))
    last = scrubber.as_saved_last(view.key)
    job: Job | None = None
    for index, one in enumerate(steps[:-1], 1):
        with contextlib.suppress(checkpoints.CheckpointError):  # one that cannot be read is left out
            job = _begun(replace(view, key=model_key(name, device, one, view.key.precision)), last, steps[:index], job)
    return _begun(view, last, steps, job)


# As many as lead to the first step, of several views.
@st.cache_resource(max_entries=512, show_spinner=False)
def _begun(view: View, last: ModelKey, steps: tuple[int | None, ...], _before: Job | None) -> Job:
    """A projection, computed once for all sessions; it is finished even if its user goes to another page.

    Args:
        last: the model as it was saved last, from which all begins.
        steps: those whose pictures lead to this one, itself included.
        _before: the projection that it begins with, None for the first.
    """
    rows, labels = _rows(view), tokens(view.key).labels
    settings, reference = (view.method, view.dimensions, view.seed), _reference(view)

    def compute() -> Projection:
        # The worker takes one after the other: what this one begins with is ready, or has failed.
        begin = None if _before is None else _before.result.result()
        return embeddings.project(rows, labels, *settings, reference=reference, begin=begin)

    n_tokens = min(len(labels), embeddings.MOST_PLACED) * len(steps)
    return begun(compute, n_tokens)


def projection(view: View) -> tuple[Projection, View]:
    """The projection of the view, and the view itself. Until a slow projection is ready, PCA is shown instead, with a notice."""
    if view.method != "PCA" and (ready := projections.finished(_job(view), view.method)) is not None:
        return ready, view
    instead = replace(view, method="PCA", seed=0)
    return _pca(instead), instead


def over_seeds(view: View) -> None:
    """The pictures of several seeds, of which `view` is one, and how far they agree."""
    kinds = tokens(view.key).kinds
    jobs = [_job(replace(view, seed=int(seed))) for seed in projections.SEEDS]
    projections.over_seeds(jobs, lambda picture: [kinds[i] for i in picture.ids], view.method)


@st.cache_data(max_entries=64, show_spinner=False)
def _trustworthiness(view: View) -> tuple[float, int]:
    ready = _pca(view) if view.method == "PCA" else _job(view).result.result()
    return embeddings.trustworthiness(_rows(view), ready)


def bars(view: View, token: int, *, height: int) -> None:
    """The nearest neighbours of `token`."""
    near, kinds = _neighbours(view.key, view.space, token), tokens(view.key).kinds
    show_figure(
        scatter.neighbour_bars(near.similarity, [kinds[i] for i in near.ids], theme(), height=height),
        key="neighbours",
        config={"displayModeBar": False},
        alt=f"The tokens nearest to {tokens(view.key).labels[token]}: {', '.join(near.similarity.axes[0].labels)}.",
    )


def cloud(view: View, projected: Projection, token: int, *, height: int, trail: bool = False, prompt: Sequence[int] = ()) -> None:
    """The tokens as points; `token` ringed and joined to its neighbours, with the way it came where PCA shows a `trail`, and
    those of the `prompt` with thin rings. A click on a point chooses its token.
    """
    vocabulary, near = tokens(view.key), _neighbours(view.key, view.space, token)
    trained = course(view) if view.method == "PCA" else None

    # As a callback, so that it acts on a click once, and not on every rerun, as the chart's selection would.
    def pick() -> None:
        if points := st.session_state["map"].selection.points:
            st.session_state["token"] = vocabulary.names[projected.ids[clicked(points[0])]]

    figure = scatter.cloud(
        projected.points,
        [vocabulary.kinds[i] for i in projected.ids],
        theme(),
        height=height,
        axes=[f"component {i} ({percent(share)})" for i, share in enumerate(projected.explained, 1)],
        chosen=projected.index(token),
        neighbours=[i for i in map(projected.index, near.ids) if i is not None],
        ends=trained.ends if trained else (),
        set_out=trained.points[-1] if trained else None,
        trail=trained.trail(token) if trained and trail else None,
        read=[i for i in map(projected.index, sorted(set(prompt))) if i is not None],
    )
    show_figure(
        figure,
        key="map",
        on_select=pick,
        selection_mode="points",
        config={"displaylogo": False},
        alt=f"{counted(len(projected.ids), 'token')} of the {view.space} by {view.method}, coloured and shaped by kind.",
    )


def what_is_lost(projected: Projection, view: View, token: int, d_model: int) -> str:
    """What a projection keeps of the original space and what it loses; with a word if `token` is not in it."""
    if view.method == "PCA":
        explained = sum(projected.explained)
        when = " when training ends (the same axes at every step)" if scrubber.steps(view.key.name) else ""
        here = "" if view.key.step is None else " of this step"
        return (
            f"PCA keeps those {view.dimensions} of {d_model} directions in which the tokens differ most{when}: "
            f"{percent(explained)} of the variance{here}. The other {percent(1 - explained)} is not in the picture."
        )
    every = len(tokens(view.key).labels)
    sampled = f"A sample of {len(projected.ids):,} of the {every:,} tokens. " if len(projected.ids) < every else ""
    step_by_step = scrubber.steps(view.key.name)
    missing = "The chosen token is not among them. " if projected.index(token) is None else ""
    steps = " Each step of training begins with the picture of a later one, so that it jumps little." if step_by_step else ""
    return (
        f"{sampled}{missing}{view.method} keeps neighbours together and loses the rest: how far apart groups lie, how large "
        f"they are and which way is up mean nothing. Try another seed, and trust only what stays the same.{steps}"
    )


def trust_in_picture(view: View, projected: Projection) -> str:
    """How far the picture's neighbours can be trusted."""
    score, judged = _trustworthiness(view)
    return projections.trust(score, judged, len(projected.ids))


def code(lm: LanguageModel, view: View, token: int) -> str:
    """The lines of `gptviz` that compute what the page shows."""
    settings = f"{view.method!r}, dimensions={view.dimensions}" + ("" if view.method == "PCA" else f", seed={view.seed}")
    opened = f"""import gptviz
from gptviz.interp import embeddings

lm = {load_call(lm)}
rows, labels = embeddings.vectors(lm.model, {view.space!r}), lm.tokenizer.labels()  # rows [vocab_size, d_model]
"""
    if lm.step is not None:
        opened += f"last = embeddings.vectors(gptviz.load({lm.name!r}).model, {view.space!r})  # its axes serve every step\n"
        settings += ", reference=last"
    if lm.step is None or view.method == "PCA":
        placed = f"embeddings.project(rows, labels, {settings}).points.values  # [token, component]"
    else:
        steps = way_back(scrubber.steps(lm.name), lm.step, len(lm.tokenizer.labels()))
        placed = f"""picture = None
for step in {steps}:  # each begins with the picture of the one before; None is the model as it was saved last
    of_step = embeddings.vectors(gptviz.load({lm.name!r}, step=step).model, {view.space!r})
    picture = embeddings.project(of_step, labels, {settings}, begin=picture)
picture.points.values  # [token, component]"""
    return f"""{opened}{placed}
embeddings.neighbours(rows, labels, token={token}).similarity.values  # [neighbour]"""


def clicked(point: Mapping[str, Any]) -> int:
    """The index of the token whose point was clicked, from the event of the chart."""
    custom = point["customdata"]
    return int(custom[0] if isinstance(custom, list | tuple) else custom)
