"""The kinds of settings that analyses have: the values of each, and what it is called and does.

A parameter of such a type is described by it wherever it stands: the library refuses other values,
a command has an option of it, a page a control.
"""

from __future__ import annotations

from typing import Annotated, Literal

from .fields import described, real_number, whole_number

# What takes as long as its number is large may be at most so much.
LONGEST = 1_000_000
MOST = 1_000_000_000

# The tokens that are written.
Length = Annotated[int, whole_number(0, LONGEST)]
# The steps of a fit, or the width of what is fitted or searched.
Size = Annotated[int, whole_number(1, LONGEST)]
# The largest that are listed, or the tokens that are read.
Count = Annotated[int, whole_number(1, MOST)]
CountOrNone = Annotated[int, whole_number(0, MOST)]
Dimensions = Annotated[int, whole_number(2, 3)]
Seed = Annotated[int, whole_number(-(2**63), 2**63 - 1)]
Space = Literal["embedding", "unembedding"]
Cost = Annotated[float, real_number(0, LONGEST)]
LengthPenalty = Annotated[float, real_number(-50, 50)]

HowLeftOut = Annotated[
    Literal["replaced", "removed"],
    described(
        "A token that is left out is",
        "Replaced: it stays in its place, but its vector is the mean of all tokens’. Removed: the "
        "text closes up, and all tokens after it move by one place.",
    ),
]
LensKind = Annotated[
    Literal["logit", "jacobian", "tuned"],
    described(
        "Lens",
        "Logit: the stream of every layer goes to the head as it is. The others first bring it to "
        "where the last layer is. Jacobian: by the mean effect of the layer on the last one. "
        "Tuned: by a map that is fitted to the model's own guesses.",
    ),
]
HowFound = Annotated[
    Literal["means", "component"],
    described(
        "Direction",
        "The difference of the means of both lists, or the direction in which the texts, or their "
        "pairs, differ most.",
    ),
]
Projector = Annotated[
    Literal["PCA", "t-SNE", "UMAP"],
    described(
        "Projection",
        "PCA: a straight view, ready at once. t-SNE and UMAP: the space is bent so that neighbours "
        "stay together; slower with many tokens.",
    ),
]
