"""How much of the gradient reaches each block of fresh models."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.figures.kit.format import join_words, power
from gptviz.figures.reading.depth import Decades, by_depth, close_up, decades
from gptviz.interp.reading import gradients
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model.config import describe_field
from gptviz.model.parts.activations import ACTIVATIONS
from gptviz.model.parts.residuals import RESIDUALS
from gptviz.ui.widgets import Try, controls, jobs, show_figure, theme

WIDTHS = (16, 32, 64, 128)
CLOSE = "Close up"
ALL = "All decades"
SCALES = (CLOSE, ALL)
# The kinds that the page opens on: with a connection past each block, and without.
WITH = "pre-norm"
WITHOUT = "none"
# Of less than this share nothing arrives, of less than the next one little, and of more than the
# last one the gradient explodes.
NOTHING = 1e-12
LITTLE = 1e-2
EXPLODES = 1e3
STDS = (0.01, 0.02, 0.04, 0.08, 0.12, 0.16, 0.24, 0.32)


# What the page opens on.
DEFAULTS: dict[str, Any] = {
    name: each.default for name, each in signature(gradients.compare_untrained).parameters.items()
}
table = jobs.data("Building the models", max_entries=64)(gradients.compare_untrained)


def setup(places: Sequence[DeltaGenerator]) -> tuple[dict[str, Any], bool]:
    """Three controls in three places, the rarer ones folded in the last: what
    `gptviz.interp.reading.gradients.compare_untrained` is asked for, and whether there is a line
    for every kind of connection.
    """
    left, middle, more = places
    with left:
        depth = controls.whole_number(
            "Depth (blocks)",
            2,
            32,
            key="depth",
            default=DEFAULTS["depth"],
            help="How many blocks lie between the loss and the embeddings.",
        )
    with middle:
        std = controls.notch(
            "Initial weights",
            STDS,
            key="std",
            default=DEFAULTS["std"],
            help=(
                "How large the numbers in the blocks' matrices are at the start: their standard "
                "deviation. Models here begin "
                "with 0.02, as GPT-2 did."
            ),
        )
    with more, st.popover("More"):
        width = controls.notch(
            "Width",
            WIDTHS,
            key="width",
            default=DEFAULTS["width"],
            help="How many numbers a token has in the residual stream (d_model); four heads share "
            "them.",
        )
        activation = controls.select(
            "Activation",
            list(ACTIVATIONS),
            key="activation",
            default=DEFAULTS["activation"],
            help=describe_field("activation").full_help,
        )
        shrink = controls.switch(
            "Deeper begins smaller",
            key="shrink",
            default=DEFAULTS["shrink"],
            help=(
                "Matrices that write into the stream are divided by √(2 · blocks), as in GPT-2, "
                "so that all blocks together add "
                "as much as one block would."
            ),
        )
        seed = controls.whole_number(
            "Seed",
            0,
            99,
            key="seed",
            default=DEFAULTS["seed"],
            help="Decides the random weights: another seed gives other models.",
        )
        every = controls.switch(
            "Every kind of connection",
            key="every",
            help=(
                f"A line for each way in which a block joins the stream; else only {WITH}, with a "
                f"connection past each block, and {WITHOUT}, without."
            ),
        )
    chosen = {
        "depth": depth,
        "std": std,
        "width": width,
        "activation": activation,
        "shrink": shrink,
        "seed": seed,
    }
    return chosen, every


def drawn_lines(sizes: LabelledArray, *, every: bool) -> LabelledArray:
    """What has a line: every kind of connection, or the two that the page opens on."""
    if every:
        return sizes
    quantity, kind, block = sizes.axes
    rows = [kind.labels.index(name) for name in (WITH, WITHOUT)]
    both = Axis(kind.name, (f"connection past each block ({WITH})", f"no connection ({WITHOUT})"))
    return LabelledArray(sizes.values[:, rows], (quantity, both, block), sizes.unit)


def sentence(sizes: LabelledArray) -> tuple[str, str]:
    """Whether the first block can learn, since the gradient reaches it, with a connection past each
    block and without; and how much of it, in numbers.
    """
    shares = gradients.reaching(sizes)
    past = shares[WITH]
    through = shares[WITHOUT]
    arrives = [LITTLE <= share <= EXPLODES for share in (past, through)]
    if all(arrives):
        answer = "Yes, with a connection past each block and without one."
    elif arrives[0]:
        answer = f"Yes, with a connection past each block; without one {_fate(through)}."
    else:
        answer = f"With a connection past each block {_fate(past)}; without one {_fate(through)}."
    much = (
        "What tells a block how to change (the gradient) comes back from the last block: on its "
        f"way it is multiplied by {power(past)} with a connection, by {power(through)} without."
    )
    return answer, much


def _fate(share: float) -> str:
    """What becomes of the first block if this share of the gradient arrives there."""
    if share < NOTHING:
        return "it is told nothing about how to change"
    if share < LITTLE:
        return "it is told little about how to change"
    if share <= EXPLODES:
        return "it can learn too"
    return "the changes that it is told grow without end"


def scale_control(sizes: LabelledArray) -> tuple[Decades, str]:
    """The powers of ten on the axes, by the control `scale` if not all lines fit, and a sentence on
    what leaves them.
    """
    span, leaving = close_up(sizes)
    if not leaving:
        return span, ""
    hint = (
        "Close up: you can tell the lines near 1 apart, and the others leave the picture. All: "
        "shows how far the others go."
    )
    look: dict[str, Any] = {"segmented": True, "label_visibility": "collapsed"}
    # of two lines the one that leaves the picture is what the page is about
    usual = CLOSE if len(sizes.axes[1].labels) > 2 else ALL
    if controls.select("Scale", SCALES, key="scale", default=usual, help=hint, **look) == ALL:
        return decades(sizes), ""
    quoted = [f"“{name}”" for name in leaving]
    names = join_words(quoted)
    run = f"lines {names} run" if len(quoted) > 1 else f"line {names} runs"
    return (
        span,
        f"This is a close-up, in which the other lines can be told apart: the {run} out of it. "
        f"“{ALL}” shows how far. ",
    )


def panel(place: str, sizes: LabelledArray, quantity: str, span: Decades, *, height: int) -> None:
    """The lines of one quantity, on the axis all quantities share; `place` tells the page's panels
    apart.
    """
    lines = gradients.one_quantity(sizes, quantity)
    figure = by_depth(lines, theme(), height=height, name=f"{quantity} (rms)", span=span)
    kinds = zip(lines.axes[0].labels, lines.values.tolist(), strict=True)
    ends = "; ".join(
        f"{kind} from {power(values[0])} to {power(values[-1])}" for kind, values in kinds
    )
    first, *_, last = lines.axes[1].labels
    show_figure(
        figure,
        key=f"{place} lines",
        alt=f"Size of the {quantity} by block, on a logarithmic scale, from block {first} to "
        f"{last}: {ends}.",
    )


def summary(sizes: LabelledArray, *, every: bool) -> str:
    """Which share of the gradient reaches block 0, in words, of the kinds that are drawn."""
    shares = gradients.reaching(sizes)
    each = (
        f"{kind}, `{RESIDUALS[kind].equation}`: **{power(shares[kind])}**"
        for kind in (shares if every else (WITH, WITHOUT))
    )
    read = (
        "Read the gradient from right to left. Between the end of the last block and block 0 it "
        "is multiplied by: "
    )
    return read + "; ".join(each) + "."


def tries() -> list[Try]:
    """The suggestions, the same for every reader: the page is about no one model."""
    return [
        Try(
            "32 blocks",
            "With residual connections the gradient arrives at any depth. Without them and "
            "without norms (none), it becomes 0 in "
            "float32 long before the first block.",
            DEFAULTS | {"depth": 32, "every": True},
        ),
        Try(
            "Large weights",
            "Without norms the stream grows from block to block, and the gradient with it: plain "
            "and none explode.",
            DEFAULTS | {"std": 0.32, "every": True},
        ),
        Try(
            "On the edge",
            "With weights of exactly this size some of the gradient arrives even without residual "
            "connections: one step smaller, "
            "and it vanishes; one step larger, and it explodes.",
            DEFAULTS | {"std": 0.24, "every": True},
        ),
    ]


def code(chosen: dict[str, Any]) -> str:
    """The lines of `gptviz` that compute the same numbers."""
    changed = ", ".join(
        f"{name}={value!r}" for name, value in chosen.items() if value != DEFAULTS[name]
    )
    return f"""from gptviz.interp.reading.gradients import compare_untrained, reaching

result = compare_untrained({changed})
reaching(result)  # what share reaches block 0
result  # [quantity, residual, block]"""
