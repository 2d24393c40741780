"""The command `describe`: the layers of a model."""

from __future__ import annotations

import argparse

from .common import Command, UsageError, print_folded, print_json


def add(command: Command) -> None:
    """Add the command and its options."""
    this = command("describe", run, "List the layers of a model and their parameters.", on_device=False)
    this.add_argument("name", nargs="?", metavar="NAME", help="a model, as listed by 'models'")
    this.add_argument("--preset", metavar="PRESET", help="an architecture instead of a model")


def run(options: argparse.Namespace) -> None:
    """The command `describe NAME [--json]`, `describe --preset PRESET [--json]`."""
    from gptviz.model import describe, preset
    from gptviz.runs import checkpoints

    if (options.name is None) == (options.preset is None):
        raise UsageError("describe takes the name of a model or --preset PRESET, one of the two")
    config = preset(options.preset) if options.preset else checkpoints.read_config(checkpoints.find(options.name))
    layers = describe(config)
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
