"""How a generation tree is shown; the tree itself is in gptviz/generate/tree.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Ghost:
    """A token that may come next."""

    token: int  #: its id
    probability: float  #: the probability that the model gives it
    drawn_with: float  #: its probability after temperature, top-k and top-p
    cut: str  #: the limit that took it out of the draw, "" if none did


@dataclass(frozen=True)
class Look:
    """How a tree is shown."""

    number: int  #: the number of the tree in its session: a click on another tree does not count
    prompt: Sequence[str]  #: the visible forms of the prompt's last tokens
    label: Callable[[int], str]  #: the visible form of a token
    described: Callable[[Any], str]  #: describes the settings of a draw in a few words
    ghosts: Sequence[Ghost] = ()  #: the tokens that may come next
    code: str = ""  #: the lines of `gptviz` that make the tree
    playing: bool = False  #: whether the tree is growing by itself; its card is then not updated
    full: bool = False  #: whether no token may be added
    spaced: bool = False  #: whether every token is a word, with a gap between them
    status: str = ""  #: a line next to the legend
    #: of a picture: `model`, `prompt` and `settings`, a list of phrases
    heading: Mapping[str, Any] = field(default_factory=dict)
    #: the values to write into the address of the page, by key; None takes a key out of it
    address: Mapping[str, str | None] = field(default_factory=dict)
