"""The views of the page Positions: maps of positions, and what each says."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from gptviz.figures.kit import heat, lines
from gptviz.figures.kit.format import fixed
from gptviz.interp.reading import positions
from gptviz.labelled_array import LabelledArray
from gptviz.model.parts.positions import POSITIONS
from gptviz.ui.shell.subject import ModelKey, Subject, language_model
from gptviz.ui.views.encoder_decoder import DECODER, ENCODER, stack_of
from gptviz.ui.widgets import show_figure, theme
from gptviz.ui.widgets.figure import pixels

from .computed import bias, has_own_stacks, similarity

# Below this a score hardly counts any more: e^-10 is 0.005 % of the weight that it would have at 0.
FLOOR = -10.0
# How many pixels a map is wider than high: its names stand to the left, its scale above it.
BESIDE = 20


def rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _without_positions(key: ModelKey, stack: str) -> str:
    """A sentence on how much a model without position encoding can know of order."""
    model = stack_of(language_model(key).model, stack)
    if not len(model.blocks):
        return "It has no attention either: it guesses from the last token alone, for which order does not matter."
    if model.config.mask == "full":
        return (
            "Its mask hides nothing either: to this model a text is a collection of tokens in no order, and every order of them "
            "looks the same."
        )
    return POSITIONS["none"].about


def framed(subject: Subject, kind: str, stack: str) -> tuple[str, ...]:
    """The tokens of the prompt at these positions; none if the map is of distances, or the stack does not read the prompt."""
    if POSITIONS[kind].acts_on not in ("embedding", "query and key"):
        return ()
    reads = subject.kind != "encoder-decoder" or stack == ENCODER or not has_own_stacks(kind)
    return subject.labels if reads else ()


def panel(place: str, subject: Subject, kind: str, block: int, *, height: int, stack: str = DECODER) -> None:
    """The map of one kind, with a line on what it does and what is shown; `place` tells the page's panels apart."""
    part, key = POSITIONS[kind], subject.key
    if part.acts_on == "nothing":
        st.info(f"This model has no position encoding. {_without_positions(key, stack)}", icon=":material/block:")
        return
    tokens: tuple[str, ...] = ()
    if not positions.has_vectors(kind):
        figure = lines.fan(bias(key, kind, block, stack), theme(), height=height, floor=FLOOR)
        ends = "The steeper the line of a head, the nearer the tokens it looks at."
    else:
        square, spread = similarity(key, kind, block, stack)
        tokens = framed(subject, kind, stack)
        figure = heat.signed_matrix(square, theme(), height=height, square=True, tokens=tokens)
        ends = f"Blue: alike, orange: opposed. {_diagonals(square, spread)}"
    added = "It is added to the token's embedding." if part.acts_on == "embedding" else "Nothing is added to the tokens."
    config = stack_of(subject.lm.model, stack).config
    about = part.about_of(config.in_block(block) if kind == config.positions else config)
    is_square = positions.has_vectors(kind)
    with st.container(horizontal=is_square, key=f"{'beside' if is_square else 'below'}-{place}"):
        with st.container(width=pixels(height + BESIDE) if is_square else "stretch"):
            show_figure(figure, key=f"{place} map", alt=f"{kind} positions: {map_shows(kind)}. {ends}")
        with st.container():
            st.caption(f"{about} {added} The map shows {map_shows(kind)}. {ends}{_thinned(key)}{_frame_says(tokens)}")


def _diagonals(square: LabelledArray, spread: float) -> str:
    """Sentences on the diagonals of the map: whether the distance alone counts, and how alike near and far places are."""
    if spread < 1e-3:
        return "The map is constant along every diagonal: only the distance counts."
    near, far = positions.nearness(square)
    alike = f" Neighbours: {fixed(near)} on average; half the length apart: {fixed(far)}." if not math.isnan(near) else ""
    return f"Along a diagonal the map varies by up to {spread:.2f}: not only the distance counts.{alike}".replace("-", "−")


def _frame_says(tokens: Sequence[str]) -> str:
    """A sentence on the frame around the prompt's positions; empty if there is none."""
    if not tokens:
        return ""
    return (
        f" The frame marks the positions of the {len(tokens)} tokens of the prompt."
        if len(tokens) > 1
        else " The frame marks the prompt."
    )


def map_shows(kind: str) -> str:
    """Which numbers the map of `kind` shows."""
    if not positions.has_vectors(kind):
        floor = f"{FLOOR:g}".replace("-", "−")
        return f"what each head adds to a score, by distance; cut off at {floor}, where 0.005 % of a weight is left"
    acts_on = POSITIONS[kind].acts_on
    if acts_on == "query and key":
        return "the cosine between one and the same query or key, turned to any two positions: what turning alone does to a score"
    return f"the cosine between the vectors of any two {'positions' if acts_on == 'embedding' else 'distances'}"


def _thinned(key: ModelKey) -> str:
    """A sentence for pictures that do not show every position; else empty."""
    config = language_model(key).model.config
    places = positions.shown(config)
    if len(places) == config.context_length:
        return ""
    return f" One in {places.step} of the {config.context_length:,} positions is shown, up to {places[-1]:,}."


def name(kind: str) -> str:
    """The name of a kind within a sentence."""
    title = POSITIONS[kind].title
    return title.lower() if title.istitle() else title


def wave_note(key: ModelKey, table: LabelledArray, kind: str, dimension: int, block: int, stack: str = DECODER) -> str:
    """A sentence on one column of a table of vectors."""
    size = len(table.axes[1].labels)
    if kind == "sinusoidal":
        turn = positions.period(dimension, size)
        return f"A {'co' if dimension % 2 else ''}sine that repeats every {rounded(turn)} positions."
    if kind == "rotary":
        pair, wave = dimension % (size // 2), "cosine" if dimension < size // 2 else "sine"
        turn = positions.turn(stack_of(language_model(key).model, stack), pair, block)
        if math.isinf(turn):
            return f"Pair {pair}, {wave}: this model does not turn it."
        return f"Pair {pair}, {wave}: a full turn every {rounded(turn)} positions."
    if positions.is_fixed(kind):
        return f"One number of each vector: {POSITIONS[kind].equation}"
    return "This column was learned, not computed from a formula: if it is a wave, training found a wave useful."
