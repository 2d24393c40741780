"""What the Residual stream page shows of a text, computed once for all sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from gptviz.address_values import Values, whole
from gptviz.components.token_strip import Token, token_strip
from gptviz.figures import scatter
from gptviz.figures import stream as figures
from gptviz.figures.format import counted, fixed, percent
from gptviz.interp import embeddings
from gptviz.interp import stream as interp
from gptviz.interp.embeddings import METHODS, Projection, Vectors
from gptviz.interp.stream import Stream
from gptviz.labelled_array import LabelledArray
from gptviz.ui.shell import reading
from gptviz.ui.shell.models import ModelKey, language_model
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.theme import theme
from gptviz.ui.views import projections
from gptviz.ui.views.decoder_text import Read, opening_code
from gptviz.ui.views.projections import Job, begun
from gptviz.ui.widgets import addresses, controls, stoppable
from gptviz.ui.widgets.figure import show_figure
from gptviz.ui.widgets.headings import say_chosen
from gptviz.ui.widgets.markdown import escaped
from gptviz.ui.widgets.tries import Try

WRITTEN, LENGTHS, DIRECTIONS, MAP = "What is written", "Lengths", "Directions", "Map"
VIEWS = (WRITTEN, LENGTHS, DIRECTIONS, MAP)
DIRECTION, AS_IS = "direction alone", "as they are"
ALL = "all"
# Of a longer text the end is shown.
MOST_POSITIONS = 256
# A position is called long where its vector is so many times as long as the median.
LONG = 3.0
_HEIGHT, _MAP_HEIGHT = 470, 460

HOW = (
    r"""
The stream $x_l$ is recorded after the embedding and after every sublayer, in the pass that makes the model's prediction (the taps
`resid_pre`, `resid_self`, `resid_mid` and `resid_post`; `interp/layers.py`). A sublayer writes $\delta_l = x_{l+1} - x_l$; where
attention and MLP read the same stream, $\delta$ is what the tap `out` of each has.

- **What is written**: the size is $\lVert\delta_l\rVert / \lVert x_l\rVert$; along the stream is the projection
  $\delta_l \cdot x_l / \lVert x_l\rVert^2$. For all positions together it is the median (`shares`).
- **Lengths**: $\lVert x_l\rVert$, the root of the sum of squares (`lengths`).
- **Directions**: the cosine of $x_l$ and $x_m$ of the same position; for all positions together the mean (`cosines`).
- **Map**: the vectors of all positions after one layer. By PCA each layer is seen along the two directions in which its own
  vectors differ most; every picture is turned, mirrored and resized to match that of the layer before (orthogonal Procrustes),
  and all have the same axes (`maps`). t-SNE and UMAP start from that layer's own PCA, and are matched to it (`map_after`).
"""
    + projections.HOW_STABLE
    + "\nComputed by the functions named, in `gptviz/interp/stream.py`."
)
LIMITS = """A long vector is not an important one: what reads it through a norm does not see its length. A sublayer that writes
little may decide the guess, if it writes in a direction that matters. A map in two dimensions cannot hold what many can, and as
it is turned and resized, up, left and far mean nothing."""


@dataclass(frozen=True)
class Chosen:
    """What the controls of the map say.

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
@stoppable.resource("Reading every layer", max_entries=3)
def stream_of(key: ModelKey, read: Read) -> Stream:
    """The stream of a text."""
    return interp.stream(language_model(key).model, read.ids, read.source, last=MOST_POSITIONS)


def labels(key: ModelKey, read: Read) -> tuple[str, ...]:
    """The visible forms of the tokens at the positions shown."""
    label = language_model(key).tokenizer.label
    return tuple(label(read.ids[i]) for i in stream_of(key, read).positions)


@st.cache_data(max_entries=16, show_spinner=False)
def _shares(key: ModelKey, read: Read) -> LabelledArray:
    return interp.shares(stream_of(key, read), labels(key, read))


