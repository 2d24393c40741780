"""The views of the page Embeddings: the map of all tokens, and the neighbours of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from gptviz.figures.kit import scatter
from gptviz.figures.kit.format import counted, percent
from gptviz.interp.reading import embeddings
from gptviz.interp.reading.embeddings import Projection
from gptviz.model import Config
from gptviz.ui.shell.subject import ModelKey, Subject, scrubber
from gptviz.ui.views import projections
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import controls, show_figure, theme

from .computed import ProjectionChoice, neighbours_of, placing_of, trails_of, trustworthiness_of


def spaces(config: Config) -> tuple[str, ...]:
    """The matrices that can be shown: a tied model has one for both, and a classifier has no unembedding."""
    return embeddings.SPACES[:1] if config.tied or config.kind == "classifier" else embeddings.SPACES


def space_name(space: str, config: Config) -> str:
    """The name of the vectors on screen."""
    return " = ".join(embeddings.SPACES) if config.tied else space


def view_controls(key: ModelKey, config: Config) -> tuple[ProjectionChoice, bool, bool]:
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
        )
        about = (
            "PCA: a straight view, ready at once. t-SNE and UMAP: the space is bent so that neighbours stay together; slower "
            "with many tokens."
        )
        method = controls.select("Projection", embeddings.METHODS, key="method", help=about, segmented=True)
        about = "A 3-D picture turns under the pointer."
        solid = controls.select("Picture", ("2-D", "3-D"), key="dimensions", help=about, segmented=True) == "3-D"
        seed, compared, trail = 0, False, False
        if method != "PCA":
            seed, compared = projections.seed_controls()
        elif scrubber.steps(key.name):
            about = "The path of the chosen token during training, as a grey line."
            trail = controls.switch("Trails", key="trail", help=about)
    return ProjectionChoice(key, space, method, 3 if solid else 2, seed), trail, compared


def token_control(subject: Subject) -> int:
    """The control `token`: the id of the chosen one."""
    names = tokens(subject.key).names
    about = "Type to search. In 2-D, a click on a point chooses it too."
    first = "good" if subject.kind == "classifier" and "good" in names else "e"
    return names.index(controls.select("Token", names, key="token", default=first, help=about))


def over_seeds(view: ProjectionChoice) -> None:
    """The pictures of several seeds, of which `view` is one, and how far they agree."""
    kinds = tokens(view.key).kinds
    placings = [placing_of(replace(view, seed=int(seed))) for seed in projections.SEEDS]
    projections.over_seeds(placings, lambda picture: [kinds[i] for i in picture.ids], view.method)


def bars(view: ProjectionChoice, token: int, *, height: int) -> None:
    """The nearest neighbours of `token`."""
    near, kinds = neighbours_of(view.key, view.space, token), tokens(view.key).kinds
    show_figure(
        scatter.neighbour_bars(near.similarity, [kinds[i] for i in near.ids], theme(), height=height),
        key="neighbours",
        alt=f"The tokens nearest to {tokens(view.key).labels[token]}: {', '.join(near.similarity.axes[0].labels)}.",
    )


def drawn(view: ProjectionChoice, projected: Projection, token: int, prompt: Sequence[int]) -> Projection:
    """What is drawn of a picture: of a large vocabulary a sample, with `token`, its neighbours and the tokens of `prompt`."""
    return projected.drawn([token, *neighbours_of(view.key, view.space, token).ids, *prompt])


def cloud(
    view: ProjectionChoice, projected: Projection, token: int, *, height: int, trail: bool = False, prompt: Sequence[int] = ()
) -> None:
    """The tokens as points: `token` with lines to its neighbours, those of `prompt` in thin rings; a click chooses one."""
    vocabulary, near = tokens(view.key), neighbours_of(view.key, view.space, token)
    trained = trails_of(view) if view.method == "PCA" else None

    def pick(point: Sequence[int]) -> None:
        st.session_state["token"] = vocabulary.names[projected.ids[point[0]]]

    figure = scatter.cloud(
        projected.points,
        [vocabulary.kinds[i] for i in projected.ids],
        theme(),
        height=height,
        axes=[f"component {i} ({percent(share)})" for i, share in enumerate(projected.explained, 1)],
        chosen=projected.index(token),
        neighbours=[i for i in map(projected.index, near.ids) if i is not None],
        ends=scatter.ends(trained.points) if trained else (),
        set_out=trained.points[-1][projected.ids] if trained else None,
        trail=trained.trail(token) if trained and trail else None,
        read=[i for i in map(projected.index, sorted(set(prompt))) if i is not None],
    )
    show_figure(
        figure,
        key="map",
        choose=pick,
        alt=f"{counted(len(projected.ids), 'token')} of the {view.space} by {view.method}, coloured and shaped by kind.",
    )


def what_is_lost(projected: Projection, drawn: Projection, view: ProjectionChoice, token: int, d_model: int) -> str:
    """A line on what a projection keeps of the original space and what it loses, how much of it is `drawn`, and on whether
    `token` is in it.
    """
    if view.method == "PCA":
        explained = sum(projected.explained)
        when = " when training ends (the same axes at every step)" if scrubber.steps(view.key.name) else ""
        here = "" if view.key.step is None else " of this step"
        count = f"{len(drawn.ids):,} of the {len(projected.ids):,} tokens"
        some = f"Drawn are {count}: a sample, the chosen token with its neighbours, and those of the prompt. "
        some = some if len(drawn.ids) < len(projected.ids) else ""
        return (
            f"{some}PCA keeps those {view.dimensions} of {d_model} directions in which the tokens differ most{when}: "
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


def trust_in_picture(view: ProjectionChoice, projected: Projection) -> str:
    """How far the picture's neighbours can be trusted."""
    score, judged = trustworthiness_of(view)
    return projections.trust(score, judged, len(projected.ids))
