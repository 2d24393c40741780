"""How boxes are added to an anatomy, and how tensors and equations are written for a config."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from gptviz.model import Config
from gptviz.model.build import describe

from .boxes import Arrow, Box, Lines, Piece, Role

NORM = {
    "layernorm": "({x} − mean) / √(variance + 10⁻⁵)",
    "rmsnorm": "{x} / √(mean of squares + 10⁻⁶)",
}


@lru_cache(maxsize=32)
def _parameters(config: Config) -> dict[str, tuple[tuple[int, ...], bool]]:
    """By name, the shape of every parameter, and whether it is counted under this name."""
    return {
        f"{layer.name}.{name}": (shape, layer.parameters > 0)
        for layer in describe(config)
        for name, shape in layer.shapes.items()
    }


class Drawing:
    """Boxes and arrows as they are added, in the order of the computation."""

    def __init__(self, config: Config, tokens: int, source: int) -> None:
        self.config, self.tokens, self.source = config, tokens, source
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self.flows: dict[str, tuple[int, ...]] = {}
        self.width = config.n_head * config.head_size

    def add(
        self,
        path: str,
        part: str,
        name: str,
        role: Role,
        about: str,
        equation: str,
        where: Lines,
        pieces: Sequence[Piece] = (),
        reads: Sequence[str] = (),
        gives: tuple[int, ...] | None = None,
    ) -> str:
        """A box that reads what other boxes (by path) give; it gives its first piece, or something of the shape `gives`."""
        self.boxes.append(Box(path, part, name, role, about, equation, tuple(pieces), where))
        self.flows[path] = gives if gives is not None else pieces[0].shape
        self.arrows += [Arrow(start, path, self.flows[start]) for start in reads]
        return path

    def activation(self, name: str, shape: tuple[int, ...], axes: tuple[str, ...], symbol: str) -> Piece:
        return Piece(name, "activation", shape, axes, symbol)

    def weight(self, name: str, axes: tuple[str, ...], symbol: str, rows: tuple[int, int] | None = None) -> list[Piece]:
        """The parameter of this name, or some rows of it; none where the model has no such parameter."""
        if name not in _parameters(self.config):
            return []
        shape, counted = _parameters(self.config)[name]
        if rows is not None:
            shape = (rows[1] - rows[0], *shape[1:])
        return [Piece(name, "weight", shape, axes, symbol, rows, prod(shape) if counted else 0)]

    def linear(self, name: str, out: str, into: str, symbol: str, rows: tuple[int, int] | None = None) -> list[Piece]:
        """Matrix and, where there is one, bias of a linear part with axes `out` and `into`."""
        return [
            *self.weight(f"{name}.weight", (out, into), f"W_{symbol}", rows),
            *self.weight(f"{name}.bias", (out,), f"b_{symbol}", rows),
        ]

    def times(self, x: str, symbol: str, pieces: Sequence[Piece]) -> str:
        """x · Wᵀ, plus a bias where there is one."""
        bias = f" + b_{symbol}" if any(piece.symbol == f"b_{symbol}" for piece in pieces) else ""
        return f"{x} · W_{symbol}ᵀ{bias}"

    def normed(self, x: str, pieces: Sequence[Piece]) -> str:
        """The equation of the config's norm of `x`, with gain and bias where there are such."""
        symbols = {piece.symbol for piece in pieces}
        gain = " · gain" if "gain" in symbols else ""
        return NORM[self.config.norm].format(x=x) + gain + (" + bias" if "bias" in symbols else "")

    def gains(self, name: str, axis: str) -> list[Piece]:
        return [*self.weight(f"{name}.weight", (axis,), "gain"), *self.weight(f"{name}.bias", (axis,), "bias")]
