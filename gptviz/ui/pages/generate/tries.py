"""What to try with the text on the page Generate."""

from __future__ import annotations

from typing import Any

from gptviz.ui.widgets.sampling import PLAIN
from gptviz.ui.widgets.tries import Try

from . import beginning
from .writing import Writing

# The text begins anew after the same prompt; the way back leads to the text and the tree that were there.
ANEW: dict[str, Any] = PLAIN | {"writing": None, "picture": None}


def tries(writing: Writing) -> list[Try]:
    """What to try with this text."""
    offers = [_fork(writing)] if writing.length else []
    return [
        *offers,
        Try(
            "Always the likeliest",
            "At temperature 0 the text is soon caught in a loop: the likeliest token leads back to the likeliest text.",
            ANEW | {"temperature": 0.0},
        ),
        Try(
            "Too hot",
            "At temperature 2 pale chips are everywhere: tokens the model hardly believed in, and what follows makes no sense.",
            ANEW | {"temperature": 2.0},
        ),
        Try(
            "Only the two likeliest",
            "Top-k 2 keeps the words whole, yet the text does not get stuck; of what may come next all but two are struck out.",
            ANEW | {"top_k": 2},
        ),
    ]


def _fork(writing: Writing) -> Try:
    """A branch from the present text. It takes nothing away: there is nothing to take back."""
    return Try(
        "A fork",
        "Another token where the model wavered: the same random numbers are drawn, and yet the texts soon have nothing in "
        "common. Compare the means of their log-probabilities, and click the pale branch to go over to it.",
        act=lambda: beginning.fork(writing),
    )
