"""What an anatomy is made of: boxes with their tensors and their lines of source, and arrows between them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal, cast

from gptviz.model import Config

ROOT = Path(__file__).parents[3]
Role = Literal["query", "key", "value", "pattern", "mlp", "output", "stream", "weight"]
Kind = Literal["activation", "weight", "fixed"]


@dataclass(frozen=True)
class Piece:
    """A tensor of a box.

    Attributes:
        name: of an activation its tap; of a weight the parameter, of fixed numbers the buffer, that it is part of.
        kind: computed for a text, learned, or fixed by a formula.
        shape: without the batch.
        axes: what is counted along each axis.
        symbol: how equations call it.
        rows: of a matrix that several boxes share, the rows from the first up to the second; None for all of it.
        parameters: how many numbers it adds to the model: 0 where the weight was counted before (tied).
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    symbol: str
    rows: tuple[int, int] | None = None
    parameters: int = 0


@dataclass(frozen=True)
class Lines:
    """Lines `first` to `last` of a file of the project (its path from the project's folder), and those of them to look at."""

    file: str
    first: int
    last: int
    text: str
    marked: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Box:
    """A step of the computation.

    Attributes:
        path: its own name: that of the value that it computes, where a pass shows that value.
        part: what it is within its block or model, such as "q" or "norm": the same in all blocks.
        role: decides its colour.
        about: what it does, in a sentence.
        equation: the same as an equation, for this config.
        lines: the source that computes it.
        pieces: what it computes, then its weights and fixed numbers.
    """

    path: str
    part: str
    name: str
    role: Role
    about: str
    equation: str
    lines: Lines
    pieces: tuple[Piece, ...] = ()

    @property
    def taps(self) -> tuple[Piece, ...]:
        """The values of a pass that it computes."""
        return tuple(piece for piece in self.pieces if piece.kind == "activation")

    @property
    def parameters(self) -> int:
        """How many numbers of the model are its own."""
        return sum(piece.parameters for piece in self.pieces)


@dataclass(frozen=True)
class Arrow:
    """What flows from one box (by path) to another, with its shape."""

    start: str
    end: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Anatomy:
    """The boxes of a model in the order in which they are computed, and the arrows between them."""

    config: Config
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]

    def box(self, path: str) -> Box | None:
        """The box of this path, None if there is none."""
        return next((box for box in self.boxes if box.path == path), None)


def lines(what: Callable[..., Any], looked_at: str = "") -> Lines:
    """Where a function or class is written; marked are the lines with the text `looked_at`."""
    return _lines(cast(Hashable, what), looked_at)


@lru_cache(maxsize=256)
def _lines(what: Any, looked_at: str) -> Lines:
    found, first = inspect.getsourcelines(what)
    file = inspect.getsourcefile(what)
    assert file is not None
    marked = tuple(first + i for i, line in enumerate(found) if looked_at and looked_at in line)
    return Lines(Path(file).relative_to(ROOT).as_posix(), first, first + len(found) - 1, dedent("".join(found)).rstrip(), marked)
