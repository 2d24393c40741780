"""The views of the page Gradients: its controls and its panels."""

from __future__ import annotations

from typing import Any

import streamlit as st

from gptviz.figures.kit.format import power
from gptviz.figures.reading.depth import Decades, by_depth, close_up, decades
from gptviz.interp.reading import gradients
from gptviz.labelled_array import LabelledArray
from gptviz.model.config import describe_field
from gptviz.model.parts.activations import ACTIVATIONS
from gptviz.model.parts.residuals import RESIDUALS
from gptviz.ui.widgets import controls, show_figure, theme

from .computed import DEFAULTS, Setup

WIDTHS = (16, 32, 64, 128)
CLOSE, ALL = "Close up", "All decades"
SCALES = (CLOSE, ALL)
STDS = (0.01, 0.02, 0.04, 0.08, 0.12, 0.16, 0.24, 0.32)


def setup() -> Setup:
    """A row of controls, the rarer ones folded."""
    left, middle, right, more = st.columns([7, 7, 5, 3], gap="medium", vertical_alignment="bottom")
    with left:
        depth = controls.whole(
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
                "How large the numbers in the blocks' matrices are at the start: their standard deviation. Models here begin "
                "with 0.02, as GPT-2 did."
            ),
        )
    with right:
        width = controls.notch(
            "Width",
            WIDTHS,
            key="width",
            default=DEFAULTS["width"],
            help="How many numbers a token has in the residual stream (d_model); four heads share them.",
        )
    with more, st.popover("More"):
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
                "Matrices that write into the stream are divided by √(2 · blocks), as in GPT-2, so that all blocks together add "
                "as much as one block would."
            ),
        )
        seed = controls.whole(
            "Seed",
            0,
            99,
            key="seed",
            default=DEFAULTS["seed"],
            help="Decides the random weights: another seed gives other models.",
        )
    return Setup(depth, std, width, activation, shrink, seed)


def scale_control(sizes: LabelledArray) -> tuple[Decades, str]:
    """The powers of ten on the axes, by the control `scale` if not all lines fit, and a sentence on what leaves them."""
    span, leaving = close_up(sizes)
    if not leaving:
        return span, ""
    about = "Close up: you can tell the lines near 1 apart, and the others leave the picture. All: shows how far the others go."
    look: dict[str, Any] = {"segmented": True, "label_visibility": "collapsed"}
    if controls.select("Scale", SCALES, key="scale", help=about, **look) == ALL:
        return decades(sizes), ""
    quoted = [f"“{name}”" for name in leaving]
    names = " and ".join((", ".join(quoted[:-1]), quoted[-1]) if len(quoted) > 1 else quoted)
    run = f"lines {names} run" if len(quoted) > 1 else f"line {names} runs"
    return span, f"This is a close-up, in which the other lines can be told apart: the {run} out of it. “{ALL}” shows how far. "


def panel(place: str, sizes: LabelledArray, quantity: str, span: Decades, *, height: int) -> None:
    """The lines of one quantity, on the axis all quantities share; `place` tells the page's panels apart."""
    lines = gradients.of(sizes, quantity)
    figure = by_depth(lines, theme(), height=height, name=f"{quantity} (rms)", span=span)
    kinds = zip(lines.axes[0].labels, lines.values.tolist(), strict=True)
    ends = "; ".join(f"{kind} from {power(values[0])} to {power(values[-1])}" for kind, values in kinds)
    first, *_, last = lines.axes[1].labels
    show_figure(
        figure,
        key=f"{place} lines",
        alt=f"Size of the {quantity} by block, on a logarithmic scale, from block {first} to {last}: {ends}.",
    )


def summary(sizes: LabelledArray) -> str:
    """Which share of the gradient reaches block 0, in words."""
    shares = gradients.reaching(sizes).items()
    each = (f"{kind}, `{RESIDUALS[kind].equation}`: **{power(share)}**" for kind, share in shares)
    read = "Read the gradient from right to left. Between the end of the last block and block 0 it is multiplied by: "
    return read + "; ".join(each) + "."
