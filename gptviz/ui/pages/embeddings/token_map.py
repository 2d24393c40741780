"""The map of all tokens, and the nearest neighbours of one."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from gptviz.figures.kit import scatter
from gptviz.figures.kit.format import format_count, format_fixed, percent
from gptviz.interp.reading import embeddings
from gptviz.interp.reading.embeddings import Neighbours, Projection, Vectors
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.language_model import LanguageModel
from gptviz.model import Config
from gptviz.model.kinds import MODEL_KINDS
from gptviz.runs import checkpoints
from gptviz.settings.kinds import Projector
from gptviz.ui.shell.subject import ModelKey, Subject, language_model, model_key, opening, scrubber
from gptviz.ui.views import projections
from gptviz.ui.views.projections import Placing, begin_projection
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import Try, controls, in_quotes, jobs, show_figure, theme

# t-SNE and UMAP go back through the snapshots picture by picture; at most this many tokens are
# placed on the way to the first.
MOST_CARRIED = 4_000
# A sentence about where kinds of tokens lie is offered only if their cosines differ by at least
# this much.
CLEARLY = 0.05
# How many of the tokens that look most like one are named.
NAMED = 3


@dataclass(frozen=True)
class ProjectionChoice:
    """The choice of the reader: which matrix of which model, and how it is projected."""

    key: ModelKey
    space: str
    method: Projector
    dimensions: int
    seed: int


@dataclass(frozen=True)
class Trails:
    """Where PCA puts the tokens at every step of training (or at some, evenly chosen, of a large
    model).
    """

    steps: tuple[str, ...]  #: their names
    points: Vectors  #: [step, token, component]

    def trail(self, token: int) -> LabelledArray:
        """The path of one token: [step, component]."""
        components = Axis("component", tuple(str(i + 1) for i in range(self.points.shape[2])))
        return LabelledArray(
            self.points[:, token], (Axis("step", self.steps), components), "coordinate"
        )


def view_controls(key: ModelKey, config: Config) -> tuple[ProjectionChoice, bool, bool]:
    """The controls of what is projected and how; whether the chosen token's trail is shown, and
    whether seeds are compared.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        space = controls.select(
            "Vectors",
            # A tied model has one matrix for both, and a classifier has no unembedding.
            embeddings.SPACES[:1]
            if config.tied or MODEL_KINDS[config.kind].guesses == "label"
            else embeddings.SPACES,
            key="space",
            help=(
                "Embedding: the vectors that tokens are read as. Unembedding: the vectors that "
                "the model's last state is "
                "compared with, to guess the next token. A tied model has one matrix for both; a "
                "classifier guesses no token "
                "and has no unembedding."
            ),
            format_func=lambda space: " = ".join(embeddings.SPACES) if config.tied else space,
            segmented=True,
        )
        method = controls.choose(Projector, key="method")
        hint = "A 3-D picture turns under the pointer."
        solid = (
            controls.select("Picture", ("2-D", "3-D"), key="dimensions", help=hint, segmented=True)
            == "3-D"
        )
        seed = 0
        compared = False
        trail = False
        if method != "PCA":
            seed, compared = projections.seed_controls()
        elif scrubber.steps(key.name):
            hint = "The path of the chosen token during training, as a grey line."
            trail = controls.switch("Trails", key="trail", help=hint)
    return ProjectionChoice(key, space, method, 3 if solid else 2, seed), trail, compared


def token_control(subject: Subject) -> int:
    """The control `token`: the id of the chosen one, at first the last token of the prompt that
    stands for a text.
    """
    names = tokens(subject.key).names
    hint = "Type to search. In 2-D, a click on a point chooses it too."
    first = names[
        next((i for i in reversed(subject.seen) if not subject.lm.tokenizer.is_special(i)), 0)
    ]
    return names.index(
        controls.select("Token", names, key="token", default=first, help=hint, follows=True)
    )


