"""The command `describe`: the layers of a model."""

from __future__ import annotations

import argparse

from .common import Command, Parser, add_architecture, architecture, print_folded, print_json


def _options(this: Parser) -> None:
    add_architecture(this)


def run(options: argparse.Namespace) -> None:
    """The command `describe NAME [--json]`, `describe --preset PRESET [--json]`."""
    from gptviz.model import describe

    layers = describe(architecture(options))
    total = sum(layer.parameters for layer in layers)
    if options.json:
        rows = [{"name": x.name, "kind": x.kind, "parameters": x.parameters, "shapes": x.shapes} for x in layers]
        print_json({"parameters": total, "layers": rows})
        return
    width = max(len(layer.name) for layer in layers)
    for layer in layers:
        shapes = ", ".join(f"{name} {' × '.join(map(str, shape))}" for name, shape in layer.shapes.items())
        print_folded(f"{layer.name:<{width}} {layer.kind:<16} {layer.parameters:>12,}   {shapes}", indent=4)
    print(f"{'total':<{width + 17}} {total:>12,}")


COMMAND = Command("describe", "List the layers of a model and their parameters.", run, _options, place=30, on_device=False)
