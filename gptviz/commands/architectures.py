"""The commands about the architecture of a model, which is read without its weights."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .common import Parser, UsageError, command, pick_values
from .printing import CommandOutput, Table

if TYPE_CHECKING:
    from gptviz.model import Config


def _options(this: Parser) -> None:
    """Add the argument NAME, a model, and the option --preset, an architecture without one."""
    this.add_argument("name", nargs="?", metavar="NAME", help="a model, as listed by 'models'")
    this.add_argument("--preset", metavar="PRESET", help="an architecture instead of a model")


def _options_of_costs(this: Parser) -> None:
    _options(this)
    this.add_argument(
        "--batch",
        type=int,
        default=1,
        metavar="N",
        help="texts that are read side by side; default: 1",
    )
    this.add_argument(
        "--context",
        type=int,
        metavar="N",
        help="tokens of each text; default: as many as the model can read",
    )


@command(30, _options, on_device=False)
def describe(options: argparse.Namespace) -> CommandOutput:
    """List the layers of a model and their parameters."""
    from gptviz.model import describe

    layers = describe(_architecture(options))
    total = sum(layer.parameters for layer in layers)
    rows = [
        (layer.name, layer.kind, f"{layer.parameters:>12,}", _shapes(layer.shapes))
        for layer in layers
    ]
    content = {
        "parameters": total,
        "layers": [pick_values(layer, "name", "kind", "parameters", "shapes") for layer in layers],
    }
    return CommandOutput(content, [Table([*rows, ("total", "", f"{total:>12,}", "")])])


@command(40, _options_of_costs, on_device=False)
def costs(options: argparse.Namespace) -> CommandOutput:
    """Count parameters, operations and memory of a model."""
    from gptviz.interp.reading.costs import costs
    from gptviz.machine.memory import in_bytes

    whole = costs(_architecture(options), options.batch, options.context)
    texts = f"{whole.batch:,} {'text' if whole.batch == 1 else 'texts'} of {whole.tokens:,} tokens"
    rows = [
        ("parameters", f"{whole.parameters:,}"),
        (f"operations to read {texts}", f"{whole.forward:,}"),
        ("operations of a step of training on them", f"{whole.training:,}"),
        *((f"weights in {name}", in_bytes(count)) for name, count in whole.weights.items()),
        ("gradients", in_bytes(whole.gradients)),
        ("activations that a step keeps", in_bytes(whole.activations)),
        *(
            (f"what the optimiser {name} keeps", in_bytes(count))
            for name, count in whole.optimiser.items()
        ),
    ]
    if whole.cache is not None:
        rows.append(("keys and values of these texts", in_bytes(whole.cache)))
    return CommandOutput(whole.to_dict(), [Table([(name, f"{value:>16}") for name, value in rows])])


def _architecture(options: argparse.Namespace) -> Config:
    """The configuration of the model or of the preset that the options name. A UsageError if they
    name neither, or both.
    """
    from gptviz.model import preset
    from gptviz.runs import checkpoints

    if (options.name is None) == (options.preset is None):
        raise UsageError(
            f"{options.command.name} takes the name of a model or --preset PRESET, one of the two"
        )
    if options.preset:
        return preset(options.preset)
    return checkpoints.read_config(checkpoints.find(options.name))


def _shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {' × '.join(map(str, shape))}" for name, shape in shapes.items())
