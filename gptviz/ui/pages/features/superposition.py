"""The toy model of superposition: five features as arrows in the plane, and whether a dictionary
finds them.
"""

from __future__ import annotations

import streamlit as st

from gptviz.figures.units import superposition as figures
from gptviz.interp.dictionaries import superposition
from gptviz.interp.dictionaries.superposition import FEATURES, KEPT, SPARSITIES, Found, Toy
from gptviz.ui.records.features import SUPERPOSITION
from gptviz.ui.shell.close import PageResult
from gptviz.ui.widgets import Try, controls, jobs, show_figure, theme

IMPORTANCES = (0.5, 0.7, 0.9, 1.0)
# The sparsity and the importance until others are chosen.
SPARSE = 0.98
USUAL = 0.9
# The mean largest cosine from which on a dictionary is said to find the features.
RECOVERED = 0.95
HIGH = 430


def show() -> PageResult:
    """The whole view."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        hint = (
            "The share of the vectors in which a feature is absent. The more often they are "
            "absent, the less they disturb."
        )
        sparsity = float(
            controls.notch(
                "Sparsity",
                SPARSITIES,
                key="sparsity",
                default=SPARSE,
                format_func="{:.0%}".format,
                help=hint,
            )
        )
        hint = (
            "How much the error of each feature counts, as a share of what the error of the one "
            "before counts."
        )
        importance = float(
            controls.notch(
                "Importance of the next", IMPORTANCES, key="importance", default=USUAL, help=hint
            )
        )
    toy = train_toys(importance)
    found = search_features(importance, sparsity)
    at = SPARSITIES.index(sparsity)
    st.markdown(describe_toy(toy, found, at))
    left, right = st.columns(2, gap="large")
    ends = toy.arrows[at].T.double().numpy()
    with left:
        show_figure(
            figures.arrows(ends, theme(), found=found.rows.double().numpy(), height=HIGH),
            key="toy arrows",
            alt="Features as arrows in the plane, of the lengths "
            f"{', '.join(f'{one:.2f}' for one in toy.lengths.values[at])}.",
        )
        st.caption(
            "Each arrow is a column of W. A feature is kept if its arrow has a length of "
            f"{KEPT:g} or more."
        )
    with right:
        show_figure(
            figures.lengths(toy.lengths, theme(), chosen=at, height=HIGH),
            key="toy lengths",
            alt="How long the arrow of each feature is, at each sparsity.",
        )
        st.caption(
            "A model of its own was trained for each sparsity. Feature 1 is the most important one."
        )
    return PageResult(lambda: toy.lengths, code(importance, sparsity), SUPERPOSITION)


@jobs.resource("Training the toy models", max_entries=8)
def train_toys(importance: float) -> Toy:
    """The toy models of all sparsities."""
    return superposition.train(importance)


@jobs.resource("Fitting a dictionary to what the toy writes", max_entries=32)
def search_features(importance: float, sparsity: float) -> Found:
    """What a dictionary finds of the features of one of them."""
    return superposition.find(train_toys(importance), sparsity)


def describe_toy(toy: Toy, found: Found, at: int) -> str:
    """How many features are kept, and whether the dictionary finds them, in a sentence."""
    lengths = toy.lengths.values[at]
    kept = [str(number) for number, length in enumerate(lengths, 1) if length >= KEPT]
    if len(kept) == FEATURES:
        which = "all five features"
    else:
        which = f"the features {', '.join(kept)}"
    cosine = float(found.cosines.mean())
    if cosine > RECOVERED:
        finds = "finds them again"
    else:
        finds = "does not find them"
    return (
        f"**At a sparsity of {100 * SPARSITIES[at]:g} % two dimensions keep {which}.** A "
        "dictionary that reads only the two "
        f"numbers {finds}: the mean largest cosine is {cosine:.3f} (by chance, five steps around "
        "the circle: 0.935)."
    )


def code(importance: float, sparsity: float) -> str:
    """The lines of Python that train the toy, and search for its features."""
    return "\n".join(
        [
            "from gptviz.interp.dictionaries.superposition import find, train",
            f"toy = train({importance:g})",
            f"find(toy, {sparsity:g}).cosines  # of each feature that is kept",
            "toy.lengths  # [sparsity, feature]",
        ]
    )


def tries() -> list[Try]:
    """The suggestions."""
    dense = (
        "All features at once: the two most important ones take the plane, and the others are "
        "given up."
    )
    sparse = (
        "All five share the plane, as a pentagon. But a dictionary is misled: it needs them "
        "sparser still."
    )
    return [Try("Dense", dense, {"sparsity": 0.0}), Try("Sparse", sparse, {"sparsity": 0.9})]
