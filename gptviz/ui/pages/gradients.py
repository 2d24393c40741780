"""What the Gradients page chooses and computes, cached, and its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st
import torch

from gptviz.figures.depth import Decades, by_depth, close_up, decades
from gptviz.figures.format import power
from gptviz.interp import gradients
from gptviz.labelled_array import LabelledArray
from gptviz.model import Config
from gptviz.model.activations import ACTIVATIONS
from gptviz.model.config import describe_field
from gptviz.model.residuals import RESIDUALS
from gptviz.text import CharTokenizer
from gptviz.ui.shell import prompts
from gptviz.ui.shell.theme import theme
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.figure import show_figure
from gptviz.ui.widgets.tries import Try

TEXT = prompts.LINES_WITHOUT_CHOICE
HEADS = 4
WIDTHS = (16, 32, 64, 128)
CLOSE, ALL = "Close up", "All decades"
SCALES = (CLOSE, ALL)
STDS = (0.01, 0.02, 0.04, 0.08, 0.12, 0.16, 0.24, 0.32)
DEFAULTS: dict[str, Any] = {
    "depth": 12,
    "std": gradients.INITIAL_STD,
    "width": 64,
    "activation": "relu",
    "shrink": True,
    "seed": 0,
}
TRIES = (
    Try(
        "32 blocks",
        "With residual connections the gradient arrives at any depth. Without them and without norms (none), it becomes 0 in "
        "float32 long before the first block.",
        DEFAULTS | {"depth": 32},
    ),
    Try(
        "Large weights",
        "Without norms the stream grows from block to block, and the gradient with it: plain and none explode.",
        DEFAULTS | {"std": 0.32},
    ),
    Try(
        "On the edge",
        "With weights of exactly this size some of the gradient arrives even without residual connections: one step smaller, "
        "and it vanishes; one step larger, and it explodes.",
        DEFAULTS | {"std": 0.24},
    ),
    Try(
        "Not divided by depth",
        "Larger weights, whose size does not depend on the number of blocks: post-norm now loses a little of the gradient in "
        "most blocks, and plain explodes.",
        DEFAULTS | {"std": 0.12, "shrink": False},
    ),
)
HOW = r"""
For each kind of residual connection there is one model, all with the same untrained matrices; each reads three lines of
Shakespeare. The loss is the one that training lowers: the mean cross-entropy of every next character. The stream $x_i$ enters
block $i$, $x_n$ leaves the last block, and backpropagation gives

$$
\frac{\partial L}{\partial x_i} = J_i^\top J_{i+1}^\top \cdots J_{n-1}^\top \frac{\partial L}{\partial x_n},
\qquad J_i = \frac{\partial x_{i+1}}{\partial x_i}.
$$

The picture shows the root mean square of the numbers of this gradient: how large one of them typically is.

- **none**: $J_i$ is the Jacobian of the sublayers alone. Where it shrinks a vector, a product of many shrinks it exponentially.
- **norm-only**: the norm brings each sublayer's output back to its old size, and multiplies the gradient by the same factor. So
  the size holds longer, but what the first block read still has to pass through every sublayer.
- **plain**: $J_i = (I + \ldots)(I + \ldots)$. The identity $I$ passes the gradient on, whatever the sublayers do, but nothing
  limits the sum: with large weights both the stream and the gradient grow exponentially.
- **pre-norm**: the same identity, and each sublayer reads a normalised stream, so that the sum grows slowly (Xiong et al. 2020).
- **post-norm**: each sum is divided by its size. At small weights that size is 1 and nothing is lost; the larger the
  sublayers' part, the smaller the share of the identity.
- **branch-norm**: the identity again, and what a sublayer computed is brought to 1 before it is added, however small it was. In
  the first blocks, where the stream is small and with it what a sublayer computes, this makes the gradient many times larger.
- **double-norm**: each sublayer reads a normalised stream, and what it computed is brought to 1 before it is added.

Residuals in which attention and MLP read the same stream (parallel) are left out: here their lines lie nearly on that of
pre-norm.

Embeddings begin with numbers of about 0.03. The first norm that they reach brings them to 1: it makes whatever passes through it
about 35 times larger, and the gradient too. This is the step of post-norm at block 0. Pre-norm, branch-norm and double-norm have
a final norm, the others have none (as they were published): for the same reason the gradient of pre-norm starts larger.