@st.cache_resource(max_entries=8, show_spinner=False)
def kinds_of(key: ModelKey) -> tuple[str, ...]:
    """The kind of each token. In a vocabulary with words, a vowel or a consonant is a word too."""
    kinds = tokens(key).kinds
    if not has_words(key):
        return kinds
    return tuple("word" if kind in ("vowel", "consonant") else kind for kind in kinds)


def has_words(key: ModelKey) -> bool:
    """Whether some tokens of the vocabulary are words."""
    return "word" in tokens(key).kinds


def sentence(view: ProjectionChoice, token: int) -> tuple[str, str] | None:
    """Which tokens look most like one of them to the model, in words, and how much; None if there
    is no other.
    """
    near = neighbours_of(view.key, view.space, token).similarity
    labels = [in_quotes(label) for label in near.axes[0].labels[:NAMED]]
    if not labels:
        return None
    chosen = in_quotes(tokens(view.key).labels[token])
    return (
        f"To the model {chosen} looks most like {', '.join(labels)}.",
        f"The cosine between the vectors of {chosen} and {labels[0]} is {near.values[0]:.2f}: 1 is "
        "the same direction, 0 a right angle.",
    )


def bars(view: ProjectionChoice, token: int, *, height: int) -> None:
    """The nearest neighbours of `token`."""
    near = neighbours_of(view.key, view.space, token)
    kinds = kinds_of(view.key)
    show_figure(
        scatter.neighbour_bars(
            near.similarity, [kinds[i] for i in near.ids], theme(), height=height
        ),
        key="neighbours",
        alt=f"The tokens nearest to {tokens(view.key).labels[token]}: "
        f"{', '.join(near.similarity.axes[0].labels)}.",
    )


@st.cache_data(max_entries=64, show_spinner=False)
def neighbours_of(key: ModelKey, space: str, token: int) -> Neighbours:
    return embeddings.neighbours(
        embeddings.vectors(language_model(key).model, space), tokens(key).labels, token
    )


def projection(view: ProjectionChoice) -> tuple[Projection, ProjectionChoice]:
    """The projection of the view, and the view itself. Until a slow projection is ready, PCA is
    shown instead, with a notice.
    """
    if (
        view.method != "PCA"
        and (ready := projections.finished_projection(placing_of(view), view.method)) is not None
    ):
        return ready, view
    instead = replace(view, method="PCA", seed=0)
    return pca_of(instead), instead


def way_back(every: Sequence[int], step: int | None, n_tokens: int) -> tuple[int | None, ...]:
    """The steps whose pictures lead to the picture of `step`; each begins with the one before it.
    First comes None (the model as it was saved last), at the end `step` itself. Only the snapshots
    decide, not what was shown before.
    """
    if step is None:
        return (None,)
    # every snapshot, or every second, third …
    apart = max(1, math.ceil(len(every) * n_tokens / MOST_CARRIED))
    between = [one for one in every[::-1][apart - 1 :: apart] if one > step]
    return (None, *between, step)


def placing_of(view: ProjectionChoice) -> Placing:
    """The projection of a view by t-SNE or UMAP, after those that it begins with."""
    name = view.key.name
    device = view.key.device
    step = view.key.step
    steps = way_back(scrubber.steps(name), step, len(tokens(view.key).labels))
    last = scrubber.as_saved_last(view.key)
    placing: Placing | None = None
    for index, one in enumerate(steps[:-1], 1):
        # one that cannot be read is left out
        with contextlib.suppress(checkpoints.CheckpointError):
            placing = _begin_projection(
                replace(view, key=model_key(name, device, one, view.key.precision)),
                last,
                steps[:index],
                placing,
            )
    return _begin_projection(view, last, steps, placing)


