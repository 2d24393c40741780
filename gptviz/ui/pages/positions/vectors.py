"""How alike two positions are, and the waves behind that."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import streamlit as st

from gptviz.figures.kit import heat, lines
from gptviz.figures.kit.format import format_fixed
from gptviz.interp.reading import positions
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import reading
from gptviz.model.parts.positions import POSITIONS, turned_pairs
from gptviz.ui.shell.subject import AskedAnalysis, ModelKey, Subject, ask, language_model, scrubber
from gptviz.ui.views.encoder_decoder import DECODER, ENCODER, stack_of
from gptviz.ui.widgets import Try, controls, say_answer, show_figure, theme
from gptviz.ui.widgets.figure import pixels

_WAVES = (
    "It adds to each token numbers of the place where the token stands, which are computed from "
    "waves."
)
# How a model with positions of each kind knows where a token stands.
HOW = {
    "learned": (
        "It adds to each token numbers that it learned for the place where the token stands."
    ),
    "sinusoidal": _WAVES,
    "sines-first": _WAVES,
    "rotary": (
        "It turns each query and key by angles that grow with its place, so only the distance of "
        "two tokens counts."
    ),
    "relative": (
        "Each head learned numbers for every distance: they say how well two tokens match that "
        "stand so far apart."
    ),
    "alibi": "Each head counts a token less, the farther away it stands.",
    "none": "This model is not told where a token stands: it has no positions.",
}
# The same of a kind that has no sentence of its own, by what it acts on.
HOW_BY_PART = {
    "embedding": "It adds to each token numbers of the place where the token stands.",
    "query and key": "It changes each query and key by the place where the token stands.",
    "scores": "Each head counts a token by how far away it stands.",
    "nothing": HOW["none"],
}
# Below this a score hardly counts any more: e^-10 is 0.005 % of the weight that it would have at 0.
FLOOR = -10.0
# How many pixels a map is higher than wide: its scale stands above it, its names at two sides.
ABOVE = 40
# Of a context whose map would be thinned out, so many positions are shown at first, or those of the
# prompt if these are more.
READABLE = 64
SINES_FIRST = "sines-first"
# Where no other kind stands beside that of the model.
NOTHING = "nothing"
# The keys of the address that only the controls of a wave have.
OF_WAVE = ("table", "wave")
WORD_MORE = "the cat sat", "the yellow cat sat"


def has_own_stacks(kind: str) -> bool:
    """Whether each stack of an encoder–decoder has its own positions, of this kind."""
    return POSITIONS[kind].is_trained


def ask_map(
    key: ModelKey, kind: str, block: int, stack: str = DECODER, most: int | None = None
) -> AskedAnalysis[LabelledArray]:
    """What the map of `kind` shows: how alike positions are, or what each head adds to a score; of
    the first `most` positions, or of all.
    """
    how = {"kind": kind, "block": block, "stack": stack, "most": most}
    return ask(key, reading.positions, "Comparing positions", **how)


def ask_vectors(
    key: ModelKey, kind: str, block: int, stack: str = DECODER
) -> AskedAnalysis[LabelledArray]:
    """The vectors of the positions of a kind."""
    return ask(
        key, reading.position_vectors, "Reading the positions", kind=kind, block=block, stack=stack
    )


@st.cache_data(max_entries=4, show_spinner=False)
def kinds(key: ModelKey, stack: str) -> tuple[str, tuple[str, ...]]:
    """The kind of positions that this stack of the model uses, and the kinds that it could use
    without training.
    """
    model = stack_of(language_model(key).model, stack)
    return positions.own_kind(model), positions.fixed_kinds(model.config)


def name(kind: str) -> str:
    """The name of a kind within a sentence."""
    if kind == NOTHING:
        return kind
    title = POSITIONS[kind].title
    if title.istitle():
        return title.lower()
    return title


def offer_kinds(own: str, fixed: Sequence[str], asked: str | None) -> list[str]:
    """What can be shown beside the model's own kind, which it has unless that is "none": nothing at
    first, or one of the `fixed` kinds. Sines before cosines are the same waves in another order,
    and are offered only where the address asks for them.
    """
    few = [kind for kind in fixed if kind not in (own, SINES_FIRST)]
    few += [SINES_FIRST] * (own != SINES_FIRST and asked == name(SINES_FIRST))
    if own == "none":
        return few
    return [NOTHING, *few]


def how_many(subject: Subject) -> int | None:
    """How many positions are shown, from the first on; None for all of them. Of a long context the
    control `whole` chooses.
    """
    config = subject.lm.model.config
    if positions.shown_positions(config).step == 1:
        return None
    is_whole = controls.switch(
        "All positions",
        key="whole",
        help=f"This model reads up to {config.context_length:,} tokens: at first only the "
        "beginning of the map is shown, where the prompt stands.",
    )
    return None if is_whole else max(READABLE, len(subject.seen))


def say_headline(key: ModelKey, own: str, block: int, stack: str, most: int | None) -> None:
    """How the model knows where a token stands, then its kind of positions, with numbers."""
    if own == "none":
        say_answer(HOW[own])
        return
    config = stack_of(language_model(key).model, stack).config.in_block(block)
    if own == "rotary" and not turned_pairs(config):
        say_answer("This block is not told where a token stands: it turns no query and no key.")
        return
    then = f"This model has {name(own)} positions."
    if positions.has_vectors(own):
        near, far = positions.nearness(ask_map(key, own, block, stack, most).value)
        if not math.isnan(near + far):
            then += (
                f" The bluer in the map, the more alike (1 is equal): neighbouring {places_of(own)} "
                f"have {format_fixed(near)} on average, those half the map apart "
                f"{format_fixed(far)}."
            )
    say_answer(HOW.get(own, HOW_BY_PART[POSITIONS[own].acts_on]), then)


def places_of(kind: str) -> str:
    """What the map of a kind with vectors compares."""
    if POSITIONS[kind].acts_on == "scores":
        return "distances"
    return "places"


def waves_control(own: str, fixed: Sequence[str]) -> bool:
    """The control `waves`: whether one column of a table is shown as a wave; none where no kind has
    vectors.
    """
    if not tables(own, fixed):
        return False
    controls.open_with("waves", True, (True, False), OF_WAVE)
    return controls.switch(
        "One wave at a time",
        key="waves",
        help="The numbers behind the picture, a column at a time.",
    )


def tables(own: str, fixed: Sequence[str]) -> list[str]:
    """The kinds whose vectors are shown as waves: sinusoidal, and the model's own, where it has
    vectors.
    """
    both = dict.fromkeys(("sinusoidal", own))
    return [kind for kind in both if kind in (own, *fixed) and positions.has_vectors(kind)]


def panel(
    place: str,
    subject: Subject,
    kind: str,
    block: int,
    *,
    height: int,
    stack: str = DECODER,
    most: int | None = None,
    alone: bool = False,
) -> None:
    """The map of one kind, with a line on what it does and what is shown; `place` tells the page's
    panels apart. `most` is as in `ask_map`. A map that stands `alone` has a scale of its own.
    """
    part = POSITIONS[kind]
    key = subject.key
    if part.acts_on == "nothing":
        st.info(
            f"This model has no position encoding. {_without_positions(key, stack)}",
            icon=":material/block:",
        )
        return
    tokens: tuple[str, ...] = ()
    if not positions.has_vectors(kind):
        figure = lines.fan(
            ask_map(key, kind, block, stack, most).value, theme(), height=height, floor=FLOOR
        )
        ends = "The steeper the line of a head, the nearer the tokens it looks at."
    else:
        square = ask_map(key, kind, block, stack, most).value
        tokens = framed_tokens(subject, kind, stack)
        figure = heat.signed_matrix(
            square, theme(), height=height, square=True, tokens=tokens, own_scale=alone
        )
        # Whether only the distance counts.
        if positions.spread(square) < 1e-3:
            counts = "constant along every diagonal: only the distance counts"
        else:
            counts = "not constant along a diagonal: not only the distance counts"
        if alone and not (np.asarray(square.values) < 0).any():
            shades = "The darker, the more alike"
        else:
            shades = "Blue: alike, orange: opposed"
        ends = f"{shades}. It is {counts}."
    if len(tokens) > 1:
        frame = f" The frame marks the positions of the {len(tokens)} tokens of the prompt."
    else:
        frame = ""
    if len(tokens) == 1:
        frame = " The frame marks the prompt."
    whole = subject.lm.model.config.context_length
    places = positions.shown_positions(subject.lm.model.config, most)
    if len(places) < whole and places.step == 1:
        thinned = f" The first {len(places):,} of the {whole:,} positions are shown."
    elif len(places) < whole:
        thinned = (
            f" One in {places.step} of the {whole:,} positions is shown, up to {places[-1]:,}."
        )
    else:
        thinned = ""
    config = stack_of(subject.lm.model, stack).config
    about = part.about_of(config.in_block(block) if kind == config.positions else config)
    about = re.sub(r"([\d.e+]+)\^\((.+?)\)", r"$\1^{\2}$", about)
    is_square = positions.has_vectors(kind)
    with st.container(horizontal=is_square, key=f"{'beside' if is_square else 'below'}-{place}"):
        with st.container(width=pixels(height - ABOVE) if is_square else "stretch"):
            show_figure(
                figure, key=f"{place} map", alt=f"{kind} positions: {map_shows(kind)}. {ends}"
            )
        with st.container():
            st.caption(f"{about} The map shows {map_shows(kind)}. {ends}{thinned}{frame}")


def _without_positions(key: ModelKey, stack: str) -> str:
    """A sentence on how much a model without position encoding can know of order."""
    model = stack_of(language_model(key).model, stack)
    if not len(model.blocks):
        return (
            "It has no attention either: it guesses only from the last token, for which order "
            "does not matter."
        )
    if model.config.mask == "full":
        return (
            "Its mask hides nothing either: to this model a text is a collection of tokens in no "
            "order, and every order of them "
            "looks the same."
        )
    return POSITIONS["none"].about


def framed_tokens(subject: Subject, kind: str, stack: str) -> tuple[str, ...]:
    """The tokens of the prompt at these positions; none if the map is of distances, or the stack
    does not read the prompt.
    """
    if POSITIONS[kind].acts_on not in ("embedding", "query and key"):
        return ()
    reads = not subject.kind.has_source or stack == ENCODER or not has_own_stacks(kind)
    if reads:
        return subject.labels
    return ()


def map_shows(kind: str) -> str:
    """Which numbers the map of `kind` shows."""
    if not positions.has_vectors(kind):
        floor = f"{FLOOR:g}".replace("-", "−")
        return (
            f"what each head adds to a score, by distance; cut off at {floor}, where 0.005 % of a "
            "weight is left"
        )
    acts_on = POSITIONS[kind].acts_on
    if acts_on == "query and key":
        return (
            "the cosine between one and the same query or key, turned to any two positions: what "
            "turning alone does to a score, whatever the queries and keys of this model are"
        )
    return (
        "the cosine between the vectors of any two "
        f"{'positions' if acts_on == 'embedding' else 'distances'}"
    )


def tries(subject: Subject, own: str, fixed: Sequence[str]) -> list[Try]:
    """The suggestions for this model with positions of the kind `own`; it could use the `fixed`
    kinds without training.
    """
    offers = list[Try]()
    config = subject.lm.model.config
    if own != "alibi" and "alibi" in fixed and config.n_head > 1:
        # How far the heads of this model would look if it had ALiBi.
        reaches = positions.head_reach(ask_map(subject.key, "alibi", 0).value)
        near = [(reach, head) for head, reach in enumerate(reaches) if reach is not None]
        notice = "In such a short context no head of ALiBi takes as much as 1 from a score."
        if near:
            (nearest, steep), (farthest, flat) = min(near), max(near)
            notice = (
                "ALiBi lowers a score with the distance, more quickly in some heads than in "
                f"others: head {steep} takes 1 from a "
                f"score within {nearest} positions, head {flat} only after {farthest}. A score "
                "that is 1 lower gets about a "
                "third of the weight."
            )
        offers.append(Try("Steep and flat heads", notice, {"beside": "alibi"}))
    # The example of the original experiment (Wheeler 2024): with one more word, everything after it
    # is at another position.
    before, after = (subject.lm.tokenizer.encode(text) for text in WORD_MORE)
    is_read = (
        not after.unknown
        and len(after.ids) <= config.context_length
        and positions.shown_positions(config).step == 1
    )
    if (
        subject.kind.continues
        and not subject.on_task
        and is_read
        and POSITIONS[own].acts_on != "nothing"
    ):
        old = len(before.ids) - 1
        new = len(after.ids) - 1
        notice = (
            f"“{WORD_MORE[0]}” with one more word: its last token moves from position {old} to "
            f"{new}. "
        )
        if POSITIONS[own].acts_on == "embedding":
            cosine = f"{ask_map(subject.key, own, 0).value.values[old, new]:.2f}".replace("-", "−")
            notice += (
                f"To this model these are two different vectors (cosine {cosine}), and “cat” has "
                "moved too."
            )
        else:
            notice += (
                "This model’s scores depend only on distances, and “sat” is as far from “cat” as "
                "before."
            )
        offers.append(Try("A word more", notice, {"prompt": WORD_MORE[1]}))
    if "sinusoidal" in (own, *fixed) and config.d_model > 2:
        slow = config.d_model * 3 // 4
        size = config.d_model
        notice = (
            f"Dimension {slow} repeats every {round_number(positions.period(slow, size))} "
            "positions "
            "and tells far from near; "
            f"dimension 0 repeats every {round_number(positions.period(0, size))} and tells "
            "neighbours "
            "apart."
        )
        offers.append(
            Try("A slow wave", notice, {"waves": True, "table": "sinusoidal", "wave": slow})
        )
    return offers


def round_number(number: float) -> str:
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def one_wave(key: ModelKey, own: str, fixed: Sequence[str], block: int, stack: str) -> None:
    """One column of a table of vectors, as a wave."""
    st.header("One wave at a time", anchor=False)
    left, right = st.columns(2)
    with right:
        hint = "Whose vectors: one row per position."
        kind = controls.select(
            "Table", tables(own, fixed), key="table", help=hint, format_func=name, segmented=True
        )
        table = ask_vectors(key, kind, block, stack).value
        size = len(table.axes[1].labels)
        wave = controls.whole_number(
            "Dimension",
            0,
            size - 1,
            key="wave",
            help="One column of the table, drawn as a wave.",
            default=size // 4,
        )
        scale = limit(key, kind, block, stack)
        note = wave_note(key, table, kind, wave, block, stack)
        show_figure(
            lines.wave(positions.column(table, wave), theme(), height=250, limit=scale),
            key="wave line",
            alt=f"Dimension {wave} of the {kind} vectors over the positions. {note}",
        )
        st.caption(note)
    with left:
        show_figure(
            heat.signed_matrix(table, theme(), height=430, limit=scale, column=wave),
            key="wave map",
            alt=f"The {kind} vectors, {table.axes[0].name} by dimension; dimension {wave} is "
            "framed.",
        )


def limit(key: ModelKey, kind: str, block: int, stack: str = DECODER) -> float:
    """The end of the scale of a table, below zero and above: the same at every step of training."""
    if positions.is_fixed(kind):
        return 1.0
    return _limit(scrubber.as_saved_last(key), scrubber.steps(key.name), kind, block, stack)


@st.cache_data(max_entries=16, show_spinner="Reading the snapshots")
def _limit(key: ModelKey, every: tuple[int, ...], kind: str, block: int, stack: str) -> float:
    return max(
        positions.bound(ask_vectors(step, kind, block, stack).value)
        for step in scrubber.compared_keys(key)
    )


def wave_note(
    key: ModelKey, table: LabelledArray, kind: str, dimension: int, block: int, stack: str = DECODER
) -> str:
    """A sentence on one column of a table of vectors."""
    size = len(table.axes[1].labels)
    if kind == "sinusoidal":
        turn = positions.period(dimension, size)
        return (
            f"A {'co' if dimension % 2 else ''}sine that repeats every {round_number(turn)} "
            "positions."
        )
    if kind == "rotary":
        pair = dimension % (size // 2)
        wave = "cosine" if dimension < size // 2 else "sine"
        turn = positions.turn(stack_of(language_model(key).model, stack), pair, block)
        if math.isinf(turn):
            return f"Pair {pair}, {wave}: this model does not turn it."
        return f"Pair {pair}, {wave}: a full turn every {round_number(turn)} positions."
    if positions.is_fixed(kind):
        return f"One number of each vector: {POSITIONS[kind].equation}"
    return (
        "This column was learned, not computed from a formula: if it is a wave, training found a "
        "wave useful."
    )
