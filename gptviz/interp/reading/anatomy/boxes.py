"""The pieces of an anatomy: boxes with their tensors and their lines of source, and arrows between
them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal, cast

from gptviz.model import Config

ROOT = Path(__file__).parents[4]  # the folder of the project
Role = Literal["query", "key", "value", "pattern", "mlp", "output", "stream", "weight"]


@dataclass(frozen=True)
class BoxTensor:
    """A tensor of a box."""

    #: the name of the tap (for an activation), of the parameter (for a weight) or of the buffer
    #: (for fixed numbers)
    name: str
    #: computed for a text, learned, or fixed by a formula
    kind: Literal["activation", "weight", "fixed"]
    shape: tuple[int, ...]  #: without the batch
    axes: tuple[str, ...]  #: what each axis counts
    symbol: str  #: its name in equations
    #: if several boxes share a matrix, the first row that belongs to this box, and the row after
    #: its last; None if the whole matrix does
    rows: tuple[int, int] | None = None
    #: how many parameters it adds to the model; 0 where another box counts them (tied weights)
    parameters: int = 0


@dataclass(frozen=True)
class SourceLines:
    """Some lines of the project's source."""

    file: str  #: the path from the project's folder
    first: int  #: the number of the first line, from 1
    last: int  #: the number of the last line
    text: str  #: the lines
    marked: tuple[int, ...]  #: the numbers of the lines that do what the box is about


@dataclass(frozen=True, kw_only=True)
class Box:
    """A step of the computation."""

    path: str  #: its unique name: that of the value it computes, where a tap shows that value
    #: its name within its block or model, such as "q" or "norm": the same in all blocks. By default
    #: the end of its path.
    part: str = ""
    name: str  #: its title on the map
    role: Role  #: decides its colour
    about: str  #: what it does, in a sentence
    equation: str  #: the same as an equation, for this config
    lines: SourceLines  #: the source that computes it
    #: the values it computes, then its weights and fixed numbers
    pieces: tuple[BoxTensor, ...] = ()

    def __post_init__(self) -> None:
        if not self.part:
            object.__setattr__(self, "part", self.path.rpartition(".")[2])

    @property
    def taps(self) -> tuple[BoxTensor, ...]:
        """The values that it computes in a forward pass."""
        return tuple(piece for piece in self.pieces if piece.kind == "activation")

    @property
    def parameters(self) -> int:
        """How many of the model's parameters belong to it."""
        return sum(piece.parameters for piece in self.pieces)


@dataclass(frozen=True)
class Arrow:
    """The values that flow from one box to another."""

    start: str  #: the path of the box that computes it
    end: str  #: the path of the box that reads it
    shape: tuple[int, ...]  #: without the batch


@dataclass(frozen=True)
class Anatomy:
    """The boxes of a model in the order in which they are computed, and the arrows between them."""

    config: Config
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]

    def box(self, path: str) -> Box | None:
        """The box of this path, None if there is none."""
        return next((box for box in self.boxes if box.path == path), None)


def lines(what: Callable[..., Any], looked_at: str = "") -> SourceLines:
    """The source of a function or class; the lines with the text `looked_at` are marked; a
    ValueError if no line has it.
    """
    return _lines(cast(Hashable, what), looked_at)


@lru_cache(maxsize=256)
def _lines(what: Any, looked_at: str) -> SourceLines:
    source, first = inspect.getsourcelines(what)
    file = inspect.getsourcefile(what)
    assert file is not None
    marked = tuple(first + i for i, line in enumerate(source) if looked_at and looked_at in line)
    if looked_at and not marked:
        raise ValueError(f"no line of {what.__qualname__} has {looked_at!r}")
    return SourceLines(
        Path(file).relative_to(ROOT).as_posix(),
        first,
        first + len(source) - 1,
        dedent("".join(source)).rstrip(),
        marked,
    )
