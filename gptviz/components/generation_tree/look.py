"""How a generation tree is shown; the tree itself is in gptviz/generate/tree.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Ghost:
    """A token that may come next.

    Attributes:
        token: its id.
        probability: the probability that the model gives it.
        drawn_with: its probability after temperature, top-k and top-p.
        cut: the limit that took it out of the draw, "" if none did.
    """

    token: int
    probability: float
    drawn_with: float
    cut: str


@dataclass(frozen=True)
class Look:
    """How a tree is shown.

    Attributes:
        number: the number of the tree in its session: a click on another tree does not count.
        prompt: the visible forms of the prompt's last tokens.
        label: the visible form of a token.
        described: describes the settings of a draw in a few words.
        ghosts: the tokens that may come next.
        code: the lines of `gptviz` that make the tree.
        playing: whether the tree is growing by itself; its card is then not updated.
        full: whether no token may be added.
        spaced: whether every token is a word, with a gap between them.
        status: a line next to the legend.
        heading: of a picture: `model`, `prompt` and `settings`, a list of phrases.
        address: the values to write into the address of the page, by key; None takes a key out of it.
    """

    number: int
    prompt: Sequence[str]
    label: Callable[[int], str]
    described: Callable[[Any], str]
    ghosts: Sequence[Ghost] = ()
    code: str = ""
    playing: bool = False
    full: bool = False
    spaced: bool = False
    status: str = ""
    heading: Mapping[str, Any] = field(default_factory=dict)
    address: Mapping[str, str | None] = field(default_factory=dict)