def _median(table: LabelledArray, axis: int) -> npt.NDArray[np.float64]:
    return np.asarray(np.median(np.asarray(table.values, np.float64), axis=axis))


@st.cache_data(max_entries=16, show_spinner=False)
def _lengths(key: ModelKey, read: Read) -> LabelledArray:
    return interp.lengths(stream_of(key, read), labels(key, read))


@st.cache_data(max_entries=32, show_spinner=False)
def _cosines(key: ModelKey, read: Read, index: int | None) -> LabelledArray:
    return interp.cosines(stream_of(key, read), index)


@st.cache_resource(max_entries=8, show_spinner="Placing the positions")
def _maps(key: ModelKey, read: Read, unit: bool) -> tuple[list[Vectors], list[Projection]]:
    """The vectors after each layer, and their pictures by PCA."""
    by_layer = interp.rows(stream_of(key, read), unit=unit)
    return by_layer, interp.maps(by_layer, labels(key, read))


@st.cache_resource(max_entries=256, show_spinner=False)
def _job(key: ModelKey, read: Read, chosen: Chosen) -> Job:
    """A picture by t-SNE or UMAP, computed once for all sessions."""
    by_layer, pictures = _maps(key, read, chosen.unit)
    tokens, vectors, like = labels(key, read), by_layer[chosen.layer], pictures[chosen.layer]
    return begun(lambda: interp.map_after(vectors, tokens, chosen.method, chosen.seed, like), len(tokens))


@st.cache_data(max_entries=64, show_spinner=False)
def _trust(key: ModelKey, read: Read, chosen: Chosen) -> tuple[float, int]:
    by_layer, pictures = _maps(key, read, chosen.unit)
    picture = pictures[chosen.layer] if chosen.method == "PCA" else _job(key, read, chosen).result.result()
    return embeddings.trustworthiness(by_layer[chosen.layer], picture)


def view_control(notices: Any) -> str:
    """The control `view`."""
    about = (
        "What is written: how much each attention and each MLP adds to the stream. Lengths: how long the vector of each position "
        "is after every layer. Directions: how far the vectors after two layers point the same way. Map: where the positions of "
        "the text lie after one layer."
    )
    return controls.select("View", VIEWS, key="view", help=about, segmented=True, notices=notices)


def position_control(subject: Subject, read: Read, notices: Any) -> int | None:
    """The tokens as chips: which of the positions shown is chosen, None for all of them together.

    The choice stands in the address as `position`. A click on the chosen one gives it up.
    """
    seen, tokens = stream_of(subject.key, read), labels(subject.key, read)
    asked = st.query_params.get("position", ALL)
    values = whole(seen.positions.start, seen.positions[-1])
    addresses.takes("position", Values(values.words, lambda text: text == ALL or values.has(text)))
    is_there = values.has(asked)
    if asked != ALL and not is_there:
        notices.warning(
            f"The address asks for position = “{escaped(asked[:80])}”, which is not in this text; all positions are shown.",
            icon=":material/link_off:",
        )
    index = seen.positions.index(int(asked)) if is_there else None
    say_chosen("Position", "all together" if index is None else f"{asked}, “{tokens[index]}”")

    def pick(chosen: int) -> None:
        st.query_params["position"] = ALL if chosen == index else str(seen.positions[chosen])

    token_strip(
        [Token(token) for token in tokens],
        key="stream positions",
        selected=index,
        on_pick=pick,
        label="The tokens of the text; choose one to see its position alone",
        legend="",
        height=64,
        spaced=reading.is_spaced(subject.lm),
    )
    if index is None:
        st.caption("All positions together. Click a token to see its position alone.")
    else:
        st.caption(f"Position {asked}, “{escaped(tokens[index])}”. Click it again for all positions together.")
    return index