# As many as lead to the first step, of several views.
@st.cache_resource(max_entries=512, show_spinner=False)
def _begin_projection(
    view: ProjectionChoice, last: ModelKey, steps: tuple[int | None, ...], _before: Placing | None
) -> Placing:
    """A projection, computed once for all sessions; it is finished even if its user goes to another
    page.

    Args:
        last: the model as it was saved last, from which all begins.
        steps: those whose pictures lead to this one, itself included.
        _before: the projection that it begins with, or None for the first.
    """
    rows = _rows(view)
    labels = tokens(view.key).labels
    settings = (view.method, view.dimensions, view.seed)
    reference = _reference(view)

    def compute() -> Projection:
        # The worker takes one after the other: what this one begins with is ready, or has failed.
        begin = None if _before is None else _before.job.result()
        return embeddings.project(rows, labels, *settings, reference=reference, begin=begin)

    n_tokens = min(len(labels), embeddings.MOST_PLACED) * len(steps)
    return begin_projection(compute, n_tokens)


def _rows(view: ProjectionChoice) -> Vectors:
    return embeddings.vectors(language_model(view.key).model, view.space)


def _reference(view: ProjectionChoice) -> Vectors | None:
    """The vectors whose axes serve all steps of training: those of the model as saved last, or None
    if that is shown.
    """
    if view.key.step is None:
        return None
    return _rows(replace(view, key=scrubber.as_saved_last(view.key)))


@jobs.resource("Placing the tokens", max_entries=32)
def pca_of(view: ProjectionChoice) -> Projection:
    return embeddings.project(
        _rows(view), tokens(view.key).labels, "PCA", view.dimensions, reference=_reference(view)
    )


def drawn_tokens(
    view: ProjectionChoice, projected: Projection, token: int, prompt: Sequence[int]
) -> Projection:
    """What is drawn of a picture: of a large vocabulary a sample, with `token`, its neighbours and
    the tokens of `prompt`.
    """
    return projected.sample_drawn([token, *neighbours_of(view.key, view.space, token).ids, *prompt])


def cloud(
    view: ProjectionChoice,
    projected: Projection,
    token: int,
    *,
    height: int,
    trail: bool = False,
    prompt: Sequence[int] = (),
) -> None:
    """The tokens as points: `token` with lines to its neighbours, those of `prompt` in thin rings;
    a click chooses one.
    """
    vocabulary = tokens(view.key)
    near = neighbours_of(view.key, view.space, token)
    trained = None
    if view.method == "PCA" and (every := scrubber.steps(view.key.name)):
        trained = trails_of(scrubber.as_saved_last(view.key), every, view.space, view.dimensions)

    def pick(point: Sequence[int]) -> None:
        st.session_state["token"] = vocabulary.names[projected.ids[point[0]]]

    figure = scatter.cloud(
        projected.points,
        [kinds_of(view.key)[i] for i in projected.ids],
        theme(),
        height=height,
        axes=[
            f"component {i} ({percent(share)})" for i, share in enumerate(projected.explained, 1)
        ],
        chosen=projected.index(token),
        neighbours=[i for i in map(projected.index, near.ids) if i is not None],
        ends=scatter.axis_ends(trained.points) if trained else (),
        set_out=trained.points[-1][projected.ids] if trained else None,
        trail=trained.trail(token) if trained and trail else None,
        read=[i for i in map(projected.index, sorted(set(prompt))) if i is not None],
    )
    show_figure(
        figure,
        key="map",
        choose=pick,
        alt=f"{format_count(len(projected.ids), 'token')} of the {view.space} by {view.method}, "
        "coloured and shaped by kind.",
    )


@st.cache_resource(max_entries=8, show_spinner="Reading the snapshots")
def trails_of(key: ModelKey, every: tuple[int, ...], space: str, dimensions: int) -> Trails:
    axes = embeddings.principal_axes(
        embeddings.vectors(language_model(key).model, space), dimensions
    )
    points = []
    names = []
    for one in scrubber.compared_keys(key):
        points.append(axes.place(embeddings.vectors(language_model(one).model, space)))
        names.append(scrubber.LAST if one.step is None else f"step {one.step:,}")
    return Trails(tuple(names), np.stack(points))