Matrices are drawn from $N(0, 0.02^2)$, those into the stream divided by $\sqrt{2n}$ (Radford et al. 2019), then multiplied as
you chose. Everything is computed in float64, which goes down to $10^{-308}$. The dotted line marks the smallest number above 0
in float32, in which models are trained. Computed by `compare` in `gptviz/interp/gradients.py`, from the values recorded by the
taps of the forward pass.
"""
LIMITS = (
    "Whether a model learns. A gradient may arrive and still point nowhere useful. Adam divides each weight’s gradient by its "
    "usual size, so small gradients can be enough, as long as float32 can hold them. The picture shows the first step on one "
    "text: training changes it. And where sublayers begin near zero, as with the default weights, every residual connection "
    "looks better than it is: the blocks hardly do anything yet."
)


@dataclass(frozen=True)
class Setup:
    """What the models have in common: the number of blocks, the width of the stream, and how their matrices are drawn (see
    `fresh`).
    """

    depth: int
    std: float
    width: int
    activation: str
    shrink: bool
    seed: int


def setup(notices: Any) -> Setup:
    """A row of controls, the rarer ones folded. `notices` takes warnings about links that ask for something impossible."""
    left, middle, right, more = st.columns([7, 7, 5, 3], gap="medium", vertical_alignment="bottom")
    with left:
        depth = controls.whole(
            "Depth (blocks)", 2, 32, key="depth", default=12, help="How many blocks lie between the loss and the embeddings.",
            notices=notices,
        )  # fmt: skip
    with middle:
        std = controls.notch(
            "Initial weights",
            STDS,
            key="std",
            default=gradients.INITIAL_STD,
            help=(
                "How large the numbers in the blocks' matrices are at the start: their standard deviation. Models here begin "
                "with 0.02, as GPT-2 did."
            ),
            notices=notices,
        )
    with right:
        width = controls.notch(
            "Width",
            WIDTHS,
            key="width",
            default=64,
            help="How many numbers a token has in the residual stream (d_model); four heads share them.",
            notices=notices,
        )
    with more, st.popover("More"):
        activation = controls.select(
            "Activation",
            list(ACTIVATIONS),
            key="activation",
            default="relu",
            help=describe_field("activation").full_help,
            notices=notices,
        )
        shrink = controls.switch(
            "Deeper begins smaller",
            key="shrink",
            default=True,
            help=(
                "Matrices that write into the stream are divided by √(2 · blocks), as in GPT-2, so that all blocks together add "
                "as much as one block would."
            ),
            notices=notices,
        )
        seed = controls.whole(
            "Seed", 0, 99, key="seed", default=0, help="Decides the random weights: another seed gives other models.",
            notices=notices,
        )  # fmt: skip
    return Setup(depth, std, width, activation, shrink, seed)


@st.cache_data(max_entries=64, show_spinner="Building the models")
def table(chosen: Setup) -> LabelledArray:
    """See `gptviz.interp.gradients.compare`."""
    tokenizer = CharTokenizer.from_text(TEXT)
    ids = torch.tensor([tokenizer.encode(TEXT).ids])
    config = Config(
        vocab_size=tokenizer.vocab_size,
        context_length=ids.shape[1],
        d_model=chosen.width,
        n_layer=chosen.depth,
        n_head=HEADS,
        activation=chosen.activation,
    )
    return gradients.compare(config, ids[:, :-1], ids[:, 1:], seed=chosen.seed, std=chosen.std, shrink=chosen.shrink)


def scale_control(sizes: LabelledArray, notices: Any) -> tuple[Decades, str]:
    """The control `scale`: which powers of ten the axes show, and a sentence on what leaves them. There is nothing to choose
    where all lines fit on one axis.
    """
    span, leaving = close_up(sizes)
    if not leaving:
        return span, ""
    about = "Close up: you can tell the lines near 1 apart, and the others leave the picture. All: shows how far the others go."
    if controls.select("Scale", SCALES, key="scale", help=about, segmented=True, notices=notices) == ALL:
        return decades(sizes), ""
    names = " and ".join((", ".join(leaving[:-1]), leaving[-1]) if len(leaving) > 1 else leaving)
    leave = "leave" if len(leaving) > 1 else "leaves"
    return span, f"Close up: {names} {leave} the picture, so that the others can be told apart; the scale “{ALL}” shows how far. "


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
    return "Between the end of the last block and block 0 the gradient is multiplied by: " + " · ".join(
        f"{kind}, `{RESIDUALS[kind].equation}`: **{power(share)}**" for kind, share in shares
    )


def code(chosen: Setup) -> str:
    """The lines of `gptviz` that compute the same numbers."""
    return f"""import torch

from gptviz.interp import gradients
from gptviz.model import Config
from gptviz.text import CharTokenizer

text = {TEXT!r}
tokenizer = CharTokenizer.from_text(text)
ids = torch.tensor([tokenizer.encode(text).ids])
config = Config(
    vocab_size=tokenizer.vocab_size,
    context_length=ids.shape[1],
    d_model={chosen.width},
    n_layer={chosen.depth},
    n_head={HEADS},
    activation={chosen.activation!r},
)
sizes = gradients.compare(
    config, ids[:, :-1], ids[:, 1:], seed={chosen.seed}, std={chosen.std}, shrink={chosen.shrink}
)  # [quantity, residual, block]
gradients.reaching(sizes)  # what share reaches block 0"""