def map_controls(subject: Subject, read: Read, notices: Any) -> Chosen:
    """The controls of the map."""
    layers = stream_of(subject.key, read).layers
    with st.container(horizontal=True, vertical_alignment="bottom"):
        about = "PCA: a straight view, ready at once. t-SNE and UMAP bend the space so that neighbours stay together."
        method = controls.select("Projection", METHODS, key="method", help=about, segmented=True, notices=notices)
        about = (
            "Direction alone: every vector is brought to length 1 first. As they are: a few long vectors may take all the room. "
            "In many models the first position is one of them."
        )
        vectors = controls.select("Vectors", (DIRECTION, AS_IS), key="vectors", help=about, segmented=True, notices=notices)
        seed, compared = (0, False) if method == "PCA" else projections.seed_controls(notices)
    names = [one.name for one in layers]
    about = "The layer after which the vectors are shown. With the arrow keys one can watch the text move through the model."
    layer = names[0]
    if len(names) > 1:
        layer = controls.notch("After the layer", names, key="layer", help=about, default=names[-1], notices=notices)
    return Chosen(names.index(layer), method, vectors == DIRECTION, seed, compared)


def written(subject: Subject, read: Read, index: int | None) -> LabelledArray:
    """What each sublayer writes, as bars; the numbers of the picture."""
    shares = _shares(subject.key, read)
    values = _median(shares, 2) if index is None else shares.values[:, :, index]
    shown = LabelledArray(values, shares.axes[:2], shares.unit)
    if not shown.axes[1].labels:
        st.info("This model has no blocks: nothing is written into the stream after the embedding.")
        return shown
    show_figure(
        figures.written(shown, theme(), height=_HEIGHT),
        key="written",
        config={"displaylogo": False},
        alt=f"How much each of {counted(len(shown.axes[1].labels), 'sublayer')} writes, against the stream that it finds.",
    )
    st.caption(
        f"{interp.about(subject.lm.model.config)} Above: the length of what is written, divided by the length of the stream "
        "there; dotted: as long as the stream itself. Below: its projection on the stream, negative where it takes away from "
        "what is there. "
        f"{'The median over all positions.' if index is None else ''}"
    )
    return shown


def lengths(subject: Subject, read: Read) -> LabelledArray:
    """How long every vector is, as a heatmap; the numbers of the picture."""
    seen, shown = stream_of(subject.key, read), _lengths(subject.key, read)
    show_figure(
        figures.sizes(shown, [one.short for one in seen.layers], theme(), height=_HEIGHT, first=seen.positions.start),
        key="lengths",
        config={"displaylogo": False},
        alt=f"The length of the vector of each of {counted(len(seen.positions), 'position')} after each of "
        f"{counted(len(seen.layers), 'layer')}.",
    )
    first, last = (float(_median(shown, 1)[row]) for row in (0, -1))
    st.caption(
        f"A row is a layer, a column a position. The median length is {first:.3g} after the embedding and {last:.3g} at the end. "
        f"{interp.about_length(subject.lm.model.config)}"
    )
    return shown


def directions(subject: Subject, read: Read, index: int | None) -> LabelledArray:
    """How far the vectors after two layers point the same way, as a heatmap; the numbers of the picture."""
    seen, shown = stream_of(subject.key, read), _cosines(subject.key, read, index)
    show_figure(
        figures.directions(shown, [one.short for one in seen.layers], theme(), height=_HEIGHT),
        key="directions",
        config={"displaylogo": False},
        alt=f"The cosine of the vectors after any two of {counted(len(seen.layers), 'layer')}.",
    )
    st.caption(
        f"1: the vectors after the two layers point the same way; 0: they have nothing in common. From the embedding to the end "
        f"the cosine is {fixed(float(shown.values[0, -1]))}".replace("-", "−")
        + (", as the mean over all positions." if index is None else ".")
    )
    return shown


