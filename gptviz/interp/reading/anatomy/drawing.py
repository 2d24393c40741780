"""How boxes are added to an anatomy, and how tensors and equations are written for a config."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import torch

from gptviz.model import Config
from gptviz.model.builder import describe, lay_out
from gptviz.model.parts.norms import NORMS, Norm
from gptviz.model.parts.part import ModelPart

from .boxes import Arrow, Box, BoxTensor


@dataclass(frozen=True)
class Operand:
    """The input of a step."""

    path: str  #: the path of the box that computes it
    symbol: str  #: its name in equations
    axis: str  #: what its rows are: tokens of the text ("token") or of the source ("source token")


@lru_cache(maxsize=32)
def _parameters(config: Config) -> dict[str, tuple[tuple[int, ...], bool]]:
    """The shape of every parameter by its name, and whether its numbers are counted under this
    name.
    """
    return {
        f"{layer.name}.{name}": (shape, name not in layer.tied)
        for layer in describe(config)
        for name, shape in layer.shapes.items()
    }


@lru_cache(maxsize=32)
def _buffers(config: Config) -> dict[str, tuple[int, ...]]:
    """The shape of everything that is computed once and not trained, by its name."""
    with torch.device("meta"):
        return {
            name: tuple(buffer.shape)
            for name, buffer in lay_out(config).named_buffers(remove_duplicate=False)
        }


class Drawing:
    """Boxes and arrows as they are added, in the order of the computation, for a model that reads
    so many `tokens`, with its decoder, and so many of a `source`, with its encoder.
    """

    def __init__(self, config: Config, tokens: int, source: int) -> None:
        self.config = config
        self.tokens = tokens
        self.source = source
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        #: by path of a box, the shape of what it computes
        self.flows: dict[str, tuple[int, ...]] = {}
        #: the numbers per token in the queries of all heads together, and in their keys, or values
        self.width = config.n_head * config.head_size
        self.key_width = config.key_heads * config.head_size

    def add(self, box: Box, reads: Sequence[str] = (), gives: tuple[int, ...] | None = None) -> str:
        """Add a box with arrows from the boxes that it reads; its path. By default it `gives` the
        shape of its first piece.
        """
        self.boxes.append(box)
        self.flows[box.path] = gives if gives is not None else box.pieces[0].shape
        self.arrows += [Arrow(start, box.path, self.flows[start]) for start in reads]
        return box.path

    def in_block(self, at: str) -> Config:
        """The config with what holds in the block that the path `at` leads into."""
        if at.startswith("encoder."):
            return self.config.of_encoder
        return self.config.in_block(block_of(at))

    def activation(
        self, name: str, shape: tuple[int, ...], axes: tuple[str, ...], symbol: str
    ) -> BoxTensor:
        """A value of a forward pass, tapped under `name`."""
        return BoxTensor(name, "activation", shape, axes, symbol)

    def weight(
        self, name: str, axes: tuple[str, ...], symbol: str, rows: tuple[int, int] | None = None
    ) -> list[BoxTensor]:
        """The parameter with this name, or some `rows` of it; empty if the model has no such
        parameter.
        """
        if name not in _parameters(self.config):
            return []
        shape, counted = _parameters(self.config)[name]
        if rows is not None:
            shape = (rows[1] - rows[0], *shape[1:])
        return [BoxTensor(name, "weight", shape, axes, symbol, rows, prod(shape) if counted else 0)]

    def linear(
        self, name: str, out: str, into: str, symbol: str, rows: tuple[int, int] | None = None
    ) -> list[BoxTensor]:
        """The matrix, with axes `out` and `into`, and the bias (if there is one) of a linear
        part.
        """
        return [
            *self.weight(f"{name}.weight", (out, into), f"W_{symbol}", rows),
            *self.weight(f"{name}.bias", (out,), f"b_{symbol}", rows),
        ]

    def tensors(self, kind: type[ModelPart], at: str, inner: Sequence[str] = ()) -> list[BoxTensor]:
        """The parameters and fixed numbers of the part `at` that its class (`kind`) describes, then
        its other parameters; without those of its `inner` parts, which have boxes of their own.
        """
        pieces = []
        for name, symbol, axes in kind.tensors:
            pieces += self.weight(f"{at}.{name}", axes, symbol)
            if (shape := _buffers(self.config).get(f"{at}.{name}")) is not None:
                pieces.append(BoxTensor(f"{at}.{name}", "fixed", shape, axes, symbol))
        known = {f"{at}.{tensor.name}" for tensor in kind.tensors}
        for path, (shape, _) in _parameters(self.config).items():
            name = path.removeprefix(f"{at}.")
            if name != path and path not in known and name.partition(".")[0] not in inner:
                pieces += self.weight(path, tuple(f"axis {i}" for i in range(len(shape))), name)
        return pieces

    def times(self, x: str, symbol: str, pieces: Sequence[BoxTensor]) -> str:
        """The equation of a linear part of `x`: x · Wᵀ, plus the bias where `pieces` has one."""
        if any(piece.symbol == f"b_{symbol}" for piece in pieces):
            bias = f" + b_{symbol}"
        else:
            bias = ""
        return f"{x} · W_{symbol}ᵀ{bias}"

    @property
    def norm_kind(self) -> type[Norm]:
        """The model's kind of norm."""
        return NORMS[self.config.norm]

    def norm_equation(self, x: str, pieces: Sequence[BoxTensor]) -> str:
        """The equation of the model's norm of `x`, with gain and bias where `pieces` has them."""
        symbols = {piece.symbol for piece in pieces}
        gain = " · gain" if "gain" in symbols else ""
        kind = self.norm_kind
        if self.config.norm_eps is None:
            eps = kind.usual_eps
        else:
            eps = self.config.norm_eps
        return (
            kind.equation_of(x).replace("ε", in_digits(eps))
            + gain
            + (" + bias" if "bias" in symbols else "")
        )

    def gains(self, name: str, axis: str) -> list[BoxTensor]:
        """The gain and bias of the norm called `name`, which normalises over `axis`."""
        renamed = {"d_model": axis}
        pieces = self.tensors(self.norm_kind, name)
        return [
            replace(piece, axes=tuple(renamed.get(own, own) for own in piece.axes))
            for piece in pieces
        ]


def block_of(path: str) -> int:
    """The number of the block that a path such as blocks.2.attention leads into."""
    return int(path.partition("blocks.")[2].partition(".")[0])


def cap_equation(equation: str, cap: float | None) -> str:
    """The equation of what a cap leaves of a number that another one gives."""
    if cap is None:
        return equation
    return f"{cap:g} · tanh(({equation}) / {cap:g})"


def in_digits(small: float) -> str:
    """A number as equations write it: 0.1, 10⁻⁵ or 3 · 10⁻⁶."""
    if small >= 1e-3:
        return f"{small:g}"
    digits, _, power = f"{small:e}".partition("e-")
    times = "" if float(digits) == 1 else f"{float(digits):g} · "
    return f"{times}10⁻" + str(int(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
