"""The command `describe`: the layers of a model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from .common import Command, Parser, add_architecture, architecture, picked
from .printing import Shown, Table


def _options(this: Parser) -> None:
    add_architecture(this)


def run(options: argparse.Namespace) -> Shown:
    """The command `describe NAME [--json]`, `describe --preset PRESET [--json]`."""
    from gptviz.model import describe

    layers = describe(architecture(options))
    total = sum(layer.parameters for layer in layers)
    rows = [(layer.name, layer.kind, f"{layer.parameters:>12,}", _shapes(layer.shapes)) for layer in layers]
    content = {"parameters": total, "layers": [picked(layer, "name", "kind", "parameters", "shapes") for layer in layers]}
    return Shown(content, [Table([*rows, ("total", "", f"{total:>12,}", "")])])


def _shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {' × '.join(map(str, shape))}" for name, shape in shapes.items())


COMMAND = Command("describe", "List the layers of a model and their parameters.", run, _options, place=30, on_device=False)
