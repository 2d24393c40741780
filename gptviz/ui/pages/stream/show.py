"""The controls and views of the page Residual stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.kit import scatter
from gptviz.figures.kit.format import brief, counted, fixed, percent
from gptviz.figures.reading import stream as figures
from gptviz.interp.reading import embeddings
from gptviz.interp.reading import stream as interp
from gptviz.interp.reading.embeddings import METHODS, Projection
from gptviz.labelled_array import LabelledArray
from gptviz.settings.address_values import Values, whole
from gptviz.ui.records.stream import VIEWS
from gptviz.ui.shell.subject import Subject
from gptviz.ui.views import projections
from gptviz.ui.views.read import Read
from gptviz.ui.widgets import addresses, controls, escaped, show_figure, theme
from gptviz.ui.widgets.headings import say_chosen

from .computed import (
    ALL,
    AS_IS,
    DIRECTION,
    MapChoice,
    cosines_of,
    labels,
    lengths_of,
    maps_of,
    median_of,
    placing_of,
    shares_of,
    stream_summary,
    trust_of,
)

_HEIGHT, _MAP_HEIGHT = 470, 460


def view_control() -> str:
    """The control `view`."""
    about = (
        "What is written: how much each attention and each MLP adds to the stream. Lengths: how long the vector of each position "
        "is after every layer. Directions: how far the vectors after two layers point the same way. Map: where the positions of "
        "the text lie after one layer."
    )
    return controls.select("View", VIEWS, key="view", help=about, segmented=True)


def position_control(subject: Subject, read: Read) -> int | None:
    """The tokens as chips: which of the positions shown is chosen, None for all of them together.

    The choice stands in the address as `position`. A click on the chosen one gives it up.
    """
    seen, tokens = stream_summary(subject.key, read), labels(subject.key, read)
    values = whole(seen.positions.start, seen.positions[-1])
    index = controls.linked(
        "position",
        lambda asked: None if asked == ALL else seen.positions.index(int(asked)),
        None,
        values=Values(values.words, lambda asked: asked == ALL or values.has(asked)),
        instead="all positions",
    )
    say_chosen("Position", "all together" if index is None else f"{seen.positions[index]}, “{tokens[index]}”")

    def pick(chosen: int) -> None:
        addresses.write("position", ALL if chosen == index else str(seen.positions[chosen]))

    token_strip(
        [Token(token) for token in tokens],
        key="stream positions",
        selected=index,
        on_pick=pick,
        label="The tokens of the text; choose one to see its position alone",
        legend="",
        height=64,
        spaced=subject.lm.tokenizer.is_spaced,
    )
    if index is None:
        st.caption("All positions together. Click a token to see its position alone.")
    else:
        st.caption(f"Position {seen.positions[index]}, “{escaped(tokens[index])}”. Click it again for all positions together.")
    return index


def map_controls(subject: Subject, read: Read) -> MapChoice:
    """The controls of the map."""
    layers = stream_summary(subject.key, read).layers
    with st.container(horizontal=True, vertical_alignment="bottom"):
        about = "PCA: a straight view, ready at once. t-SNE and UMAP bend the space so that neighbours stay together."
        method = controls.select("Projection", METHODS, key="method", help=about, segmented=True)
        about = (
            "Direction alone: every vector is brought to length 1 first. As they are: a few long vectors may take all the room. "
            "In many models the first position is one of them."
        )
        vectors = controls.select("Vectors", (DIRECTION, AS_IS), key="vectors", help=about, segmented=True)
        seed, compared = (0, False) if method == "PCA" else projections.seed_controls()
        names = [one.name for one in layers]
        about = "The layer after which the vectors are shown. With the arrow keys one can watch the text move through the model."
        layer = names[0]
        if len(names) > 1:
            layer = controls.notch("After the layer", names, key="layer", help=about, default=names[-1])
    return MapChoice(names.index(layer), method, vectors == DIRECTION, seed, compared)


def written(subject: Subject, read: Read, index: int | None) -> LabelledArray:
    """The amount that each sublayer writes, as bars; the numbers of the picture."""
    shares = shares_of(subject.key, read)
    values = median_of(shares, 2) if index is None else shares.values[:, :, index]
    shown = LabelledArray(values, shares.axes[:2], shares.unit)
    if not shown.axes[1].labels:
        st.info("This model has no blocks: nothing is written into the stream after the embedding.")
        return shown
    show_figure(
        figures.written(shown, theme(), height=_HEIGHT),
        key="written",
        alt=f"How much each of {counted(len(shown.axes[1].labels), 'sublayer')} writes, against the stream that it finds.",
    )
    st.caption(
        f"{interp.about(subject.lm.model.config)} Above: the length of what is written, divided by the length of the stream "
        "there; dotted: as long as the stream itself. Below: the part of it that points the way the stream already points, also "
        "divided by the stream’s length: +0.2 makes the stream a fifth longer, −0.2 a fifth shorter. The rest of what is written "
        "turns the stream. "
        f"{'The median over all positions.' if index is None else ''}"
    )
    return shown


def lengths(subject: Subject, read: Read) -> LabelledArray:
    """How long every vector is, as a heatmap; the numbers of the picture."""
    seen, shown = stream_summary(subject.key, read), lengths_of(subject.key, read)
    show_figure(
        figures.sizes(shown, [one.short for one in seen.layers], theme(), height=_HEIGHT, first=seen.positions.start),
        key="lengths",
        alt=f"The length of the vector of each of {counted(len(seen.positions), 'position')} after each of "
        f"{counted(len(seen.layers), 'layer')}.",
    )
    first, last = (float(median_of(shown, 1)[row]) for row in (0, -1))
    st.caption(
        f"A row is a layer, a column a position. The median length is {brief(first)} after the embedding and {brief(last)} at "
        f"the end. {interp.about_length(subject.lm.model.config)}"
    )
    return shown


def directions(subject: Subject, read: Read, index: int | None) -> LabelledArray:
    """How far the vectors after two layers point the same way, as a heatmap; the numbers of the picture."""
    seen, shown = stream_summary(subject.key, read), cosines_of(subject.key, read, index)
    show_figure(
        figures.directions(shown, [one.short for one in seen.layers], theme(), height=_HEIGHT),
        key="directions",
        alt=f"The cosine of the vectors after any two of {counted(len(seen.layers), 'layer')}.",
    )
    st.caption(
        f"1: the vectors after the two layers point the same way; 0: they have nothing in common. From the embedding to the end "
        f"the cosine is {fixed(float(shown.values[0, -1]))}".replace("-", "−")
        + (", as the mean over all positions." if index is None else ".")
    )
    return shown


def map_of(subject: Subject, read: Read, chosen: MapChoice, index: int | None) -> LabelledArray:
    """The positions as points, with what the picture loses; the numbers of the picture."""
    seen, tokens = stream_summary(subject.key, read), labels(subject.key, read)
    by_layer, pictures = maps_of(subject.key, read, chosen.unit)
    picture, made = pictures[chosen.layer], replace(chosen, method="PCA", seed=0, compared=False)
    if chosen.method != "PCA":
        asked = replace(chosen, compared=False)
        ready = projections.finished(placing_of(subject.key, read, asked), chosen.method)
        picture, made = (picture, made) if ready is None else (ready, asked)
    vectors, kinds = by_layer[chosen.layer], _kinds(subject, read)
    near = embeddings.neighbours(vectors, tokens, index, count=5).ids if index is not None and len(tokens) > 1 else ()
    ends = scatter.ends(np.concatenate([np.asarray(one.points.values) for one in (*pictures, picture)]))
    show_figure(
        scatter.cloud(picture.points, kinds, theme(), height=_MAP_HEIGHT, chosen=index, neighbours=near, ends=ends),
        key="stream map",
        alt=f"{counted(len(tokens), 'position')} of the text after {seen.layers[chosen.layer].title}, by {made.method}.",
    )
    st.caption(_what_is_lost(subject, read, made, picture, chosen))
    if chosen.compared and chosen.method != "PCA":
        placings = [placing_of(subject.key, read, replace(chosen, seed=int(seed), compared=False)) for seed in projections.SEEDS]
        projections.over_seeds(placings, lambda _: kinds, chosen.method)
    return picture.points


def _kinds(subject: Subject, read: Read) -> list[str]:
    kind = subject.lm.tokenizer.kind_of
    return [kind(read.ids[i]) for i in stream_summary(subject.key, read).positions]


def _what_is_lost(subject: Subject, read: Read, made: MapChoice, picture: Projection, chosen: MapChoice) -> str:
    seen = stream_summary(subject.key, read)
    score, judged = trust_of(subject.key, read, made)
    after, d_model = seen.layers[chosen.layer].title, subject.lm.model.config.d_model
    keeps = f"{made.method} keeps neighbours together and loses the rest: distances and sizes mean nothing."
    if made.method == "PCA":
        keeps = (
            f"After {after}, these 2 of {d_model} dimensions hold {percent(sum(picture.explained))} of the variance of the "
            "vectors; the rest is not in the picture."
        )
    trust = projections.trust(score, judged, len(seen.positions), "positions")
    return f"{keeps} {trust} Pictures of all layers are turned and resized to match each other, on the same axes."
