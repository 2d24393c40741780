"""The command `costs`: parameters, operations and memory of a model."""

from __future__ import annotations

import argparse

from .common import Command, Parser, add_architecture, architecture
from .printing import Shown, Table


def _options(this: Parser) -> None:
    add_architecture(this)
    this.add_argument("--batch", type=int, default=1, metavar="N", help="texts that are read side by side; default: 1")
    this.add_argument("--context", type=int, metavar="N", help="tokens of each text; default: as many as the model can read")


def run(options: argparse.Namespace) -> Shown:
    """The command `costs NAME [--batch N] [--context N] [--json]`, `costs --preset PRESET …`."""
    from gptviz.interp.reading.costs import costs
    from gptviz.machine.memory import in_bytes

    found = costs(architecture(options), options.batch, options.context)
    texts = f"{found.batch:,} {'text' if found.batch == 1 else 'texts'} of {found.tokens:,} tokens"
    rows = [
        ("parameters", f"{found.parameters:,}"),
        (f"operations to read {texts}", f"{found.forward:,}"),
        ("operations of a step of training on them", f"{found.training:,}"),
        *((f"weights in {name}", in_bytes(count)) for name, count in found.weights.items()),
        ("gradients", in_bytes(found.gradients)),
        ("activations that a step keeps", in_bytes(found.activations)),
        *((f"what the optimiser {name} keeps", in_bytes(count)) for name, count in found.optimiser.items()),
    ]
    if found.cache is not None:
        rows.append(("keys and values of these texts", in_bytes(found.cache)))
    return Shown(found.to_dict(), [Table([(name, f"{value:>16}") for name, value in rows])])


COMMAND = Command("costs", "Count parameters, operations and memory of a model.", run, _options, place=40, on_device=False)