def what_is_lost(
    projected: Projection, drawn: Projection, view: ProjectionChoice, token: int, d_model: int
) -> str:
    """What a projection keeps of the original space and loses, how much of it is `drawn`, and
    whether `token` is in it.
    """
    if view.method == "PCA":
        explained = sum(projected.explained)
        if scrubber.steps(view.key.name):
            when = " when training ends (the same axes at every step)"
        else:
            when = ""
        here = "" if view.key.step is None else " of this step"
        count = f"{len(drawn.ids):,} of the {len(projected.ids):,} tokens"
        some = (
            f"Drawn are {count}: a sample, the chosen token with its neighbours, and those of the "
            "prompt. "
        )
        some = some if len(drawn.ids) < len(projected.ids) else ""
        return (
            f"{some}PCA keeps those {view.dimensions} of {d_model} directions in which the tokens "
            f"differ most{when}: "
            f"{percent(explained)} of the variance{here}. The other {percent(1 - explained)} is "
            "not in the picture."
        )
    every = len(tokens(view.key).labels)
    if len(projected.ids) < every:
        sampled = f"A sample of {len(projected.ids):,} of the {every:,} tokens. "
    else:
        sampled = ""
    step_by_step = scrubber.steps(view.key.name)
    if projected.index(token) is None:
        missing = "The chosen token is not among them. "
    else:
        missing = ""
    if step_by_step:
        steps = (
            " Each step of training begins with the picture of a later one, so that it jumps "
            "little."
        )
    else:
        steps = ""
    return (
        f"{sampled}{missing}{view.method} keeps neighbours together and loses the rest: how far "
        "apart groups lie, how large "
        "they are and which way is up mean nothing. Try another seed, and trust only what stays "
        f"the same.{steps}"
    )


def trust_in_picture(view: ProjectionChoice, projected: Projection) -> str:
    """How far the picture's neighbours can be trusted."""
    score, judged = trustworthiness_of(view)
    return projections.trust(score, judged, len(projected.ids))


@st.cache_data(max_entries=64, show_spinner=False)
def trustworthiness_of(view: ProjectionChoice) -> tuple[float, int]:
    if view.method == "PCA":
        ready = pca_of(view)
    else:
        ready = placing_of(view).job.result()
    return embeddings.trustworthiness(_rows(view), ready)


def over_seeds(view: ProjectionChoice) -> None:
    """The pictures of several seeds, of which `view` is one, and how far they agree."""
    kinds = kinds_of(view.key)
    placings = [placing_of(replace(view, seed=int(seed))) for seed in projections.SEEDS]
    projections.over_seeds(placings, lambda picture: [kinds[i] for i in picture.ids], view.method)


def code(lm: LanguageModel, view: ProjectionChoice, token: int) -> str:
    """The lines of `gptviz` that compute what the page shows."""
    settings = f"{view.method!r}, dimensions={view.dimensions}" + (
        "" if view.method == "PCA" else f", seed={view.seed}"
    )
    opened = f"""{opening(lm, "from gptviz.interp.reading import embeddings")}
rows, labels = embeddings.vectors(lm.model, {view.space!r}), lm.tokenizer.labels()  # rows [vocab_size, d_model]
"""
    if lm.step is not None:
        opened += (
            f"last = embeddings.vectors(gptviz.load({lm.name!r}).model, {view.space!r})  # its "
            "axes serve every step\n"
        )
        settings += ", reference=last"
    if lm.step is None or view.method == "PCA":
        placed = f"embeddings.project(rows, labels, {settings}).points  # [token, component]"
    else:
        steps = way_back(scrubber.steps(lm.name), lm.step, len(lm.tokenizer.labels()))
        placed = f"""picture = None
for step in {steps}:  # each begins with the picture of the one before; None is the model as it was saved last
    of_step = embeddings.vectors(gptviz.load({lm.name!r}, step=step).model, {view.space!r})
    picture = embeddings.project(of_step, labels, {settings}, begin=picture)
picture.points  # [token, component]"""
    return f"""{opened}embeddings.neighbours(rows, labels, token={token}).similarity.values  # [neighbour]
{placed}"""