def map_of(subject: Subject, read: Read, chosen: Chosen, index: int | None) -> LabelledArray:
    """The positions as points, with what the picture loses; the numbers of the picture."""
    seen, tokens = stream_of(subject.key, read), labels(subject.key, read)
    by_layer, pictures = _maps(subject.key, read, chosen.unit)
    picture, made = pictures[chosen.layer], replace(chosen, method="PCA", seed=0, compared=False)
    if chosen.method != "PCA":
        asked = replace(chosen, compared=False)
        ready = projections.finished(_job(subject.key, read, asked), chosen.method)
        picture, made = (picture, made) if ready is None else (ready, asked)
    vectors, kinds = by_layer[chosen.layer], _kinds(subject, read)
    near = embeddings.neighbours(vectors, tokens, index, count=5).ids if index is not None and len(tokens) > 1 else ()
    show_figure(
        scatter.cloud(
            picture.points, kinds, theme(), height=_MAP_HEIGHT, chosen=index, neighbours=near, ends=_ends(pictures, picture)
        ),
        key="stream map",
        config={"displaylogo": False},
        alt=f"{counted(len(tokens), 'position')} of the text after {seen.layers[chosen.layer].title}, by {made.method}.",
    )
    st.caption(_what_is_lost(subject, read, made, picture, chosen))
    if chosen.compared and chosen.method != "PCA":
        jobs = [_job(subject.key, read, replace(chosen, seed=int(seed), compared=False)) for seed in projections.SEEDS]
        projections.over_seeds(jobs, lambda _: kinds, chosen.method)
    return picture.points


def _kinds(subject: Subject, read: Read) -> list[str]:
    kind = subject.lm.tokenizer.kind_of
    return [kind(read.ids[i]) for i in stream_of(subject.key, read).positions]


def _ends(pictures: Sequence[Projection], picture: Projection) -> list[tuple[float, float]]:
    """Where both axes begin and end, the same for all layers."""
    every = np.concatenate([np.asarray(one.points.values) for one in (*pictures, picture)])
    room = 0.06 * float((every.max(0) - every.min(0)).max()) or 1.0
    return [(float(low) - room, float(high) + room) for low, high in zip(every.min(0), every.max(0), strict=True)]


def _what_is_lost(subject: Subject, read: Read, made: Chosen, picture: Projection, chosen: Chosen) -> str:
    seen = stream_of(subject.key, read)
    score, judged = _trust(subject.key, read, made)
    after, d_model = seen.layers[chosen.layer].title, subject.lm.model.config.d_model
    keeps = f"{made.method} keeps neighbours together and loses the rest: distances and sizes mean nothing."
    if made.method == "PCA":
        keeps = (
            f"After {after}, these 2 of {d_model} dimensions hold {percent(sum(picture.explained))} of the variance of the "
            "vectors; the rest is not in the picture."
        )
    trust = projections.trust(score, judged, len(seen.positions), "positions")
    return f"{keeps} {trust} Pictures of all layers are turned and resized to match each other, on the same axes."


def to_try(subject: Subject, read: Read) -> list[Try]:
    """What to try with this model and text; what is said is computed from its stream."""
    seen = stream_of(subject.key, read)
    if not seen.writers or not bool(np.isfinite(seen.states.numpy()).all()):
        return []
    return [one for one in (_loudest(subject, read), _long(subject, read), _turn(subject, read), _spread(subject, read)) if one]


def _title(seen: Stream, writer: str) -> str:
    by_name = {layer.name: layer.title for layer in seen.layers}
    _, block, part = writer.split(".")
    return by_name.get(writer, f"the {figures.WRITERS[part][-1]} of block {block}")


def _loudest(subject: Subject, read: Read) -> Try | None:
    """The sublayer that writes most against the stream it finds, and the one that writes least, where there are two."""
    seen, median = stream_of(subject.key, read), _median(_shares(subject.key, read), 2)[0]
    most, least = int(median.argmax()), int(median.argmin())
    if most == least:
        return None
    notice = (
        f"Measured by the stream that it finds, {_title(seen, seen.writers[most])} writes most ({median[most]:.3g} times its "
        f"length) and {_title(seen, seen.writers[least])} least ({median[least]:.3g})."
    )
    return Try("Who writes most", notice, {"view": WRITTEN}, {"position": ALL})


