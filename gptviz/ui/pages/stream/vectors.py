"""What happens to the vector of a token: maps with its length, and what is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from gptviz.components.token_strip import Token, token_strip
from gptviz.figures.kit import scatter
from gptviz.figures.kit.format import brief, format_count, percent
from gptviz.figures.reading import stream as figures
from gptviz.interp.reading import embeddings
from gptviz.interp.reading import stream as interp
from gptviz.interp.reading.embeddings import Projection, Vectors
from gptviz.interp.reading.stream import StreamSummary
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import reading
from gptviz.settings.address_values import Values, whole_number
from gptviz.settings.kinds import Projector
from gptviz.ui.records.stream import GONE, MAP, PROBES, STEERING, VIEWS
from gptviz.ui.shell.subject import AskedAnalysis, Subject, ask, language_model
from gptviz.ui.shell.subject.unit_titles import name_with
from gptviz.ui.views import projections
from gptviz.ui.views.projections import Placing, begin_projection
from gptviz.ui.views.read import read_by
from gptviz.ui.widgets import (
    Try,
    addresses,
    capitalise_text,
    controls,
    escape_markdown,
    in_quotes,
    say_answer,
    show_figure,
    theme,
)
from gptviz.ui.widgets.headings import say_chosen

_HEIGHT = 470
_MAP_HEIGHT = 460
DIRECTION = "direction alone"
AS_IS = "as they are"
ALL = "all"
# The keys of the address that only the controls of the map have.
OF_MAP = ("layer", "method", "vectors", "seed", "seeds")
# Of a longer text the end is shown.
MOST_POSITIONS = 256
# The vector of a position is called long if it is this many times as long as the median.
LONG = 3.0


@dataclass(frozen=True)
class MapChoice:
    """The values of the controls of the map."""

    layer: int  #: the index of the layer
    method: Projector  #: what places the vectors
    unit: bool  #: whether all vectors are brought to length 1
    seed: int  #: of t-SNE and UMAP
    compared: bool  #: whether the pictures of several seeds are shown


def view_control(*, is_decoder: bool) -> str:
    """The control `view`; some views are only about decoders."""
    hint = (
        "What is written: how much each attention and each MLP adds to the stream. Map: where the "
        "positions of the text lie "
        "after one layer, and how long their vectors are. Probes: what can be read from the "
        "stream after each layer. "
        "Steering: what the model says with a direction between texts added to the stream."
    )
    views = VIEWS if is_decoder else [view for view in VIEWS if view not in (PROBES, STEERING)]
    controls.open_with("view", MAP, views, OF_MAP)
    return controls.select("View", views, key="view", help=hint, segmented=True, gone=GONE)


def ask_stream(subject: Subject) -> AskedAnalysis[StreamSummary]:
    """The stream of the text; if that is long, of its end."""
    is_long = len(read_by(subject).ids) > MOST_POSITIONS
    return ask(
        subject, reading.stream, "Reading every layer", last=MOST_POSITIONS if is_long else None
    )


def labels(asked: AskedAnalysis[StreamSummary]) -> tuple[str, ...]:
    """The visible forms of the tokens at the positions shown."""
    return tuple(map(language_model(asked.key).tokenizer.label, asked.value.ids))


def position_control(
    subject: Subject, asked: AskedAnalysis[StreamSummary], usual: int | None
) -> int | None:
    """The tokens as chips: which of the positions shown is chosen, `usual` unless the address says
    another; None for all of them together.

    The choice stands in the address as `position`. A click on the chosen one gives it up.
    """
    seen = asked.value
    tokens = labels(asked)
    values = whole_number(seen.positions.start, seen.positions[-1])
    index = controls.linked_choice(
        "position",
        lambda asked: None if asked == ALL else seen.positions.index(int(asked)),
        usual,
        values=Values(values.words, lambda asked: asked == ALL or values.has(asked)),
        instead="all positions" if usual is None else "the last position",
    )
    say_chosen(
        "Position",
        "all together" if index is None else f"{seen.positions[index]}, “{tokens[index]}”",
    )

    def pick(chosen: int) -> None:
        addresses.write("position", ALL if chosen == index else str(seen.positions[chosen]))

    token_strip(
        [Token(token) for token in tokens],
        key="stream positions",
        selected=index,
        on_pick=pick,
        label="The tokens of the text; choose one to see only its position",
        legend="",
        height=64,
        spaced=subject.lm.tokenizer.is_spaced,
    )
    if index is None:
        st.caption("All positions together. Click a token to see only its position.")
    else:
        st.caption(
            f"Position {seen.positions[index]}, {in_quotes(tokens[index])}. Click it again for "
            "all positions together."
        )
    return index


def draw_written(
    subject: Subject, asked: AskedAnalysis[StreamSummary], index: int | None
) -> LabelledArray:
    """The amount that each sublayer writes, as bars; the numbers of the picture."""
    shown = interp.at_position(shares_of(asked), index)
    if not shown.axes[1].labels:
        st.info("This model has no blocks: nothing is written into the stream after the embedding.")
        return shown
    guesses: list[str] = []
    if index is not None:
        names = labels_of(asked, guesses_at(asked, index))
        guesses = [names[layer] for layer in interp.layers_of_writers(asked.value)]
    show_figure(
        figures.draw_written(shown, theme(), height=_HEIGHT, guesses=guesses),
        key="written",
        alt=f"How much each of {format_count(len(shown.axes[1].labels), 'sublayer')} writes, against "
        "the stream that it finds.",
    )
    if guesses:
        more = "After → stands what the model would guess if it ended there."
    else:
        more = "The median over all positions."
    st.caption(
        f"{interp.explain_written(subject.lm.model.config)} A bar: the length of what is written, "
        f"divided by the length of the token’s vector before: at 1 as much as was there. {more}"
    )
    return shown


@st.cache_data(max_entries=64, show_spinner=False)
def guesses_at(asked: AskedAnalysis[StreamSummary], index: int) -> tuple[int, ...]:
    """What the model would guess at a position after each layer, [layer]."""
    return interp.read_guesses(language_model(asked.key).model, asked.value, index)


def labels_of(asked: AskedAnalysis[StreamSummary], ids: Sequence[int]) -> list[str]:
    return list(map(language_model(asked.key).tokenizer.label, ids))


def what_comes_out(asked: AskedAnalysis[StreamSummary], index: int) -> str | None:
    """What the token at a position is turned into, and from which layer on, in a sentence; None
    where there is no layer but the embedding.
    """
    seen = asked.value
    guesses = guesses_at(asked, index)
    if len(guesses) < 2:
        return None
    goes_in = in_quotes(labels(asked)[index])
    comes_out = in_quotes(labels_of(asked, guesses[-1:])[0])
    before = [layer for layer, guess in enumerate(guesses) if guess != guesses[-1]]
    start = f"{goes_in} goes in, {comes_out} comes out:"
    if not before:
        return f"{start} already after the embedding its vector says {comes_out}."
    settled = seen.layers[before[-1] + 1]
    title = escape_markdown(name_with(asked.key)(settled.name, settled.title))
    if settled == seen.layers[-1]:
        return f"{start} only after {title}, the last part, its vector says {comes_out}."
    return f"{start} from {title} on, its vector says {comes_out}."


@st.cache_data(max_entries=16, show_spinner=False)
def shares_of(asked: AskedAnalysis[StreamSummary]) -> LabelledArray:
    return interp.shares(asked.value, labels(asked))


def say_what_happens(asked: AskedAnalysis[StreamSummary], index: int | None) -> None:
    """What the token at a position is turned into, and which sublayer changes it most; of all
    positions only the latter, by the medians.
    """
    seen = asked.value
    comes_out = None if index is None else what_comes_out(asked, index)
    sizes = interp.at_position(shares_of(asked), index).values[0]
    changes = ""
    if len(seen.writers) > 1 and sizes.max() > sizes.min():
        most = seen.writers[int(sizes.argmax())]
        title = capitalise_text(escape_markdown(name_with(asked.key)(most, _title(seen, most))))
        changes = (
            f"{title} changes it most: it adds {brief(sizes.max())} times as much as was there."
        )
    if comes_out is not None:
        say_answer(comes_out, changes)
    elif changes:
        say_answer(
            changes.replace(" changes it most", " changes a token most"),
            "A token is a list of numbers, a vector, on its way; compared are lengths, their "
            "medians over the tokens.",
        )


def stop_unless_numbers(asked: AskedAnalysis[StreamSummary]) -> None:
    """End the page with a message if the vectors of a damaged model are not numbers."""
    if not np.isfinite(asked.value.states.numpy()).all():
        about = (
            "the vectors of its stream are not all numbers: its weights or edits are so large "
            "that they overflow"
        )
        way_out = "Choose another model or step above, or take its edits away."
        st.error(escape_markdown(f"{asked.key.name}: {about}. {way_out}"))
        st.stop()


def _title(seen: StreamSummary, writer: str) -> str:
    by_name = {layer.name: layer.title for layer in seen.layers}
    _, block, part = writer.split(".")
    return by_name.get(writer, f"the {figures.WRITERS[part][-1]} of block {block}")


@st.cache_data(max_entries=16, show_spinner=False)
def lengths_of(asked: AskedAnalysis[StreamSummary]) -> LabelledArray:
    return interp.lengths(asked.value, labels(asked))


def map_controls(seen: StreamSummary) -> MapChoice:
    """The controls of the map."""
    method = controls.choose(Projector, key="method")
    hint = (
        "Direction alone: every vector is brought to length 1 first. As they are: a few long "
        "vectors may take all the room. "
        "In many models the first position is one of them."
    )
    vectors = controls.select(
        "Vectors", (DIRECTION, AS_IS), key="vectors", help=hint, segmented=True
    )
    seed, compared = (0, False) if method == "PCA" else projections.seed_controls()
    names = [layer.name for layer in seen.layers]
    hint = (
        "The layer after which the vectors are shown. With the arrow keys one can watch the text "
        "move through the model."
    )
    layer = names[0]
    if len(names) > 1:
        layer = controls.notch("After the layer", names, key="layer", help=hint, default=names[-1])
    return MapChoice(names.index(layer), method, vectors == DIRECTION, seed, compared)


def map_of(
    subject: Subject, asked: AskedAnalysis[StreamSummary], chosen: MapChoice, index: int | None
) -> LabelledArray:
    """The positions as points, with what the picture loses; the numbers of the picture."""
    seen = asked.value
    tokens = labels(asked)
    by_layer, pictures = maps_of(asked, chosen.unit)
    picture = pictures[chosen.layer]
    made = replace(chosen, method="PCA", seed=0, compared=False)
    if chosen.method != "PCA":
        bent = replace(chosen, compared=False)
        ready = projections.finished_projection(placing_of(asked, bent), chosen.method)
        picture, made = (picture, made) if ready is None else (ready, bent)
    vectors = by_layer[chosen.layer]
    kinds = list(map(subject.lm.tokenizer.kind_of, seen.ids))
    lengths = lengths_of(asked)
    if index is not None and len(tokens) > 1:
        near = embeddings.neighbours(vectors, tokens, index, count=5).ids
    else:
        near = ()
    ends = scatter.axis_ends(
        np.concatenate([np.asarray(one.points.values) for one in (*pictures, picture)])
    )
    show_figure(
        scatter.cloud(
            picture.points,
            kinds,
            theme(),
            height=_MAP_HEIGHT,
            chosen=index,
            neighbours=near,
            ends=ends,
            notes=[f"length {brief(one)}" for one in lengths.values[chosen.layer]],
        ),
        key="stream map",
        alt=f"{format_count(len(tokens), 'position')} of the text after "
        f"{seen.layers[chosen.layer].title}, by {made.method}.",
    )
    # What the picture loses.
    score, judged = trust_of(asked, made)
    keeps = (
        f"{made.method} keeps neighbours together and loses the rest: distances and sizes mean "
        "nothing."
    )
    if made.method == "PCA":
        keeps = (
            f"After {seen.layers[chosen.layer].title}, these 2 of "
            f"{subject.lm.model.config.d_model} dimensions hold "
            f"{percent(sum(picture.explained))} of the variance of the vectors; the rest is not "
            "in the picture."
        )
    trust = projections.trust(score, judged, len(seen.positions), "positions")
    st.caption(
        f"{keeps} {trust} Pictures of all layers are turned and resized to match each other, on "
        "the same axes."
    )
    medians = np.median(lengths.values.astype(np.float64), axis=1)
    st.caption(
        f"The median length of the vectors is {brief(medians[chosen.layer])} here, and "
        f"{brief(medians[0])} after the "
        f"embedding; point at a token for its own. {interp.about_length(subject.lm.model.config)}"
    )
    if chosen.compared and chosen.method != "PCA":
        placings = [
            placing_of(asked, replace(chosen, seed=int(seed), compared=False))
            for seed in projections.SEEDS
        ]
        projections.over_seeds(placings, lambda _: kinds, chosen.method)
    return picture.points


@st.cache_resource(max_entries=8, show_spinner="Placing the positions")
def maps_of(
    asked: AskedAnalysis[StreamSummary], unit: bool
) -> tuple[list[Vectors], list[Projection]]:
    """The vectors after each layer, and their pictures by PCA."""
    by_layer = interp.rows(asked.value, unit=unit)
    return by_layer, interp.maps(by_layer, labels(asked))


@st.cache_resource(max_entries=256, show_spinner=False)
def placing_of(asked: AskedAnalysis[StreamSummary], chosen: MapChoice) -> Placing:
    """A picture by t-SNE or UMAP, computed once for all sessions."""
    by_layer, pictures = maps_of(asked, chosen.unit)
    tokens = labels(asked)
    vectors = by_layer[chosen.layer]
    like = pictures[chosen.layer]
    return begin_projection(
        lambda: interp.map_after(vectors, tokens, chosen.method, chosen.seed, like), len(tokens)
    )


@st.cache_data(max_entries=64, show_spinner=False)
def trust_of(asked: AskedAnalysis[StreamSummary], chosen: MapChoice) -> tuple[float, int]:
    by_layer, pictures = maps_of(asked, chosen.unit)
    if chosen.method == "PCA":
        picture = pictures[chosen.layer]
    else:
        picture = placing_of(asked, chosen).job.result()
    return embeddings.trustworthiness(by_layer[chosen.layer], picture)


def tries(asked: AskedAnalysis[StreamSummary]) -> list[Try]:
    """The suggestions for this model and text; all sentences are computed from its stream."""
    seen = asked.value
    offers = list[Try]()
    if not seen.writers:
        return offers
    # A position whose vector becomes far longer than the others.
    lengths = lengths_of(asked)
    ratio = lengths.values / np.maximum(
        np.median(lengths.values.astype(np.float64), axis=1)[:, None], 1e-12
    )
    layer, index = (int(place) for place in np.unravel_index(ratio.argmax(), ratio.shape))
    if ratio[layer, index] >= LONG:
        notice = (
            f"After {seen.layers[layer].title} the vector of position {seen.positions[index]}, "
            f"{in_quotes(lengths.axes[1].labels[index])}, is {brief(ratio[layer, index])} times "
            "as long as the median."
        )
        opened = {"view": MAP, "method": "PCA", "vectors": AS_IS, "layer": seen.layers[layer].name}
        offers.append(
            Try("A long vector", notice, opened, {"position": str(seen.positions[index])})
        )
    # How much of the variance two directions hold at both ends of the model.
    if len(seen.positions) >= embeddings.FEWEST_PLACED:
        _, pictures = maps_of(asked, True)
        first, last = (percent(sum(picture.explained)) for picture in (pictures[0], pictures[-1]))
        notice = (
            f"After the embedding two directions hold {first} of the variance of the positions, "
            f"at the end {last}. Move the "
            "slider from layer to layer and watch which tokens come together."
        )
        opened = {"view": MAP, "method": "PCA", "vectors": DIRECTION, "layer": seen.layers[0].name}
        offers.append(Try("From tokens to guesses", notice, opened))
    return offers


def code(asked: AskedAnalysis[StreamSummary], index: int | None, chosen: MapChoice | None) -> str:
    """The lines of `gptviz` that compute the numbers of the map, or of what is written where no map
    is chosen.
    """
    lines = [
        "from gptviz.interp.reading import stream",
        "tokens = [lm.tokenizer.label(i) for i in result.ids]",
    ]
    if chosen is None:
        return asked.code(
            *lines,
            f"stream.at_position(stream.shares(result, tokens), {index})  # [quantity, sublayer]",
        )
    lines += [
        f"by_layer = stream.rows(result, unit={chosen.unit})  # [position, d_model] each",
        "pictures = stream.maps(by_layer, tokens)",
    ]
    if chosen.method == "PCA":
        return asked.code(*lines, f"pictures[{chosen.layer}].points  # [position, component]")
    at = (
        f"by_layer[{chosen.layer}], tokens, {chosen.method!r}, {chosen.seed}, "
        f"pictures[{chosen.layer}]"
    )
    return asked.code(*lines, f"stream.map_after({at}).points  # [position, component]")