def tries(subject: Subject, view: ProjectionChoice) -> list[Try]:
    """The suggestions for this model, at this step of its training: all sentences are computed from
    its vectors.
    """
    offers = []
    names = tokens(view.key).names
    flat = {"method": "PCA", "dimensions": "2-D"}
    if steps := scrubber.steps(subject.key.name):
        notice = (
            f"Where the tokens lay at step {steps[0]:,}, the first that was kept. Press play and "
            "follow the grey line."
        )
        offers.append(Try("The first step", notice, {"step": str(steps[0]), "trail": True, **flat}))
    of_letters = not has_words(view.key)
    alike, other = vowel_cosines(view.key, view.space) if of_letters else (0.0, 0.0)
    if "e" in names and alike > other + CLEARLY:
        notice = (
            f"Two vowels have a cosine of {format_fixed(alike)} on average, a vowel and a "
            "consonant "
            f"{format_fixed(other)}: nobody told the "
            "model what a vowel is."
        ).replace("-", "−")
        offers.append(Try("Vowels", notice, {"token": "e", "method": "t-SNE", "dimensions": "2-D"}))
    if subject.kind.guesses == "label" and {"good", "bad"} <= set(names):
        rows = embeddings.vectors(subject.lm.model, "embedding")
        cosine = embeddings.mean_cosine(rows, [names.index("good")], [names.index("bad")])
        if cosine < -CLEARLY:
            notice = (
                f"“good” and “bad” point away from each other (cosine −{-cosine:.2f}). On which "
                "side are other words?"
            )
            offers.append(Try("Good against bad", notice, {"token": "bad", **flat}))
    together, chance = capitals_together(view.key, view.space) if of_letters else (0.0, 0.0)
    if "A" in names and together > max(0.5, chance + CLEARLY):
        notice = (
            f"The nearest token to a capital is a capital too in {percent(together)} of cases; by "
            "chance it would be "
            f"{percent(chance)}."
        )
        offers.append(Try("Capitals apart", notice, {"token": "A", **flat}))
    notice = (
        "Drag the picture: points that look like one group from one side may be two groups from "
        "another."
    )
    return [*offers, Try("Turn it", notice, {"method": "PCA", "dimensions": "3-D"})]


@st.cache_data(max_entries=64, show_spinner=False)
def vowel_cosines(key: ModelKey, space: str) -> tuple[float, float]:
    """The mean cosine of two vowels, and of a vowel and a consonant; NaN where there are none."""
    kinds = tokens(key).kinds
    vowels, consonants = (
        [i for i, kind in enumerate(kinds) if kind == wanted] for wanted in ("vowel", "consonant")
    )
    if len(vowels) < 2 or not consonants:
        return math.nan, math.nan
    rows = embeddings.vectors(language_model(key).model, space)
    return embeddings.mean_cosine(rows, vowels, vowels), embeddings.mean_cosine(
        rows, vowels, consonants
    )


@st.cache_data(max_entries=64, show_spinner=False)
def capitals_together(key: ModelKey, space: str) -> tuple[float, float]:
    """The share of capitals whose nearest token is a capital, and the share of capitals among all
    other tokens.
    """
    kinds = tokens(key).kinds
    capitals = [i for i, kind in enumerate(kinds) if kind == "capital"]
    rows = embeddings.vectors(language_model(key).model, space)
    return embeddings.share_beside_own(rows, capitals), (len(capitals) - 1) / max(1, len(kinds) - 1)