def _long(subject: Subject, read: Read) -> Try | None:
    """A position whose vector becomes far longer than the others."""
    seen, shown = stream_of(subject.key, read), _lengths(subject.key, read)
    ratio = shown.values / np.maximum(_median(shown, 1)[:, None], 1e-12)
    layer, index = (int(one) for one in np.unravel_index(ratio.argmax(), ratio.shape))
    if ratio[layer, index] < LONG:
        return None
    notice = (
        f"After {seen.layers[layer].title} the vector of position {seen.positions[index]}, "
        f"“{escaped(shown.axes[1].labels[index])}”, is {ratio[layer, index]:.3g} times as long as the median."
    )
    return Try("A long vector", notice, {"view": LENGTHS})


def _turn(subject: Subject, read: Read) -> Try:
    """The sublayer that turns the stream most."""
    seen, cosines = stream_of(subject.key, read), _cosines(subject.key, read, None).values
    steps = cosines.diagonal(1)
    at = int(steps.argmin())
    notice = (
        f"{seen.layers[at + 1].title[:1].upper()}{seen.layers[at + 1].title[1:]} turns the stream most: before and after it the "
        f"vectors have a cosine of {fixed(float(steps[at]))} on average."
    ).replace("-", "−")
    return Try("The sharpest turn", notice, {"view": DIRECTIONS}, {"position": ALL})


def _spread(subject: Subject, read: Read) -> Try | None:
    """How much of the variance two directions hold at both ends of the model."""
    if len(stream_of(subject.key, read).positions) < embeddings.FEWEST_PLACED:
        return None
    _, pictures = _maps(subject.key, read, True)
    first, last = (sum(picture.explained) for picture in (pictures[0], pictures[-1]))
    notice = (
        f"After the embedding two directions hold {percent(first)} of the variance of the positions, at the end "
        f"{percent(last)}. Move the slider from layer to layer and watch which tokens come together."
    )
    layer = stream_of(subject.key, read).layers[0].name
    return Try("From tokens to guesses", notice, {"view": MAP, "method": "PCA", "vectors": DIRECTION, "layer": layer})


def code(subject: Subject, read: Read, view: str, index: int | None, chosen: Chosen | None) -> str:
    """The lines of `gptviz` that compute the numbers of the picture."""
    last = "" if len(read.ids) <= MOST_POSITIONS else f", last={MOST_POSITIONS}"
    beside = "" if read.source is None else ", source"
    opened = opening_code(subject, read, *(["import numpy as np"] if view == WRITTEN else []), "from gptviz.interp import stream")
    begin = f"""{opened}
seen = stream.stream(lm.model, ids{beside}{last})
tokens = [lm.tokenizer.label(ids[i]) for i in seen.positions]
"""
    if view == WRITTEN:
        of = "np.median(shares, axis=2)" if index is None else f"shares[:, :, {index}]"
        return f"{begin}shares = stream.shares(seen, tokens).values  # [quantity, sublayer, position]\nshown = {of}"
    if view == LENGTHS:
        return f"{begin}shown = stream.lengths(seen, tokens).values  # [layer, position]"
    if view == DIRECTIONS or chosen is None:
        return f"{begin}shown = stream.cosines(seen, {index}).values  # [layer, layer]"
    begin += f"by_layer = stream.rows(seen, unit={chosen.unit})  # [position, d_model] each\n"
    begin += "pictures = stream.maps(by_layer, tokens)\n"
    if chosen.method == "PCA":
        return f"{begin}shown = pictures[{chosen.layer}].points.values  # [position, component]"
    at = f"by_layer[{chosen.layer}], tokens, {chosen.method!r}, {chosen.seed}, pictures[{chosen.layer}]"
    return f"{begin}shown = stream.map_after({at}).points.values  # [position, component]"
